"""One row of numbers for one look at all nodes."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
from numpy.typing import NDArray

from openima.graph.task import Task
from openima.metrics.accuracy import open_world_accuracy, validation_accuracy
from openima.metrics.silhouette import silhouette
from openima.metrics.variance import imbalance_and_separation
from openima.train.snapshot import Snapshot


def evaluate(task: Task, snapshot: Snapshot, groups: NDArray[np.int64]) -> dict[str, float]:
    """Measure a snapshot and the groups predicted from it.

    `sc` and `val_acc` need no hidden label and may choose an epoch. The rest is there only if
    the task knows its truth, and is for reports alone.
    """
    row = {
        "sc": silhouette(snapshot.z, groups, nodes=task.unlabelled, seed=snapshot.seed),
        "val_acc": validation_accuracy(groups[task.val], task.labels[task.val]),
    }
    if task.truth is not None:
        accuracy = open_world_accuracy(groups[task.test], task.truth[task.test], task.n_seen)
        row |= {"all": accuracy.all, "seen": accuracy.seen, "novel": accuracy.novel}
        row |= asdict(imbalance_and_separation(snapshot.z, task.truth, task.n_seen))
    return row
