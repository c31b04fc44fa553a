"""Which predicted group stands for which class: the Hungarian assignment on their overlap."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment

from openima.checks import as_ids
from openima.errors import InputError

_MAX_IDS = 10_000  # a square of int64 counts of this side takes 0.8 GB


def count_matrix(
    predicted: ArrayLike, labels: ArrayLike, n: int | None = None
) -> NDArray[np.int64]:
    """Count the nodes of every (predicted id, label id), shape (n, n).

    `predicted` and `labels` hold one id from 0 a node. Without `n`, the matrix is just large
    enough for the largest id of either.
    """
    predicted = as_ids(predicted, "predicted")
    labels = as_ids(labels, "labels", length=len(predicted))
    needed = 1 + int(max(predicted.max(), labels.max())) if len(labels) else 0
    size = needed if n is None else n
    if size < needed:
        raise InputError("an id is too large", expected=f"ids below {n}", got=str(needed - 1))
    if size > _MAX_IDS:
        raise InputError(
            "too many ids to match",
            expected=f"ids below {_MAX_IDS:,}",
            got=f"{size - 1:,}",
            remedy="number the ids consecutively: np.unique(ids, return_inverse=True)[1]",
        )
    counts = np.bincount(predicted * size + labels, minlength=size * size)
    return counts.reshape(size, size).astype(np.int64, copy=False)


def best_matching(counts: ArrayLike) -> NDArray[np.int64]:
    """Map each predicted id to a label id so that the most nodes agree, shape (rows of counts,).

    `counts[p, c]` is how many nodes are predicted `p` and labelled `c`. No label id is used
    twice. With more predicted ids than labels, those left over get ids from `counts.shape[1]`.
    Where several matchings agree equally often, which of them is returned is not defined.
    """
    counts = np.asarray(counts)
    if counts.ndim != 2 or counts.dtype.kind not in "iu":
        raise InputError(
            "counts is a matrix of whole numbers, predicted ids by labels",
            got=f"type {counts.dtype} and shape {counts.shape}",
        )
    n_predicted, n_labels = counts.shape
    if n_predicted > n_labels:
        counts = np.pad(counts, ((0, 0), (0, n_predicted - n_labels)))
    return linear_sum_assignment(counts, maximize=True)[1].astype(np.int64, copy=False)
