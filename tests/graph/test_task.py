from __future__ import annotations

import dataclasses
import random
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from openima.errors import InputError
from openima.graph.graph import Graph
from openima.graph.task import (
    PAPER_SEEDS,
    LabelledGraph,
    Split,
    Task,
    encode_labels,
    open_world_split,
)

# Seen classes, original ids, in shuffled order.
VECTORS = """
2406525885 | 5 4 1 | 3 1 7 5 | 7 9 4 1 3 | 4 2 7 12 9 3 11 14   | 4 1
1660347731 | 1 5 2 | 6 3 2 5 | 6 3 2 0 4 | 9 6 11 5 0 4 14 3    | 1 4
3164031153 | 1 0 4 | 5 1 3 6 | 1 6 9 5 3 | 14 2 13 9 1 3 5 6    | 1 0
1454191016 | 5 4 3 | 7 5 4 3 | 1 4 9 8 6 | 2 10 11 9 1 8 13 6   | 3 1
1583215992 | 3 1 0 | 4 7 2 1 | 4 7 2 1 6 | 14 4 7 3 2 10 9 0    | 3 1
765984986  | 4 3 2 | 5 6 3 2 | 4 8 3 9 7 | 9 6 3 12 10 5 11 7   | 1 3
258270452  | 3 1 4 | 3 6 7 5 | 3 8 9 6 7 | 7 8 13 14 6 9 3 1    | 4 3
3808600642 | 0 4 3 | 0 6 4 7 | 8 0 1 6 9 | 9 10 14 1 12 13 0 5  | 0 2
292690791  | 1 3 5 | 3 2 4 1 | 6 2 3 0 7 | 8 3 14 4 9 7 6 0     | 1 3
2492579272 | 5 0 3 | 3 6 0 1 | 4 8 6 9 7 | 4 12 7 1 6 14 8 0    | 4 0
"""
ROWS = [
    [[int(number) for number in cell.split()] for cell in line.split("|")]
    for line in VECTORS.strip().splitlines()
]
CLASSES = {"citeseer": 6, "photo": 8, "computers": 10, "cs": 15, "physics": 5}


def test_the_vectors_are_those_of_the_papers_seeds() -> None:
    assert tuple(row[0][0] for row in ROWS) == PAPER_SEEDS


@pytest.mark.parametrize("row", ROWS, ids=[str(row[0][0]) for row in ROWS])
@pytest.mark.parametrize("dataset", CLASSES)
def test_seen_classes_of_the_paper(row: list[list[int]], dataset: str) -> None:
    n_classes = CLASSES[dataset]
    expected = row[1 + list(CLASSES).index(dataset)]
    split = open_world_split(np.arange(3 * n_classes) % n_classes, row[0][0])
    assert split.n_seen == len(expected)
    assert list(split.class_order[: split.n_seen]) == expected
    assert sorted(split.class_order) == list(range(n_classes))


def naive_split(labels: list[int], seed: int, per_class: int) -> tuple[list[int], ...]:
    """Section 1 of the method notes, word for word."""
    random.seed(seed)
    order = list(range(max(labels) + 1))
    random.shuffle(order)
    train, val, test = [], [], []
    for position, original in enumerate(order):
        nodes = [node for node, label in enumerate(labels) if label == original]
        if position >= round(len(order) / 2):
            test += nodes
            continue
        random.shuffle(nodes)
        train += nodes[:per_class]
        val += nodes[per_class : 2 * per_class]
        test += nodes[2 * per_class :]
    return order, train, val, test


label_lists = st.lists(st.integers(-1, 6), min_size=2, max_size=60).filter(
    lambda labels: len(set(labels) - {-1}) >= 2
)


@settings(max_examples=120, deadline=None)
@given(labels=label_lists, seed=st.integers(0, 2**32 - 1), per_class=st.integers(1, 8))
def test_a_split_is_that_of_the_naive_one(labels: list[int], seed: int, per_class: int) -> None:
    state = random.getstate()
    order, train, val, test = naive_split(labels, seed, per_class)
    random.setstate(state)
    split = open_world_split(labels, seed, per_class)
    assert random.getstate() == state  # the random numbers of others are left alone
    assert list(split.class_order) == [c for c in order if c in labels]
    assert split.n_seen == sum(c in labels for c in order[: round(len(order) / 2)])
    assert split.train.tolist() == train
    assert split.val.tolist() == val
    assert split.test.tolist() == test
    # Every labelled node is in exactly one part, and no other node in any.
    parts = np.concatenate([split.train, split.val, split.test])
    assert sorted(parts.tolist()) == [node for node, label in enumerate(labels) if label >= 0]
    # Only known classes are learned from, and never more than was asked for.
    known = set(split.class_order[: split.n_seen])
    for part in (split.train, split.val):
        counts = Counter(labels[node] for node in part)
        assert set(counts) <= known
        assert all(count <= per_class for count in counts.values())


