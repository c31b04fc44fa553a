"""How the nodes of an epoch are put into steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Nodes = NDArray[np.int64]


def n_steps(n_nodes: int, batch_size: int | None) -> int:
    """Count the steps of an epoch, which is the same for every batching; None is one step."""
    return 1 if batch_size is None else -(-n_nodes // batch_size)


class Batching(Protocol):
    """Draws the batches of one epoch: as many as `n_steps` says, each of distinct nodes."""

    def __call__(
        self, train: Nodes, n_nodes: int, batch_size: int | None, rng: np.random.Generator
    ) -> list[Nodes]:
        """Return the nodes of every step; `train` are those with a label."""
        ...


@dataclass(frozen=True)
class ShuffledBatches:
    """All nodes in random order, cut into batches; the last one is short."""

    def __call__(
        self, train: Nodes, n_nodes: int, batch_size: int | None, rng: np.random.Generator
    ) -> list[Nodes]:
        """Cut a permutation of the nodes; labelled ones are treated like all others."""
        del train
        order = rng.permutation(n_nodes)
        size = batch_size or n_nodes
        return [order[start : start + size] for start in range(0, n_nodes, size)]


@dataclass(frozen=True)
class EvenBatches:
    """Every step gets its share of the labelled nodes, and every node comes once."""

    def __call__(
        self, train: Nodes, n_nodes: int, batch_size: int | None, rng: np.random.Generator
    ) -> list[Nodes]:
        """Cut permutations of the labelled and of the other nodes into near-equal parts."""
        steps = n_steps(n_nodes, batch_size)
        others = np.delete(np.arange(n_nodes), train)
        labelled, rest = (np.array_split(rng.permutation(n), steps) for n in (train, others))
        # The larger parts come first: those of one kind meet the smaller ones of the other.
        return [np.concatenate(pair) for pair in zip(labelled, reversed(rest), strict=True)]


@dataclass(frozen=True)
class HalfLabelledBatches:
    """Half of every batch has labels, or all labelled nodes where these are fewer.

    Within a batch no node comes twice. The labelled nodes are drawn anew for each step; the
    others are gone through in random order, again and again where an epoch needs more.
    """

    def __call__(
        self, train: Nodes, n_nodes: int, batch_size: int | None, rng: np.random.Generator
    ) -> list[Nodes]:
        """Draw the labelled half of each step and go on through the others."""
        steps, size = n_steps(n_nodes, batch_size), min(batch_size or n_nodes, n_nodes)
        others = np.delete(np.arange(n_nodes), train)
        n_labelled = min(len(train), max(size // 2, size - len(others)))
        n_others = min(size - n_labelled, len(others))
        batches, left = [], others[:0]
        for _ in range(steps):
            if len(left) < n_others:
                left = rng.permutation(others)
            part, left = left[:n_others], left[n_others:]
            batches.append(np.concatenate([rng.permutation(train)[:n_labelled], part]))
        return batches


BATCHINGS: dict[str, type[Batching]] = {
    "shuffled": ShuffledBatches,
    "even": EvenBatches,
    "half-labelled": HalfLabelledBatches,
}
"""Every batching, by the name that settings know it by."""
