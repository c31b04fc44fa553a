"""The contrastive loss that InfoNCE and SupCon share; only the ids they are given differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from openima.nn.products import matmul

BASE_TEMPERATURE = 0.07
"""The reference code multiplies its losses by temperature / 0.07, which the paper leaves out."""

LOWEST_TEMPERATURE = 0.025
"""Below 2 / 87, exp of the least similarity of unit rows over that of the largest is zero."""

TILE = {"cpu": 1024, "cuda": 8192}
"""Rows of a tile of similarities: on a CPU it fits the cache, on a GPU it keeps all units busy."""

KEPT = 64 << 20
"""Bytes that tiles may take to be kept for the gradient; those of 4,096 rows take 42 MB."""


def contrastive(
    z: Tensor, ids: Tensor, temperature: float, base_temperature: float | None = BASE_TEMPERATURE
) -> Tensor:
    """Pull rows with equal ids together and push all others apart; returns a scalar.

    `z` is (m, d) with unit rows and `ids` is (m,). With P(i) the other rows that have the id of
    row i, the loss is the mean over the rows i that have such company of

        (1 / |P(i)|) sum_{j in P(i)} -log( exp(z_i . z_j / t) / sum_{k != i} exp(z_i . z_k / t) )

    times t / base_temperature (None: times 1, as the paper writes it). A node without a label
    gets an id of its own, which its two views share: InfoNCE is the case of all ids unique.
    """
    _, group, size = torch.unique(ids, return_inverse=True, return_counts=True)
    others = size[group] - 1
    anchors = others > 0
    n_anchors = int(anchors.sum())
    if n_anchors == 0:
        return z.sum() * 0.0
    # The similarities to all positives of a row add up to one product with their sum.
    sums = z.new_zeros(len(size), z.shape[1]).index_add(0, group, z)
    to_positives = (z * (sums[group] - z)).sum(1) / temperature
    weight = anchors.to(z.dtype) / n_anchors
    attraction = (weight * to_positives / others.clamp(min=1)).sum()
    scale = 1.0 if base_temperature is None else temperature / base_temperature
    loss: Tensor = scale * (_repulsion(z, weight, temperature) - attraction)
    return loss


class _Repulsion(torch.autograd.Function):
    """sum_i weight_i log sum_{k != i} exp(z_i . z_k / t), in tiles of the m x m similarities.

    The matrix is symmetric: only tiles on and above its diagonal are computed. The gradient needs
    them too; of many rows they would take too much memory, and are computed again.
    """

    @staticmethod
    def forward(ctx: Any, z: Tensor, weight: Tensor, temperature: float) -> Tensor:
        top = (z * z).sum(1).max() / temperature  # bounds every product: no overflow
        totals = z.new_zeros(len(z))
        ctx.kept = [] if tiles_are_kept(z) else None
        for rows, columns, tile in _tiles(z, temperature, top):
            if ctx.kept is not None:
                ctx.kept.append((rows, columns, tile))
            totals[rows] += tile.sum(1)
            if rows != columns:
                totals[columns] += tile.sum(0)
        totals.clamp_(min=torch.finfo(z.dtype).tiny)
        ctx.save_for_backward(z, weight / totals, top)
        ctx.temperature = temperature
        return (weight * (totals.log() + top)).sum()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        # z_i appears in row i and, by symmetry, in column i of the softmax.
        z, share, top = ctx.saved_tensors
        kept, ctx.kept = ctx.kept, None  # the encoder's backward pass has use for their memory
        d_z = torch.zeros_like(z)
        for rows, columns, tile in _used_up(kept) if kept else _tiles(z, ctx.temperature, top):
            weighted = (share[rows, None] + share[columns]).mul_(tile)
            d_z[rows] += matmul(weighted, z[columns])
            if rows != columns:
                d_z[columns] += matmul(z[rows].t(), weighted).t()
        return d_z.mul_(grads[0] / ctx.temperature), None, None


_repulsion: Callable[..., Tensor] = _Repulsion.apply


def tiles_are_kept(z: Tensor) -> bool:
    """Whether the tiles on and above the diagonal are few enough to be kept for the gradient."""
    return len(z) * (len(z) + TILE[z.device.type]) // 2 * z.element_size() <= KEPT


_Tile = tuple[slice, slice, Tensor]


def _used_up(tiles: list[_Tile]) -> Iterator[_Tile]:
    """Yield tiles and keep no hold of them."""
    tiles.reverse()
    while tiles:
        yield tiles.pop()


def _tiles(z: Tensor, temperature: float, top: Tensor) -> Iterator[_Tile]:
    """Yield exp(z_i . z_j / t - top), zero for i = j, for tiles on and above the diagonal."""
    scaled = z / temperature
    size = TILE[z.device.type]
    slices = [slice(start, start + size) for start in range(0, len(z), size)]
    for number, rows in enumerate(slices):
        for columns in slices[number:]:
            tile = matmul(scaled[rows], z[columns].t()).sub_(top).exp_()
            if rows == columns:
                tile.fill_diagonal_(0.0)
            yield rows, columns, tile
