"""What is to be learned on a graph: which labels are known, and which nodes are to be found out."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from openima.errors import InputError
from openima.graph.graph import Graph

UNKNOWN = -1
"""The label of a node whose class is not known."""

PAPER_SEEDS = (
    2406525885,
    1660347731,
    3164031153,
    1454191016,
    1583215992,
    765984986,
    258270452,
    3808600642,
    292690791,
    2492579272,
)
"""The ten seeds of the OpenIMA paper's splits."""

Labels = NDArray[np.int64]
Nodes = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Split:
    """An open-world split of labelled nodes: some classes known, the others hidden.

    `class_order` lists the original classes; the first `n_seen` are known, and class
    `class_order[k]` becomes class `k` of the task.
    """

    class_order: tuple[int, ...]
    n_seen: int
    train: Nodes
    val: Nodes
    test: Nodes


def open_world_split(labels: ArrayLike, seed: int, per_class: int = 50) -> Split:
    """Hide half of the classes and most labels of the rest, as the paper's experiments do.

    The classes are shuffled and the first `round(C / 2)` are known. Of each known class, in
    shuffled order, the first `per_class` of its shuffled nodes are for training, the next
    `per_class` for validation, the rest for testing; nodes of hidden classes are all for
    testing. Unlabelled nodes (-1) are in none of the three.
    """
    label = np.asarray(labels)
    classes = np.unique(label[label >= 0])
    if len(classes) < 2:
        raise InputError(
            "an open-world split hides half of the classes",
            expected="labels of at least two classes",
            got=f"{len(classes)}",
        )
    if per_class < 1:
        raise InputError("per_class must be at least 1", got=str(per_class))
    rng = random.Random(seed)
    order = list(range(int(classes[-1]) + 1))
    rng.shuffle(order)
    n_seen = round(len(order) / 2)
    # One stable sort instead of a scan per class: the ascending nodes of class c are a slice.
    by_class = np.argsort(label, kind="stable")
    starts = np.searchsorted(label[by_class], np.arange(len(order) + 1))
    train: list[int] = []
    val: list[int] = []
    test: list[int] = []
    for position, original in enumerate(order):
        nodes = by_class[starts[original] : starts[original + 1]].tolist()
        if position < n_seen:
            rng.shuffle(nodes)
            train += nodes[:per_class]
            val += nodes[per_class : 2 * per_class]
            nodes = nodes[2 * per_class :]
        test += nodes
    present = [c for c in order if starts[c] < starts[c + 1]]
    n_seen_present = sum(starts[c] < starts[c + 1] for c in order[:n_seen])
    as_nodes = [np.asarray(part, dtype=np.int64) for part in (train, val, test)]
    return Split(tuple(present), int(n_seen_present), *as_nodes)


@dataclass(frozen=True, eq=False)
class Task:
    """A graph, the labels that may be used, and the nodes to classify.

    `labels` holds a class id (0 … n_seen - 1) for training and validation nodes and -1 for all
    others, so hidden labels cannot leak from it. `truth`, where the answer is known, holds it
    for every node, novel classes numbered from `n_seen`; only metrics may read it.
    """

    graph: Graph
    labels: Labels
    train: Nodes
    val: Nodes
    test: Nodes
    class_names: tuple[str, ...]
    n_novel: int | None
    truth: Labels | None = None
    novel_names: tuple[str, ...] = ()

    @property
    def n_seen(self) -> int:
        """How many classes are known."""
        return len(self.class_names)

    @property
    def n_classes(self) -> int:
        """How many classes there are, known and novel; an error if the latter is not known."""
        if self.n_novel is None:
            raise InputError(
                "the number of novel classes is not known yet",
                remedy="pass n_novel, or estimate it first",
            )
        return self.n_seen + self.n_novel

    @property
    def unlabelled(self) -> Nodes:
        """The nodes that are not for training: validation and test, the paper's set U."""
        return np.concatenate([self.val, self.test])

    def class_counts(self) -> pd.DataFrame:
        """Count each class's nodes per part; without truth, all test nodes are of unknown class."""
        labels = self.labels if self.truth is None else self.truth
        names = self.class_names + self.novel_names
        rows: dict[str, list[str] | NDArray[np.int64]] = {
            "class": [*names, "unknown"],
            "status": ["seen"] * self.n_seen + ["novel"] * len(self.novel_names) + [""],
        }
        parts = {"nodes": np.arange(len(labels))}
        parts |= {"train": self.train, "val": self.val, "test": self.test}
        for part, nodes in parts.items():  # -1, the unknown, is counted last
            rows[part] = np.bincount(labels[nodes] % (len(names) + 1), minlength=len(names) + 1)
        table = pd.DataFrame(rows)
        return table if table["nodes"].iloc[-1] else table.iloc[:-1]

    def __repr__(self) -> str:
        novel = "?" if self.n_novel is None else self.n_novel
        return (
            f"Task({self.graph.name!r}, {self.n_seen} seen + {novel} novel classes, "
            f"{len(self.train):,} train, {len(self.val):,} val, {len(self.test):,} test nodes)"
        )


