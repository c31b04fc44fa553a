from dataclasses import asdict, fields, replace
from math import isnan

import numpy as np
import pytest
from sklearn.metrics import silhouette_score

from openima.graph.task import Task
from openima.metrics import (
    SeenNovelVariance,
    imbalance_and_separation,
    open_world_accuracy,
)
from openima.predict.clustering import KMeansClustering
from openima.train.evaluate import evaluate
from openima.train.snapshot import Snapshot

WITHOUT_TRUTH = {"sc", "val_acc"}
VARIANCE = {f.name for f in fields(SeenNovelVariance)}
WITH_TRUTH = {"all", "seen", "novel"} | VARIANCE


@pytest.fixture
def look(tiny_task: Task) -> Snapshot:
    assert tiny_task.truth is not None
    rng = np.random.default_rng(0)
    z = np.eye(4)[tiny_task.truth] + 0.4 * rng.standard_normal((120, 4))
    return Snapshot(3, z.astype(np.float32), None, 4, KMeansClustering(1), seed=5)


def test_a_row_holds_the_metrics_of_the_right_nodes(tiny_task: Task, look: Snapshot) -> None:
    task, groups = tiny_task, look.clusters.labels
    row = evaluate(task, look, groups)
    assert set(row) == WITHOUT_TRUTH | WITH_TRUTH
    u = np.concatenate([task.val, task.test])
    assert row["sc"] == pytest.approx(silhouette_score(look.z[u], groups[u]), abs=1e-5)
    val = open_world_accuracy(groups[task.val], task.labels[task.val], 0)
    assert row["val_acc"] == val.all
    assert task.truth is not None
    accuracy = open_world_accuracy(groups[task.test], task.truth[task.test], 2)
    assert (row["all"], row["seen"], row["novel"]) == (accuracy.all, accuracy.seen, accuracy.novel)
    spread = imbalance_and_separation(look.z, task.truth, 2)
    assert {name: row[name] for name in VARIANCE} == pytest.approx(asdict(spread))


def test_groups_of_training_nodes_do_not_count(tiny_task: Task, look: Snapshot) -> None:
    groups = look.clusters.labels.copy()
    before = evaluate(tiny_task, look, groups)
    groups[tiny_task.train] = (groups[tiny_task.train] + 1) % 4
    assert evaluate(tiny_task, look, groups) == before


def test_what_chooses_an_epoch_needs_no_truth(tiny_task: Task, look: Snapshot) -> None:
    with_truth = evaluate(tiny_task, look, look.clusters.labels)
    without = evaluate(replace(tiny_task, truth=None), look, look.clusters.labels)
    assert without == {name: with_truth[name] for name in ("sc", "val_acc")}


def test_nodes_of_unknown_truth_are_left_out_of_spreads(tiny_task: Task, look: Snapshot) -> None:
    assert tiny_task.truth is not None
    truth = tiny_task.truth.copy()
    hidden = np.setdiff1d(np.arange(120), tiny_task.test)[:5]
    truth[hidden] = -1
    row = evaluate(replace(tiny_task, truth=truth), look, look.clusters.labels)
    kept = truth >= 0
    expected = imbalance_and_separation(look.z[kept], truth[kept], 2)
    assert row["separation"] == pytest.approx(expected.separation)


def test_without_validation_nodes_their_accuracy_is_not_a_number(
    tiny_task: Task, look: Snapshot
) -> None:
    task = replace(tiny_task, val=tiny_task.val[:0])
    row = evaluate(task, look, look.clusters.labels)
    assert isnan(row["val_acc"])
    assert not isnan(row["sc"])


def test_a_single_group_has_the_lowest_silhouette(tiny_task: Task, look: Snapshot) -> None:
    row = evaluate(tiny_task, look, np.zeros(120, dtype=np.int64))
    assert row["sc"] == -1.0
