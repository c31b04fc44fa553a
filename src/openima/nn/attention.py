"""Attention over in-edges: softmax, dropout and the weighted sum, as one differentiable step.

Nothing of size edges x heads x channels is ever held. The gradient of the weights is a dense
product sampled at the edges, and every sum over edges follows their sorted order by target or by
source, so nothing is scattered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from openima.graph.blocks import Block
from openima.nn.csr import Csr, Factor, gathered_sum, segment_sum, sums_by_head
from openima.nn.dropout import keep_mask
from openima.nn.edge_products import edge_products
from openima.nn.head_edges import HeadEdges
from openima.nn.mapped_sums import gradients, mapped_sums


def attend(
    values: Tensor,
    source_scores: Tensor,
    target_scores: Tensor,
    block: Block,
    *,
    maps: Tensor | None = None,
    factor: Factor | None = None,
    slope: float = 0.2,
    above: float = 1.0,
    p: float = 0.0,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Sum each target's sources, weighted by attention; returns (H, n_targets, D).

    The weight of edge s -> t in head h is the softmax, over the edges into t, of
    bent(source_scores[s, h] + target_scores[t, h]), and is then dropped with probability p if a
    generator is given. `bent` multiplies by `above` what is above zero, and by `slope` the rest:
    LeakyReLU by default, and -|x| with above=-1, slope=1. A target without edges gets zeros.
    What is summed is one of

    - `values` (H, n_sources, D);
    - with `factor`, a constant matrix (n_sources, F): its product with `values` (H, F, D);
    - with `maps` (H, C * W, D): `values` (C, n_sources, W), C pieces of rows that all heads share
      (about 128 columns stay in the cache). They are summed first, and the sums are mapped.

    Products and sums on the way are made a head at a time, in backward again, and not kept.
    """
    mask = None
    if generator is not None and p > 0.0:
        mask = keep_mask(torch.Size((block.n_edges, source_scores.shape[1])), p, generator)
    settings = _Settings(block, slope, above, p, factor)
    return _attend(values, maps, source_scores, target_scores, mask, settings)


class _Settings(NamedTuple):
    block: Block
    slope: float
    above: float
    p: float
    factor: Factor | None


class _Attend(torch.autograd.Function):
    """The forward pass and its gradient, written out."""

    @staticmethod
    def forward(
        ctx: Any,
        values: Tensor,
        maps: Tensor | None,
        source_scores: Tensor,
        target_scores: Tensor,
        mask: Tensor | None,
        settings: _Settings,
    ) -> Tensor:
        block = settings.block
        raw = _raw_scores(source_scores, target_scores, block)
        alpha = _softmax_over_in_edges(_bent_(raw, settings.slope, settings.above), block)
        ctx.save_for_backward(values, maps, source_scores, target_scores, alpha, mask)
        ctx.settings = settings
        heads = _edges(alpha, mask, settings).by_target()
        if maps is None:
            return sums_by_head(_products(values, settings.factor), heads)
        return mapped_sums(values, maps, heads)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        values, maps, source_scores, target_scores, alpha, mask = ctx.saved_tensors
        block, slope, above, _, factor = ctx.settings
        grad = grads[0].contiguous()
        edges = _edges(alpha, mask, ctx.settings)
        heads = edges.by_target()
        d_values = d_maps = None
        if maps is None:
            rows = zip(grad, _products(values, factor), heads, strict=True)
            d_weights = [edge_products(g, own, head.indptr, head.columns) for g, own, head in rows]
        else:
            joined = edges.by_source_joined() if ctx.needs_input_grad[0] else None
            d_values, d_maps, d_weights = gradients(grad, values, maps, heads, joined)
        d_alpha = edges.to_alpha(d_weights)
        del heads, d_weights  # lists of edges are large where nodes have many neighbours
        # Dropout, then softmax, then the bend, then the two score vectors.
        mean = segment_sum(alpha * d_alpha, block.indptr)
        d_scores = d_alpha.sub_(mean.index_select(0, block.targets)).mul_(alpha)
        falling = _raw_scores(source_scores, target_scores, block) <= 0
        bent = d_scores * slope
        if above != 1.0:
            d_scores *= above
        torch.where(falling, bent, d_scores, out=d_scores)
        back = block.by_source
        d_target = segment_sum(d_scores, block.indptr)
        d_source = gathered_sum(d_scores, back.entries, back.indptr)
        if maps is None and ctx.needs_input_grad[0]:
            del d_alpha, d_scores, falling, bent
            turned = None if factor is None else factor.transposed(values.shape[1])
            d_values = _to_values(grad, edges.by_source(), turned)
        return d_values, d_maps, d_source, d_target, None, None


_attend: Callable[..., Tensor] = _Attend.apply


def _products(values: Tensor, factor: Factor | None) -> Iterable[Tensor]:
    """Return the rows of each head, (n_sources, D); products are made when their turn comes."""
    return values if factor is None else (factor.times(of_head) for of_head in values)


def _to_values(grad: Tensor, heads: Sequence[Csr], turned: Factor | None) -> Tensor:
    """Send the gradient of the sums (H, n_targets, D) back along the edges to (H, n_sources, D).

    `heads` are the edges by source. Where the values are products with a factor, `turned` is that
    factor transposed, and the gradient goes on to its other factor.
    """
    if turned is None:
        return sums_by_head(grad, heads)
    sums = (head.times(of_head) for head, of_head in zip(heads, grad, strict=True))
    return torch.stack([turned.times(of_head) for of_head in sums])


def _edges(alpha: Tensor, mask: Tensor | None, settings: _Settings) -> HeadEdges:
    return HeadEdges(settings.block, alpha, mask, 1.0 / (1.0 - settings.p))


def _raw_scores(source: Tensor, target: Tensor, block: Block) -> Tensor:
    scores = source.index_select(0, block.sources)
    scores += target.index_select(0, block.targets)
    return scores


def _bent_(raw: Tensor, slope: float, above: float) -> Tensor:
    bent = F.leaky_relu_(raw, slope / above)
    return bent if above == 1.0 else bent.mul_(above)


def _softmax_over_in_edges(scores: Tensor, block: Block) -> Tensor:
    """Normalise `scores` (E, H) over the edges into each target; overwrites them."""
    top = torch.segment_reduce(scores, "max", offsets=block.indptr.long(), axis=0)
    scores.sub_(top.index_select(0, block.targets)).exp_()
    total = segment_sum(scores, block.indptr)
    return scores.div_(total.index_select(0, block.targets))
