"""Products of rows at both ends of edges: a dense product sampled at the edges."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor


def edge_products(targets: Tensor, sources: Tensor, indptr: Tensor, columns: Tensor) -> Tensor:
    """Return targets[t] . sources[s] for each edge s -> t of a CSR pattern, (E,).

    The edges into t come from columns[indptr[t]:indptr[t + 1]].
    """
    n_edges, shape = len(columns), (len(targets), len(sources))
    if n_edges == 0:
        return targets.new_zeros(0)
    if n_edges > len(targets) * len(sources):  # the sampled product allows no more
        rows = torch.arange(len(targets), device=indptr.device).repeat_interleave(indptr.diff())
        return (targets @ sources.t())[rows, columns]
    pattern = _csr(indptr, columns, targets.new_zeros(n_edges), shape)
    sampled: Tensor = torch.sparse.sampled_addmm(pattern, targets, sources.t(), beta=0.0)
    return sampled.values()


def _csr(indptr: Tensor, columns: Tensor, values: Tensor, size: tuple[int, int]) -> Tensor:
    return torch.sparse_csr_tensor(indptr, columns, values, size, check_invariants=False)


# torch says once a process that CSR tensors are in beta; users need not hear it.
with warnings.catch_warnings():
    warnings.simplefilter("ignore", UserWarning)
    _csr(torch.tensor([0, 0]), torch.tensor([], dtype=torch.int64), torch.tensor([]), (1, 1))
