"""From a snapshot of all nodes to one group a node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from openima.predict.align import best_matching, count_matrix
from openima.train.snapshot import Snapshot


class Predictor(Protocol):
    """Puts every node into one of `snapshot.n_classes` groups, shape (N,)."""

    def __call__(self, snapshot: Snapshot) -> NDArray[np.int64]:
        """Return the group of every node."""
        ...


@dataclass(frozen=True)
class ClusterPredictor:
    """Groups are the clusters of the embeddings."""

    def __call__(self, snapshot: Snapshot) -> NDArray[np.int64]:
        """Return the cluster of every node."""
        return snapshot.clusters.labels


@dataclass(frozen=True)
class HeadPredictor:
    """Groups are the classifier's largest outputs."""

    def __call__(self, snapshot: Snapshot) -> NDArray[np.int64]:
        """Return the most likely class of every node."""
        if snapshot.logits is None:
            raise ValueError("a head predictor needs an objective with a head")
        largest: NDArray[np.int64] = snapshot.logits.argmax(axis=1)
        return largest


def name_groups(
    groups: NDArray[np.int64], labels: NDArray[np.int64], n_classes: int
) -> NDArray[np.int64]:
    """Turn group numbers into class ids, from nodes whose class is known.

    `labels` (N,) holds class ids, -1 where unknown. The matching makes the most labelled nodes
    agree; groups left over get the ids of novel classes. Returns class ids, shape (N,).
    """
    known = labels >= 0
    return best_matching(count_matrix(groups[known], labels[known], n_classes))[groups]
