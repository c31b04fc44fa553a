"""Products of rows at both ends of the edges of a block: a dense product sampled at the edges."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor

from openima.graph.blocks import Block


def edge_products(targets: Tensor, sources: Tensor, block: Block) -> Tensor:
    """Return targets[t] . sources[s] for each edge s -> t of the block, (E,)."""
    if block.n_edges == 0:
        return targets.new_zeros(0)
    if block.n_edges > block.n_targets * block.n_sources:  # the sampled product allows no more
        return (targets @ sources.t())[block.targets, block.sources]
    pattern = _csr(
        block.indptr,
        block.sources,
        targets.new_zeros(block.n_edges),
        (block.n_targets, block.n_sources),
    )
    sampled: Tensor = torch.sparse.sampled_addmm(pattern, targets, sources.t(), beta=0.0)
    return sampled.values()


def _csr(indptr: Tensor, columns: Tensor, values: Tensor, size: tuple[int, int]) -> Tensor:
    return torch.sparse_csr_tensor(indptr, columns, values, size, check_invariants=False)


# torch says once a process that CSR tensors are in beta; users need not hear it.
with warnings.catch_warnings():
    warnings.simplefilter("ignore", UserWarning)
    _csr(torch.tensor([0, 0]), torch.tensor([], dtype=torch.int64), torch.tensor([]), (1, 1))