@dataclass(frozen=True, eq=False)
class LabelledGraph:
    """A graph and what is known of its classes: `labels` index `class_names`, -1 is unknown."""

    graph: Graph
    labels: Labels
    class_names: tuple[str, ...]

    def __post_init__(self) -> None:
        """Refuse labels that do not fit the graph or the names."""
        if self.labels.shape != (self.graph.n_nodes,):
            raise InputError(
                "labels and nodes differ in number",
                where=self.graph.name,
                expected=f"{self.graph.n_nodes:,} labels, {UNKNOWN} for unknown",
                got=f"shape {self.labels.shape}",
                remedy="give every node one label",
            )
        low, high = int(self.labels.min()), int(self.labels.max())
        if low < UNKNOWN or high >= len(self.class_names):
            raise InputError(
                "a label names no class",
                where=self.graph.name,
                expected=f"{UNKNOWN} (unknown) or 0 to {len(self.class_names) - 1}",
                got=str(low if low < UNKNOWN else high),
                remedy="name every class, or correct the label",
            )

    @property
    def n_classes(self) -> int:
        """How many classes have a name."""
        return len(self.class_names)

    def open_world_task(self, seed: int, per_class: int = 50) -> Task:
        """Hide half of the classes, to measure how well they are found again."""
        split = open_world_split(self.labels, seed, per_class)
        renumbered = np.full(self.n_classes + 1, UNKNOWN, dtype=np.int64)  # last: the unknown
        renumbered[list(split.class_order)] = np.arange(len(split.class_order))
        truth = renumbered[self.labels]
        names = [self.class_names[c] for c in split.class_order]
        return Task(
            graph=self.graph,
            labels=_only(truth, split.train, split.val),
            train=split.train,
            val=split.val,
            test=np.sort(split.test),  # the order of the split tells classes apart
            class_names=tuple(names[: split.n_seen]),
            n_novel=len(names) - split.n_seen,
            truth=truth,
            novel_names=tuple(names[split.n_seen :]),
        )

    def task(self, n_novel: int | None = None, *, val_share: float = 0.2, seed: int = 0) -> Task:
        """Keep all known classes and ask for the classes of the unlabelled nodes.

        Of the labelled nodes of each class a share `val_share` is set aside for choosing an
        epoch; a class with a single labelled node keeps it for training.
        """
        known = np.unique(self.labels[self.labels >= 0])
        test = np.flatnonzero(self.labels == UNKNOWN)
        self._refuse_impossible(known, len(test), n_novel, val_share)
        renumbered = np.full(self.n_classes + 1, UNKNOWN, dtype=np.int64)
        renumbered[known] = np.arange(len(known))
        labels = renumbered[self.labels]
        rng = np.random.default_rng(seed)
        train: list[Nodes] = []
        val: list[Nodes] = []
        for class_id in range(len(known)):
            nodes = rng.permutation(np.flatnonzero(labels == class_id))
            n_val = min(round(val_share * len(nodes)), len(nodes) - 1)
            val.append(nodes[:n_val])
            train.append(nodes[n_val:])
        return Task(
            graph=self.graph,
            labels=labels,
            train=np.concatenate(train),
            val=np.concatenate(val),
            test=test,
            class_names=tuple(self.class_names[c] for c in known),
            n_novel=n_novel,
        )

    def _refuse_impossible(
        self, known: Labels, n_unlabelled: int, n_novel: int | None, val_share: float
    ) -> None:
        where = self.graph.name
        if len(known) < 2:
            raise InputError(
                "known classes teach the encoder what a class is",
                where=where,
                expected="labels of at least two classes",
                got=f"only {self.class_names[known[0]]!r}" if len(known) else "no labels",
                remedy="label some nodes of a second class"
                if len(known)
                else "name the label column",
            )
        if n_unlabelled == 0:
            raise InputError(
                "all nodes have a label, so there is nothing to classify",
                where=where,
                remedy="blank the labels to be found, or call open_world_task to measure a method",
            )
        if n_novel is not None and n_novel < 0:
            raise InputError("n_novel cannot be negative", where=where, got=str(n_novel))
        if not 0 <= val_share < 1:
            raise InputError("val_share is a share", expected="0 up to 1", got=str(val_share))


def encode_labels(values: Sequence[str | None]) -> tuple[Labels, tuple[str, ...]]:
    """Number the class names in sorted order (as numbers if all are); None is unknown (-1)."""
    names = sorted({value for value in values if value is not None})
    if all(name.removeprefix("-").isdecimal() for name in names):
        names.sort(key=int)
    number = {name: i for i, name in enumerate(names)}
    codes = [UNKNOWN if value is None else number[value] for value in values]
    return np.asarray(codes, dtype=np.int64), tuple(names)


def _only(labels: Labels, *parts: Nodes) -> Labels:
    kept = np.full_like(labels, UNKNOWN)
    for nodes in parts:
        kept[nodes] = labels[nodes]
    return kept