@pytest.mark.parametrize(("n_classes", "n_seen"), [(2, 1), (5, 2), (7, 4), (15, 8), (47, 24)])
def test_half_is_rounded_to_even(n_classes: int, n_seen: int) -> None:
    assert open_world_split(np.arange(n_classes), 0).n_seen == n_seen


@pytest.mark.parametrize(
    ("labels", "per_class", "says"),
    [
        ([0, 0, -1], 1, "at least two classes. Got 1"),
        ([-1, -1], 1, "at least two classes. Got 0"),
        ([], 1, "at least two classes. Got 0"),
        ([0, 1], 0, "per_class must be at least 1. Got 0"),
    ],
)
def test_bad_splits_are_refused(labels: list[int], per_class: int, says: str) -> None:
    with pytest.raises(InputError, match=says):
        open_world_split(np.array(labels, dtype=int), 0, per_class)


def labelled(labels: Any, names: tuple[str, ...] | None = None) -> LabelledGraph:
    codes = np.asarray(labels, dtype=np.int64)
    graph = Graph.from_edges([0], [1], np.eye(len(codes)), directed=False, name="toy")
    if names is None:
        names = tuple(f"class {c}" for c in range(max(codes.max() + 1, 0)))
    return LabelledGraph(graph, codes, names)


@settings(max_examples=60, deadline=None)
@given(labels=label_lists, seed=st.integers(0, 999), per_class=st.integers(1, 4))
def test_an_open_world_task_keeps_its_secrets(labels: list[int], seed: int, per_class: int) -> None:
    source = labelled(labels)
    task = source.open_world_task(seed, per_class)
    split = open_world_split(labels, seed, per_class)
    assert task.n_seen == split.n_seen
    assert task.n_novel == len(split.class_order) - split.n_seen
    assert task.n_classes == len(set(labels) - {-1})
    # Labels may be read of training and validation nodes only, and are of known classes.
    open_to_read = np.concatenate([task.train, task.val])
    hidden = np.setdiff1d(np.arange(len(labels)), open_to_read)
    assert (task.labels[hidden] == -1).all()
    assert (task.labels[open_to_read] >= 0).all()
    assert (task.labels < task.n_seen).all()
    # The truth is the original class under its new number, with its name.
    names = task.class_names + task.novel_names
    assert task.truth is not None
    for node, label in enumerate(labels):
        if label == -1:
            assert task.truth[node] == -1
        else:
            assert names[task.truth[node]] == f"class {label}"
    np.testing.assert_array_equal(task.labels[open_to_read], task.truth[open_to_read])
    np.testing.assert_array_equal(task.unlabelled, np.concatenate([task.val, task.test]))


def test_scrambled_hidden_labels_change_nothing_but_the_truth() -> None:
    labels = np.arange(60) % 6
    task = labelled(labels).open_world_task(3, 2)
    novel = np.flatnonzero(np.isin(labels, open_world_split(labels, 3, 2).class_order[3:]))
    scrambled = labels.copy()
    scrambled[novel] = np.random.default_rng(0).permutation(labels[novel])
    other = labelled(scrambled).open_world_task(3, 2)
    for name in ("labels", "train", "val", "test"):  # not even the order of test nodes tells
        np.testing.assert_array_equal(getattr(task, name), getattr(other, name))
    assert task.truth is not None
    assert other.truth is not None
    assert not np.array_equal(task.truth, other.truth)


