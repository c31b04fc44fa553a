"""Dense products, by the fastest kernels that stock PyTorch has for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

# oneDNN's float32 product, twice as fast on AMD processors as the library behind `@`. It is what
# torch.compile emits for linear layers; where a build lacks it, `@` serves.
_LINEAR: Callable[..., Tensor] | None = getattr(torch.ops.mkldnn, "_linear_pointwise", None)


def matmul(a: Tensor, b: Tensor) -> Tensor:
    """Multiply (n, k) by (k, m), without gradient.

    Under `torch.set_float32_matmul_precision("medium")` float32 factors are rounded to bfloat16.
    """
    if _is_plain(a, b):
        return a @ b
    if torch.get_float32_matmul_precision() == "medium":
        return (a.bfloat16() @ b.bfloat16()).float()
    return float32_matmul(a, b)


def float32_matmul(a: Tensor, b: Tensor) -> Tensor:
    """Multiply (n, k) by (k, m), without gradient, and never round factors."""
    if _LINEAR is None or _is_plain(a, b):
        return a @ b
    return _LINEAR(a, b.t(), None, "none", [], "")


def _is_plain(a: Tensor, b: Tensor) -> bool:
    return a.dtype != torch.float32 or a.device.type != "cpu" or 0 in (*a.shape, *b.shape)


def project(x: Tensor, weight: Tensor) -> Tensor:
    """Multiply rows (n, F) by each matrix of `weight` (H, F, D); returns (H, n, D)."""
    return _project(x, weight)


class _Project(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        out = x.new_empty(len(weight), len(x), weight.shape[2])
        for h, of_head in enumerate(weight):
            out[h] = matmul(x, of_head)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor | None]:
        x, weight = ctx.saved_tensors
        grad = grads[0]
        d_x = d_weight = None
        if ctx.needs_input_grad[0]:
            d_x = torch.zeros_like(x)
            for h, of_head in enumerate(weight):
                d_x += matmul(grad[h], of_head.t())
        if ctx.needs_input_grad[1]:
            d_weight = torch.empty_like(weight)
            for h in range(len(weight)):  # (g' x)' is faster than x' g
                d_weight[h] = matmul(grad[h].t(), x).t()
        return d_x, d_weight


_project: Callable[..., Tensor] = _Project.apply
