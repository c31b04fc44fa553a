"""Sparse rows times dense weights, with the gradient of the weights, in no dense copy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from openima.nn.csr import Csr


def sparse_matmul(indptr: Tensor, columns: Tensor, values: Tensor, weight: Tensor) -> Tensor:
    """Multiply the CSR matrix (indptr, columns, values), n x F, by each of `weight` (H, F, D).

    Returns (H, n, D). The gradient reaches `weight` only; the matrix is data.
    """
    return _sparse_matmul(weight, indptr, columns, values)


class _SparseMatmul(torch.autograd.Function):
    """Bags of weight rows forward; bags of gradient rows, by column, backward."""

    @staticmethod
    def forward(
        ctx: Any, weight: Tensor, indptr: Tensor, columns: Tensor, values: Tensor
    ) -> Tensor:
        ctx.save_for_backward(indptr, columns, values)
        ctx.n_columns = weight.shape[1]
        matrix = Csr(indptr, columns, values)
        return torch.stack([matrix.times(of_head) for of_head in weight])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        turned = Csr(*ctx.saved_tensors).transposed(ctx.n_columns)
        d_weight = torch.stack([turned.times(of_head) for of_head in grads[0].contiguous()])
        return d_weight, None, None, None


_sparse_matmul: Callable[..., Tensor] = _SparseMatmul.apply