@settings(max_examples=80, deadline=None)
@given(labels=label_lists, share=st.floats(0, 0.95), seed=st.integers(0, 99))
def test_a_task_keeps_all_known_classes(labels: list[int], share: float, seed: int) -> None:
    labels = [*labels, -1]
    task = labelled(labels).task(2, val_share=share, seed=seed)
    present = sorted(set(labels) - {-1})
    assert task.class_names == tuple(f"class {c}" for c in present)
    assert task.n_classes == len(present) + 2
    assert task.truth is None
    assert task.test.tolist() == [node for node, label in enumerate(labels) if label == -1]
    parts = np.concatenate([task.train, task.val, task.test])
    assert sorted(parts.tolist()) == list(range(len(labels)))
    for position, original in enumerate(present):
        nodes = [node for node, label in enumerate(labels) if label == original]
        assert (task.labels[nodes] == position).all()
        n_val = int(np.isin(task.val, nodes).sum())
        assert n_val == min(round(share * len(nodes)), len(nodes) - 1)
    again = labelled(labels).task(2, val_share=share, seed=seed)
    np.testing.assert_array_equal(task.train, again.train)


def test_another_seed_sets_other_nodes_aside() -> None:
    source = labelled([0] * 30 + [1] * 30 + [-1])
    first, second = (source.task(seed=seed).val.tolist() for seed in (0, 1))
    assert sorted(first) != sorted(second)


def test_the_number_of_novel_classes_may_be_open() -> None:
    task = labelled([0, 1, -1]).task()
    assert task.n_novel is None
    with pytest.raises(InputError, match="pass n_novel"):
        assert task.n_classes
    assert repr(task) == "Task('toy', 2 seen + ? novel classes, 2 train, 0 val, 1 test nodes)"


def test_labels_that_the_user_passed_are_left_alone() -> None:
    labels = np.array([0, 1, 0, 1, -1])
    before = labels.copy()
    source = labelled(labels)
    source.task(1)
    source.open_world_task(0, 1)
    np.testing.assert_array_equal(labels, before)
    labels[0] = 1


@pytest.mark.parametrize(
    ("labels", "options", "says"),
    [
        ([-1, -1], {}, "at least two classes. Got no labels.*name the label column"),
        ([1, 1, -1], {}, "Got only 'class 1'.*second class"),
        ([0, 1, 0], {}, "all nodes have a label"),
        ([0, 1, -1], {"n_novel": -1}, "n_novel cannot be negative. Got -1"),
        ([0, 1, -1], {"val_share": 1.0}, "val_share is a share.*Got 1.0"),
        ([0, 1, -1], {"val_share": -0.1}, "val_share is a share"),
    ],
)
def test_impossible_tasks_are_refused(
    labels: list[int], options: dict[str, Any], says: str
) -> None:
    with pytest.raises(InputError, match=says) as caught:
        labelled(labels).task(**options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("codes", "names", "says"),
    [
        (np.array([0, 1]), ("a", "b"), "labels and nodes differ.*3 labels.*shape \\(2,\\)"),
        (np.array([0, 2, 1]), ("a", "b"), "label names no class.*0 to 1. Got 2"),
        (np.array([0, -2, 1]), ("a", "b"), "Got -2"),
        (np.array([[0], [1], [0]]), ("a", "b"), "shape"),
    ],
)
def test_labels_that_do_not_fit_are_refused(
    codes: NDArray[np.int64], names: tuple[str, ...], says: str
) -> None:
    graph = Graph.from_edges([0], [1], np.eye(3), directed=False)
    with pytest.raises(InputError, match=says):
        LabelledGraph(graph, codes, names)


@pytest.mark.parametrize(
    ("values", "codes", "names"),
    [
        (["b", None, "a", "b"], [1, -1, 0, 1], ("a", "b")),
        (["10", "9", "-1"], [2, 1, 0], ("-1", "9", "10")),
        (["10", "9", "x"], [0, 1, 2], ("10", "9", "x")),
        ([None], [-1], ()),
        ([], [], ()),
    ],
)
def test_class_names_are_numbered_in_order(
    values: list[str | None], codes: list[int], names: tuple[str, ...]
) -> None:
    found, found_names = encode_labels(values)
    assert found.tolist() == codes
    assert found.dtype == np.int64
    assert found_names == names


@pytest.mark.parametrize("kind", [Split, Task, LabelledGraph])
def test_what_is_to_be_learned_cannot_be_changed(kind: type[Any]) -> None:
    source = labelled([0, 1, 0, 1])
    made = (source, open_world_split(source.labels, 0, 1), source.open_world_task(0, 1))
    thing = next(thing for thing in made if isinstance(thing, kind))
    for field in dataclasses.fields(kind):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(thing, field.name, None)
