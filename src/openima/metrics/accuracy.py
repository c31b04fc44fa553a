"""Open-world accuracy: novel classes have no names, so predictions are matched to labels first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from openima.errors import InputError
from openima.predict.align import best_matching, count_matrix


@dataclass(frozen=True)
class OpenWorldAccuracy:
    """Shares of nodes predicted right, 0 to 1; NaN where no node of that kind was given.

    `all` is over all nodes, `seen` over nodes of the known classes, `novel` over the others.
    Each counts nodes, not classes, so `all` is in general not the mean of the other two.
    """

    all: float
    seen: float
    novel: float


def open_world_accuracy(predicted: ArrayLike, labels: ArrayLike, n_seen: int) -> OpenWorldAccuracy:
    """Compare predictions with the true labels under one matching of ids for all given nodes.

    `predicted` and `labels` hold one id from 0 a node, shape (n,); labels below `n_seen` are
    known classes. The predicted ids may be any in number and order, known ones included: all
    are matched anew, once, so that the most nodes agree. `seen` and `novel` are parts of that
    one matching; a matching of their own would flatter them. Should two matchings agree
    equally often, `all` is the same, but `seen` and `novel` are those of one of them.
    """
    if n_seen < 0:
        raise InputError("n_seen cannot be negative", got=str(n_seen))
    counts = count_matrix(predicted, labels)
    matching = best_matching(counts)
    right = np.zeros(len(counts), dtype=np.int64)
    right[matching] = counts[np.arange(len(counts)), matching]
    total = counts.sum(axis=0)
    return OpenWorldAccuracy(
        all=_share(right, total),
        seen=_share(right[:n_seen], total[:n_seen]),
        novel=_share(right[n_seen:], total[n_seen:]),
    )


def validation_accuracy(predicted: ArrayLike, labels: ArrayLike) -> float:
    """Share of nodes predicted right under the best matching for these nodes, NaN for none.

    For choosing an epoch: the matching is made on the validation nodes alone, so the number
    does not depend on how the predicted ids are named, and is optimistic.
    """
    return open_world_accuracy(predicted, labels, n_seen=0).all


def _share(right: NDArray[np.int64], total: NDArray[np.int64]) -> float:
    n_nodes = int(total.sum())
    return int(right.sum()) / n_nodes if n_nodes else float("nan")
