"""From a snapshot of all nodes to one group a node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from openima.predict.align import best_matching, count_matrix
from openima.predict.membership import Membership
from openima.train.snapshot import Snapshot


class Predictor(Protocol):
    """Puts every node into one of `snapshot.n_classes` groups, shape (N,)."""

    def membership(self, snapshot: Snapshot) -> Membership:
        """Tell how likely any node, of another graph too, belongs to each of the groups."""
        ...

    def __call__(self, snapshot: Snapshot) -> NDArray[np.int64]:
        """Return the group of every node."""
        ...


@dataclass(frozen=True)
class ClusterPredictor:
    """Groups are the clusters of the embeddings."""

    def __call__(self, snapshot: Snapshot) -> NDArray[np.int64]:
        """Return the cluster of every node."""
        return snapshot.clusters.labels

    def membership(self, snapshot: Snapshot) -> Membership:
        """Judge by the distances to the centres of the clusters."""
        clusters = snapshot.clusters
        return Membership.by_clusters(snapshot.z, clusters.labels, clusters.centres)


@dataclass(frozen=True)
class HeadPredictor:
    """Groups are the classifier's largest outputs."""

    def __call__(self, snapshot: Snapshot) -> NDArray[np.int64]:
        """Return the most likely class of every node."""
        if snapshot.logits is None:
            raise ValueError("a head predictor needs an objective with a head")
        largest: NDArray[np.int64] = snapshot.logits.argmax(axis=1)
        return largest

    def membership(self, snapshot: Snapshot) -> Membership:
        """Judge by the outputs of the head."""
        del snapshot
        return Membership()


def name_groups(
    groups: NDArray[np.int64], labels: NDArray[np.int64], n_classes: int
) -> NDArray[np.int64]:
    """Turn group numbers into class ids, from nodes whose class is known.

    `labels` (N,) holds class ids, -1 where unknown. The matching makes the most labelled nodes
    agree; groups left over get the ids of novel classes. Returns class ids, shape (N,).
    """
    return class_of_groups(groups, labels, n_classes)[groups]


def class_of_groups(
    groups: NDArray[np.int64], labels: NDArray[np.int64], n_classes: int
) -> NDArray[np.int64]:
    """Return the class id that `name_groups` gives each group, shape (n_classes,)."""
    known = labels >= 0
    return best_matching(count_matrix(groups[known], labels[known], n_classes))


def group_of_classes(
    groups: NDArray[np.int64], labels: NDArray[np.int64], n_seen: int, n_classes: int
) -> NDArray[np.int64]:
    """Return the group of each class, shape (n_classes,), novel classes by falling size.

    Seen classes get the groups that `name_groups` names so.
    """
    groups_in_order = np.argsort(class_of_groups(groups, labels, n_classes))
    sizes = np.bincount(groups, minlength=n_classes)
    novel = groups_in_order[n_seen:]
    by_size = novel[np.argsort(-sizes[novel], kind="stable")]
    return np.concatenate([groups_in_order[:n_seen], by_size])
