"""Inner products of chosen pairs of rows: linked nodes, and nodes taken at random."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from openima.graph.blocks import Block
from openima.nn.csr import weighted_sums
from openima.nn.edge_products import edge_products


def links_between_targets(block: Block) -> Block:
    """Keep the edges whose source is a target too, numbered as such; loops are left out."""
    numbers = torch.arange(block.n_targets, dtype=torch.int32, device=block.indptr.device)
    as_target = torch.full((block.n_sources,), -1, dtype=torch.int32, device=numbers.device)
    as_target[block.self_rows.long()] = numbers
    sources = as_target.index_select(0, block.sources)
    kept = (sources >= 0) & (sources != block.targets)
    n_before = torch.zeros(block.n_edges + 1, dtype=torch.int32, device=numbers.device)
    torch.cumsum(kept, 0, dtype=torch.int32, out=n_before[1:])
    indptr = n_before.index_select(0, block.indptr)
    return Block(indptr, sources[kept], numbers, block.n_targets)


def random_pairs(n: int, n_pairs: int, generator: torch.Generator) -> Block:
    """Draw pairs of `n` nodes, uniformly and with replacement."""
    device = generator.device
    ends = torch.randint(n, (2, n_pairs), generator=generator, device=device)
    indptr = torch.zeros(n + 1, dtype=torch.int32, device=device)
    torch.cumsum(torch.bincount(ends[0], minlength=n), 0, dtype=torch.int32, out=indptr[1:])
    numbers = torch.arange(n, dtype=torch.int32, device=device)
    return Block(indptr, ends[1].int(), numbers, n)


def pair_products(rows: Tensor, pairs: Block) -> Tensor:
    """Return rows[s] . rows[t] for each pair s -> t, (n_pairs,), from `rows` (n, d).

    Neither forward nor backward holds anything of pairs x d.
    """
    return _pair_products(rows, pairs)


class _PairProducts(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, pairs: Block) -> Tensor:
        ctx.save_for_backward(rows)
        ctx.pairs = pairs
        return edge_products(rows, rows, pairs.indptr, pairs.sources)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (rows,) = ctx.saved_tensors
        pairs, grad = ctx.pairs, grads[0].contiguous()
        back = pairs.by_source
        by_source = grad.index_select(0, back.entries)
        d_rows = weighted_sums(rows, pairs.sources, pairs.indptr, grad)
        d_rows += weighted_sums(rows, back.rows, back.indptr, by_source)
        return d_rows, None


_pair_products: Callable[..., Tensor] = _PairProducts.apply
