"""Sparse rows times dense weights, with the gradient of the weights, in no dense copy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from openima.graph.blocks import sort_by_column
from openima.nn.attention import weighted_sums


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
        out = weight.new_empty(len(weight), len(indptr) - 1, weight.shape[2])
        for h, of_head in enumerate(weight):
            out[h] = weighted_sums(of_head, columns, indptr, values)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        indptr, columns, values = ctx.saved_tensors
        grad = grads[0].contiguous()
        back = sort_by_column(indptr, columns, ctx.n_columns)
        by_column = values.index_select(0, back.entries)
        d_weight = grad.new_empty(len(grad), ctx.n_columns, grad.shape[2])
        for h, of_head in enumerate(grad):
            d_weight[h] = weighted_sums(of_head, back.rows, back.indptr, by_column)
        return d_weight, None, None, None


_sparse_matmul: Callable[..., Tensor] = _SparseMatmul.apply
