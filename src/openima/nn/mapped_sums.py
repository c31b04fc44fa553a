"""Weighted sums of rows that all heads share, mapped head by head, and their gradient.

A large block is gone through some targets at a time: the rows that these reach are then still in
the cache when the next head wants them, and temporaries stay small enough to be reused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from openima.nn.csr import Csr
from openima.nn.edge_products import edge_products
from openima.nn.products import matmul

LARGE = 1 << 16
"""Targets from which on a block is gone through in parts, on a CPU."""

PART = 1 << 10
"""Targets of a part. With ten neighbours each, they reach about four megabytes."""


def mapped_sums(pieces: Tensor, maps: Tensor, heads: Sequence[Csr]) -> Tensor:
    """Sum the rows of each target's sources and map the sums; returns (H, n_targets, D).

    The rows are `pieces` (C, n_sources, W), the maps (H, C * W, D), and `heads` the weights of the
    edges by target.
    """
    n_targets = len(heads[0].indptr) - 1
    out = pieces.new_empty(len(heads), n_targets, maps.shape[2])
    for part in _parts(heads):
        for h, edges in enumerate(part.edges):
            out[h, part.targets] = matmul(_joined_sums(pieces, edges), maps[h])
    return out


class Gradients(NamedTuple):
    """What a gradient of the mapped sums is to the rows, the maps, and the weights of each head.

    That of the rows is None where it is not needed.
    """

    pieces: Tensor | None
    maps: Tensor
    weights: list[Tensor]


def gradients(
    grad: Tensor, pieces: Tensor, maps: Tensor, heads: Sequence[Csr], back: Csr | None
) -> Gradients:
    """Send the gradient `grad` (H, n_targets, D) back, one piece after the other.

    The sums are made again; of what they are sent, never more than a piece is there. `back` holds
    the edges of all heads by source, with target t of head h numbered h * n_targets + t; without
    it nothing is sent on to the rows.
    """
    n_heads, n_targets, _ = grad.shape
    width = pieces.shape[2]
    d_pieces = None if back is None else torch.empty_like(pieces)
    d_maps = torch.zeros_like(maps)
    d_weights = [torch.zeros_like(head.values) for head in heads]
    turned = [of_head.t().contiguous() for of_head in grad]
    parts = list(_parts(heads))
    for c, rows in enumerate(pieces):
        columns = slice(c * width, (c + 1) * width)
        d_sums = None if back is None else grad.new_empty(n_heads, n_targets, width)
        for part in parts:
            for h, edges in enumerate(part.edges):
                d_maps[h, columns] += matmul(turned[h][:, part.targets], edges.times(rows)).t()
                d_own = matmul(grad[h, part.targets], maps[h, columns].t())
                found = edge_products(d_own, rows, edges.indptr, edges.columns)
                d_weights[h][part.entries[h]] += found
                if d_sums is not None:
                    d_sums[h, part.targets] = d_own
        if d_pieces is not None and d_sums is not None and back is not None:
            d_pieces[c] = back.times(d_sums.view(-1, width))
    return Gradients(d_pieces, d_maps, d_weights)


class _Part(NamedTuple):
    """Consecutive targets, and of each head their edges and which entries these are."""

    targets: slice
    edges: list[Csr]
    entries: list[slice]


def _parts(heads: Sequence[Csr]) -> Iterator[_Part]:
    n_targets = len(heads[0].indptr) - 1
    if n_targets < LARGE or heads[0].indptr.device.type != "cpu":
        whole = [slice(len(head.values)) for head in heads]
        yield _Part(slice(n_targets), list(heads), whole)
        return
    for start in range(0, n_targets, PART):
        targets = slice(start, min(start + PART, n_targets))
        ends = [(int(h.indptr[targets.start]), int(h.indptr[targets.stop])) for h in heads]
        yield _Part(targets, [h.part(targets) for h in heads], [slice(*pair) for pair in ends])


def _joined_sums(pieces: Tensor, edges: Csr) -> Tensor:
    """Sum pieces (C, n_sources, W) with one head's weights; returns (n_targets, C * W)."""
    n_pieces, _, width = pieces.shape
    sums = pieces.new_empty(len(edges.indptr) - 1, n_pieces, width)
    for c, rows in enumerate(pieces):
        sums[:, c] = edges.times(rows)
    return sums.view(-1, n_pieces * width)
