"""Choosing an epoch without the truth: by silhouette and validation accuracy together."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from openima.errors import InputError


def sc_and_acc(
    silhouettes: ArrayLike, accuracies: ArrayLike, weight: float = 0.5
) -> NDArray[np.float64]:
    """Score rows by `weight` * SC + (1 - weight) * ACC, each scaled to 0 … 1 over all rows.

    Where all rows are equal in one of the two, it does not tell them apart and counts 0; NaN
    counts as the lowest, below any number.
    """
    if not 0 <= weight <= 1:
        raise InputError("weight is a share", expected="0 to 1", got=str(weight))
    sc, acc = (np.asarray(values, dtype=np.float64) for values in (silhouettes, accuracies))
    if sc.ndim != 1 or sc.shape != acc.shape:
        raise InputError(
            "SC and ACC are two lists of the same rows", got=f"shapes {sc.shape} and {acc.shape}"
        )
    return weight * _min_max(sc) + (1.0 - weight) * _min_max(acc)


def best_row(silhouettes: ArrayLike, accuracies: ArrayLike, weight: float = 0.5) -> int:
    """Return the row that SC&ACC puts first; of equals the last."""
    scores = sc_and_acc(silhouettes, accuracies, weight)
    if not len(scores):
        raise InputError("there is no row to choose from", expected="at least one")
    if 0 < weight < 1:  # one that another surpasses can equal it only by rounding
        scores[~contenders(silhouettes, accuracies)] = -np.inf
    return len(scores) - 1 - int(scores[::-1].argmax())


def contenders(silhouettes: ArrayLike, accuracies: ArrayLike) -> NDArray[np.bool_]:
    """Tell which rows can be the best, now or when more rows have come, whatever their scale.

    A row is out when another is at least as good in both and better in one, or equal and later.
    """
    sc, acc = (np.asarray(values, dtype=np.float64) for values in (silhouettes, accuracies))
    sc, acc = (np.where(np.isfinite(values), values, -np.inf) for values in (sc, acc))
    order = np.lexsort((np.arange(len(sc)), acc, sc))[::-1]
    best_before = np.maximum.accumulate(acc[order])[:-1]
    kept = np.ones(len(sc), dtype=np.bool_)
    kept[order[1:]] = acc[order[1:]] > best_before
    return kept


def _min_max(value: NDArray[np.float64]) -> NDArray[np.float64]:
    finite = np.isfinite(value)
    if not finite.any():
        return np.zeros(len(value))
    low, high = value[finite].min(), value[finite].max()
    if low == high:  # only rows without a number are worse
        return np.where(finite & ~finite.all(), 1.0, 0.0)
    return np.where(finite, (value - low) / (high - low), 0.0)
