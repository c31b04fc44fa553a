"""The part of a graph that a step needs: which nodes reach its targets, hop by hop."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from openima.graph.graph import Graph, IndexArray

_CHUNK = 1 << 16  # nodes whose neighbours are sampled in one go


@dataclass(frozen=True, eq=False)
class Block:
    """The edges into `n_targets` nodes from `n_sources` nodes, numbered from zero on both sides.

    Edges are sorted by target: those into target `i` are `indptr[i]:indptr[i + 1]`. `self_rows`
    says which source each target is itself, since a node also looks at its own features. All
    index tensors are int32.
    """

    indptr: Tensor
    sources: Tensor
    self_rows: Tensor
    n_sources: int

    @property
    def n_targets(self) -> int:
        """How many nodes the edges arrive at."""
        return len(self.indptr) - 1

    @property
    def n_edges(self) -> int:
        """How many edges there are."""
        return len(self.sources)

    @cached_property
    def targets(self) -> Tensor:
        """The target of each edge, (n_edges,)."""
        numbers = torch.arange(self.n_targets, dtype=torch.int32, device=self.indptr.device)
        return numbers.repeat_interleave(self.indptr.diff(), output_size=self.n_edges)

    @cached_property
    def by_source(self) -> EdgesBySource:
        """The same edges sorted by source, which the gradient needs."""
        return sort_by_column(self.indptr, self.sources, self.n_sources)

    def to(self, device: torch.device) -> Block:
        """Copy the block to a device."""
        indptr, sources = self.indptr.to(device), self.sources.to(device)
        return Block(indptr, sources, self.self_rows.to(device), self.n_sources)


@dataclass(frozen=True, eq=False)
class EdgesBySource:
    """A CSR matrix's entries in column order: `indptr` (n_columns + 1), `rows`, and `entries`.

    `entries[k]` is the place, in row order, of the k-th entry in column order.
    """

    indptr: Tensor
    rows: Tensor
    entries: Tensor


def sort_by_column(indptr: Tensor, columns: Tensor, n_columns: int) -> EdgesBySource:
    """Sort the entries of a CSR pattern by column, where they lie."""
    by_column = _transposed if columns.device.type == "cpu" else _sorted
    return by_column(indptr, columns, n_columns)


def _transposed(indptr: Tensor, columns: Tensor, n_columns: int) -> EdgesBySource:
    """Sort in linear time, on the CPU."""
    shape = (len(indptr) - 1, n_columns)
    numbers = np.arange(len(columns), dtype=np.int32)
    by_column = sp.csr_array((numbers, columns.numpy(), indptr.numpy()), shape=shape).tocsc()
    parts = (by_column.indptr, by_column.indices, by_column.data)
    return EdgesBySource(*(torch.from_numpy(p.astype(np.int32, copy=False)) for p in parts))


def _sorted(indptr: Tensor, columns: Tensor, n_columns: int) -> EdgesBySource:
    """Sort in parallel, on a GPU."""
    rows = torch.arange(len(indptr) - 1, dtype=torch.int32, device=columns.device)
    rows = rows.repeat_interleave(indptr.diff(), output_size=len(columns))
    in_order, entries = torch.sort(columns, stable=True)
    borders = torch.arange(n_columns + 1, dtype=columns.dtype, device=columns.device)
    starts = torch.searchsorted(in_order, borders, out_int32=True)
    return EdgesBySource(starts, rows[entries], entries.int())


@dataclass(frozen=True, eq=False)
class Reach:
    """All that a step computes: the input nodes, then one block a layer, first layer first."""

    inputs: NDArray[np.int64]
    blocks: tuple[Block, ...]

    def to(self, device: torch.device) -> Reach:
        """Copy the blocks to a device."""
        return Reach(self.inputs, tuple(block.to(device) for block in self.blocks))


class Neighbourhoods:
    """Finds the nodes that reach given targets, with all neighbours or a sample of them.

    One self-loop a node is added to the graph's own edges, as attention layers want it; a loop
    that the graph already has stays beside it.
    """

    def __init__(self, graph: Graph) -> None:
        """Add the self-loops once, as the last edge of each node; `graph` is not touched."""
        n = graph.n_nodes
        self.n_nodes = n
        self.indptr: IndexArray = graph.indptr + np.arange(n + 1, dtype=graph.indptr.dtype)
        self.sources: IndexArray = np.empty(graph.n_edges + n, dtype=np.int32)
        last = np.zeros(len(self.sources), dtype=np.bool_)
        last[self.indptr[1:] - 1] = True
        self.sources[last] = np.arange(n, dtype=np.int32)
        np.logical_not(last, out=last)
        self.sources[last] = graph.sources

    def sampled(self, fan_out: int, rng: np.random.Generator) -> Neighbourhoods:
        """Keep `fan_out` random neighbours of each node, all where it has no more, and itself."""
        parts, borders = [], [np.zeros(1, dtype=self.indptr.dtype)]
        for start in range(0, self.n_nodes, _CHUNK):
            ends = self.indptr[start : start + _CHUNK + 1]
            edges, indptr = _sampled_ranges(ends[:-1], ends[1:], fan_out, rng)
            parts.append(self.sources[edges])
            borders.append(indptr[1:] + borders[-1][-1])
        kept = copy(self)
        kept.sources, kept.indptr = np.concatenate(parts), np.concatenate(borders)
        return kept

    def onto(self, chunk: slice) -> Block:
        """Return the edges into consecutive nodes; their sources keep the graph's numbers."""
        start, stop, _ = chunk.indices(self.n_nodes)
        ends = self.indptr[start : stop + 1]
        return Block(
            torch.from_numpy((ends - ends[0]).astype(np.int32)),
            torch.from_numpy(self.sources[ends[0] : ends[-1]]),
            torch.arange(start, stop, dtype=torch.int32),
            self.n_nodes,
        )

    def everything(self, n_layers: int) -> Reach:
        """Return the whole graph as blocks, every node a target."""
        block = Block(
            torch.from_numpy(self.indptr.astype(np.int32, copy=False)),
            torch.from_numpy(self.sources),
            torch.arange(self.n_nodes, dtype=torch.int32),
            self.n_nodes,
        )
        return Reach(np.arange(self.n_nodes), (block,) * n_layers)

    def reach(
        self,
        targets: NDArray[np.int64],
        fan_outs: Sequence[int | None],
        rng: np.random.Generator | None = None,
    ) -> Reach:
        """Find what reaches the distinct `targets`; `fan_outs` has an entry a layer, first first.

        None takes all neighbours; a number takes that many without replacement (and the node
        itself besides), drawn with `rng`.
        """
        blocks: list[Block] = []
        nodes = np.asarray(targets)
        for fan_out in reversed(fan_outs):
            block, nodes = self._block(nodes, fan_out, rng)
            blocks.append(block)
        return Reach(nodes, tuple(reversed(blocks)))

    def _block(
        self, targets: NDArray[np.int64], fan_out: int | None, rng: np.random.Generator | None
    ) -> tuple[Block, NDArray[np.int64]]:
        starts, stops = self.indptr[targets], self.indptr[targets + 1]
        if fan_out is None:
            edges, indptr = _ranges(starts, stops - starts)
        else:
            if rng is None:
                raise ValueError("sampling neighbours needs a random generator")
            edges, indptr = _sampled_ranges(starts, stops, fan_out, rng)
        sources = self.sources[edges]
        reached = np.zeros(self.n_nodes, dtype=np.bool_)
        reached[sources] = True
        inputs = np.flatnonzero(reached)
        number = np.empty(self.n_nodes, dtype=np.int32)
        number[inputs] = np.arange(len(inputs), dtype=np.int32)
        block = Block(
            torch.from_numpy(indptr),
            torch.from_numpy(number[sources]),
            torch.from_numpy(number[targets]),
            len(inputs),
        )
        return block, inputs


