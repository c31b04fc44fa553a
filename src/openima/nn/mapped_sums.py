"""Weighted sums of rows that all heads share, mapped head by head, and their gradient.

A large block is gone through some targets at a time: the rows that these reach are then still in
the cache when the next head wants them, and temporaries stay small enough to be reused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from openima.graph.blocks import Block, EdgesBySource
from openima.nn.csr import weighted_sums
from openima.nn.edge_products import edge_products
from openima.nn.products import matmul

LARGE = 1 << 16
"""Targets from which on a block is gone through in parts, on a CPU."""

PART = 1 << 10
"""Targets of a part. With ten neighbours each, they reach about four megabytes."""


def mapped_sums(pieces: Tensor, maps: Tensor, weights: Tensor, block: Block) -> Tensor:
    """Sum the rows of each target's sources and map the sums; returns (H, n_targets, D).

    The rows are `pieces` (C, n_sources, W), the maps (H, C * W, D), the weights (H, E).
    """
    out = pieces.new_empty(len(weights), block.n_targets, maps.shape[2])
    for part in _parts(block):
        for h, weight in enumerate(weights):
            sums = _joined_sums(pieces, weight[part.edges], part.block)
            out[h, part.targets] = matmul(sums, maps[h])
    return out


class Gradients(NamedTuple):
    """What a gradient of the mapped sums is to the maps, to the weights (H, E), and to the sums.

    The latter are C pieces (H, n_targets, W), tensors of their own, which the allocator reuses
    where it would hand back one for all; None where they are not needed.
    """

    maps: Tensor
    weights: Tensor
    sums: list[Tensor] | None


def gradients(
    grad: Tensor,
    pieces: Tensor,
    maps: Tensor,
    weights: Tensor,
    block: Block,
    *,
    to_sums: bool,
) -> Gradients:
    """Send the gradient `grad` (H, n_targets, D) back; the sums are made again."""
    n_pieces, _, width = pieces.shape
    d_maps = torch.zeros_like(maps)
    d_weights = torch.zeros_like(weights)
    shape = len(grad), block.n_targets, width
    d_sums = [grad.new_empty(shape) for _ in pieces] if to_sums else None
    for part in _parts(block):
        if d_sums is None:
            d_parts = [grad.new_empty(len(grad), part.block.n_targets, width) for _ in pieces]
        else:
            d_parts = [of_piece[:, part.targets] for of_piece in d_sums]
        for h, weight in enumerate(weights):
            of_head = grad[h, part.targets]
            sums = _joined_sums(pieces, weight[part.edges], part.block)
            d_maps[h] += matmul(of_head.t(), sums).t()
            d_joined = matmul(of_head, maps[h].t()).chunk(n_pieces, dim=1)
            for d_part, of_piece in zip(d_parts, d_joined, strict=True):
                d_part[h] = of_piece
        for d_part, rows in zip(d_parts, pieces, strict=True):  # one piece at a time, to be cached
            for h, of_head in enumerate(d_part):
                d_weights[h, part.edges] += edge_products(of_head, rows, part.block)
    return Gradients(d_maps, d_weights, d_sums)


def to_pieces(d_sums: Sequence[Tensor], weights: Tensor, back: EdgesBySource) -> Tensor:
    """Send the gradient of the sums on to the shared rows, (C, n_sources, W).

    `weights` (E, H) are in order of the sources. One bag a source holds all its edges and heads:
    row h * n_targets + t of the gradient.
    """
    n_heads, n_targets, width = d_sums[0].shape
    offsets = torch.arange(n_heads, dtype=torch.int32, device=weights.device) * n_targets
    rows = (back.rows[:, None] + offsets).view(-1)
    indptr = back.indptr * n_heads
    d_values = weights.new_empty(len(d_sums), len(indptr) - 1, width)
    for c, of_piece in enumerate(d_sums):
        d_values[c] = weighted_sums(of_piece.view(-1, width), rows, indptr, weights.view(-1))
    return d_values


class _Part(NamedTuple):
    """Consecutive targets of a block, their edges, and both as a block of their own."""

    targets: slice
    edges: slice
    block: Block


def _parts(block: Block) -> Iterator[_Part]:
    n = block.n_targets
    if n < LARGE or block.indptr.device.type != "cpu":
        yield _Part(slice(n), slice(block.n_edges), block)
        return
    for start in range(0, n, PART):
        stop = min(start + PART, n)
        indptr = block.indptr[start : stop + 1]
        edges = slice(int(indptr[0]), int(indptr[-1]))
        own = Block(
            indptr - indptr[0],
            block.sources[edges],
            block.self_rows[start:stop],
            block.n_sources,
        )
        yield _Part(slice(start, stop), edges, own)


def _joined_sums(pieces: Tensor, weight: Tensor, block: Block) -> Tensor:
    """Sum pieces (C, n_sources, W) with one head's weights (E,); returns (n_targets, C * W)."""
    n_pieces, _, width = pieces.shape
    sums = pieces.new_empty(block.n_targets, n_pieces, width)
    for c, rows in enumerate(pieces):
        sums[:, c] = weighted_sums(rows, block.sources, block.indptr, weight)
    return sums.view(block.n_targets, n_pieces * width)
