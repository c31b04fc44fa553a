"""The contrastive loss that InfoNCE and SupCon share; only the ids they are given differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

BASE_TEMPERATURE = 0.07
"""The reference code multiplies its losses by temperature / 0.07, which the paper leaves out."""


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
    """sum_i weight_i log sum_{k != i} exp(z_i . z_k / t), holding one m x m matrix."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, weight: Tensor, temperature: float) -> Tensor:
        top = (z * z).sum(1).max() / temperature  # bounds every product: no overflow
        similar = torch.mm(z, z.t()).div_(temperature).sub_(top).exp_()
        similar.fill_diagonal_(0.0)
        totals = similar.sum(1).clamp_(min=torch.finfo(z.dtype).tiny)
        ctx.save_for_backward(z, similar, weight / totals)
        ctx.temperature = temperature
        return (weight * (totals.log() + top)).sum()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        # d/dz_i: row i and, the matrix being symmetric, column i of the softmax.
        z, similar, share = ctx.saved_tensors
        by_row, by_column = torch.mm(similar, torch.cat([z, share[:, None] * z], 1)).chunk(2, 1)
        d_z = by_column.addcmul(share[:, None], by_row)
        return d_z.mul_(grads[0] / ctx.temperature), None, None


_repulsion: Callable[..., Tensor] = _Repulsion.apply
