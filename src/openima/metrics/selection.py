"""Choosing an epoch without the truth: by silhouette and validation accuracy together."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def sc_and_acc(
    silhouettes: ArrayLike, accuracies: ArrayLike, weight: float = 0.5
) -> NDArray[np.float64]:
    """Score rows by `weight` * SC + (1 - weight) * ACC, each scaled to 0 … 1 over all rows.

    Where all rows are equal in one of the two, it does not tell them apart and counts 0; NaN
    counts as the lowest.
    """
    return weight * _min_max(silhouettes) + (1.0 - weight) * _min_max(accuracies)


def best_row(silhouettes: ArrayLike, accuracies: ArrayLike, weight: float = 0.5) -> int:
    """Return the row that SC&ACC puts first; of equals the last."""
    scores = sc_and_acc(silhouettes, accuracies, weight)
    return len(scores) - 1 - int(scores[::-1].argmax())


def _min_max(values: ArrayLike) -> NDArray[np.float64]:
    value = np.asarray(values, dtype=np.float64)
    finite = value[np.isfinite(value)]
    if len(finite) == 0 or finite.min() == finite.max():
        return np.zeros(len(value))
    scaled = (value - finite.min()) / (finite.max() - finite.min())
    return np.where(np.isfinite(value), scaled, 0.0)