def _ranges(starts: IndexArray, lengths: IndexArray) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """List `starts[i], starts[i] + 1, …` (`lengths[i]` of them) for all i, and their borders."""
    indptr = np.zeros(len(starts) + 1, dtype=np.int64)
    np.cumsum(lengths, out=indptr[1:])
    edges = np.arange(indptr[-1]) + np.repeat(starts - indptr[:-1], lengths)
    return edges, indptr.astype(np.int32)


def _sampled_ranges(
    starts: IndexArray, stops: IndexArray, fan_out: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Draw at most `fan_out` entries of each range without replacement, and keep its last.

    The last entry of each range is the added self-loop. Floyd's algorithm, all ranges at once:
    for j = n - k … n - 1 draw t in [0, j] and take t, or j where t was taken before.
    """
    n_neighbours = (stops - starts - 1).astype(np.int64)
    fan_out = min(fan_out, int(n_neighbours.max(initial=0)))
    taken = np.minimum(n_neighbours, fan_out)
    picks = np.broadcast_to(np.arange(fan_out), (len(starts), fan_out)).copy()
    many = np.flatnonzero(n_neighbours > fan_out)
    chosen = np.empty((len(many), fan_out), dtype=np.int64)
    for k in range(fan_out):
        j = n_neighbours[many] - fan_out + k
        draw = (rng.random(len(many)) * (j + 1)).astype(np.int64)
        repeated = (chosen[:, :k] == draw[:, None]).any(axis=1)
        chosen[:, k] = np.where(repeated, j, draw)
    picks[many] = chosen
    kept = np.arange(fan_out) < taken[:, None]
    edges, indptr = _ranges(starts, taken + 1)
    loops = np.zeros(len(edges), dtype=np.bool_)
    loops[indptr[1:] - 1] = True
    edges[loops] = stops - 1
    edges[~loops] = (starts[:, None] + picks)[kept]
    return edges, indptr
