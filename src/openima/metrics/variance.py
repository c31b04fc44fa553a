"""How wide classes are and how far apart: the paper's imbalance and separation rates.

The width ("std") of a class is the root mean square distance of its nodes to its centre, the
square root of the trace of its covariance. The paper says only "std"; this is what its code
computes. Its theorem uses another width, the square root of the largest eigenvalue.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist

from openima.checks import as_ids, as_matrix
from openima.errors import InputError


@dataclass(frozen=True, eq=False)
class ClassSpread:
    """The classes that occur, ascending, shape (C,); their centres, (C, d), and widths, (C,)."""

    classes: NDArray[np.int64]
    centres: NDArray[np.float64]
    std: NDArray[np.float64]


@dataclass(frozen=True)
class SeenNovelVariance:
    """Rates of a seen class s and a novel class n: means over all pairs, and the least pair.

    - imbalance: max(std_s, std_n) / min(std_s, std_n), as the paper defines it, at least 1;
    - imbalance_ratio: std_n / std_s, which the paper's numbers fit; below 1 if s is wider;
    - separation: ‖centre_s - centre_n‖ / (std_s + std_n).

    A class without width makes a rate infinite, or NaN where it is zero by zero. All are NaN
    if there is no pair.
    """

    imbalance: float
    imbalance_min: float
    imbalance_ratio: float
    imbalance_ratio_min: float
    separation: float
    separation_min: float


def class_spread(z: ArrayLike, labels: ArrayLike) -> ClassSpread:
    """Find centre and width of every class, from `z`, shape (n, d), and `labels`, shape (n,).

    Nodes labelled -1 (unknown) are left out. Sums are made in float64, one class at a time.
    """
    matrix = as_matrix(z, "z")
    label = as_ids(labels, "labels", length=len(matrix), lowest=-1)
    by_class = np.argsort(label, kind="stable")
    classes, starts = np.unique(label[by_class], return_index=True)
    nodes_of = np.split(by_class, starts[1:])
    if len(classes) and classes[0] == -1:
        classes, nodes_of = classes[1:], nodes_of[1:]
    centres = np.empty((len(classes), matrix.shape[1]))
    std = np.empty(len(classes))
    for row, nodes in enumerate(nodes_of[: len(classes)]):
        centres[row], std[row] = _centre_and_std(matrix[nodes].astype(np.float64))
    return ClassSpread(classes, centres, std)


def imbalance_and_separation(z: ArrayLike, labels: ArrayLike, n_seen: int) -> SeenNovelVariance:
    """Compare seen classes (labels below `n_seen`) with novel ones, over all pairs that occur.

    `z` is (n, d), `labels` the true classes, (n,), -1 for nodes to be left out. The paper takes
    every labelled node of the graph, training nodes too.
    """
    if n_seen < 0:
        raise InputError("n_seen cannot be negative", got=str(n_seen))
    spread = class_spread(z, labels)
    split = int(np.searchsorted(spread.classes, n_seen))
    if split in (0, len(spread.classes)):
        return SeenNovelVariance(*[float("nan")] * 6)
    seen, novel = spread.std[:split, None], spread.std[None, split:]
    with np.errstate(divide="ignore", invalid="ignore"):
        imbalance = np.maximum(seen, novel) / np.minimum(seen, novel)
        ratio = novel / seen
        separation = cdist(spread.centres[:split], spread.centres[split:]) / (seen + novel)
    return SeenNovelVariance(
        imbalance=float(imbalance.mean()),
        imbalance_min=float(imbalance.min()),
        imbalance_ratio=float(ratio.mean()),
        imbalance_ratio_min=float(ratio.min()),
        separation=float(separation.mean()),
        separation_min=float(separation.min()),
    )


def _centre_and_std(rows: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Centre and width of one class; measured from its first node, so equal rows give exactly 0."""
    offset = rows - rows[0]
    shift = offset.mean(axis=0)
    offset -= shift
    return rows[0] + shift, float(np.sqrt(np.vdot(offset, offset) / len(rows)))
