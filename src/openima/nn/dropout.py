"""Dropout whose masks are cheap to draw: sixteen random bits decide on each value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

_LEVELS = 1 << 16
_PART = 1 << 18


def keep_mask(shape: torch.Size, p: float, generator: torch.Generator) -> Tensor:
    """Draw which values stay, each with probability 1 - p (to within 2**-16), as booleans.

    Drawing 64 bits and splitting them in four takes a tenth of the time that a Bernoulli draw
    a value takes.
    """
    n = shape.numel()
    words = torch.empty((n + 3) // 4, dtype=torch.int64, device=generator.device)
    words.random_(-(1 << 63), None, generator=generator)
    bits = words.view(torch.int16)[:n].view(shape)
    return bits >= min(round(p * _LEVELS), _LEVELS - 1) - _LEVELS // 2


def places(mask: Tensor) -> Tensor:
    """Return where a contiguous mask is true, as places in it laid out flat."""
    flat = mask.view(-1)
    if flat.device.type != "cpu":
        return flat.nonzero().view(-1)
    return torch.from_numpy(np.flatnonzero(flat.numpy()))  # torch takes ten times as long


def counts_before(mask: Tensor) -> Tensor:
    """Count what is true before each place of a contiguous mask, laid out flat; the last is all."""
    flat = mask.view(-1)
    counts = torch.zeros(len(flat) + 1, dtype=torch.int32, device=mask.device)
    torch.cumsum(flat, 0, dtype=torch.int32, out=counts[1:])
    return counts


def dropout(x: Tensor, p: float, generator: torch.Generator | None) -> Tensor:
    """Set each value to zero with probability p and scale the rest by 1 / (1 - p).

    Without a generator (evaluation) or with p = 0, `x` comes back as it is.
    """
    if generator is None or p == 0.0:
        return x
    return _dropout(x, keep_mask(x.shape, p, generator), 1.0 / (1.0 - p))


class _Dropout(torch.autograd.Function):
    """x * mask * scale, keeping one byte a value for the gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, mask: Tensor, scale: float) -> Tensor:
        ctx.save_for_backward(mask)
        ctx.scale = scale
        return masked(x, mask, scale)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        return masked(grads[0], ctx.saved_tensors[0], ctx.scale), None, None


_dropout: Callable[..., Tensor] = _Dropout.apply


def elu_dropout_(x: Tensor, p: float, generator: torch.Generator | None) -> Tensor:
    """Apply ELU and then dropout in place, keeping one copy of the result for the gradient.

    The gradient that comes back is overwritten as well: it must be nobody else's.
    """
    if generator is None or p == 0.0:
        return F.elu_(x)
    return _elu_dropout(x, keep_mask(x.shape, p, generator), 1.0 / (1.0 - p))


class _EluDropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, mask: Tensor, scale: float) -> Tensor:
        ctx.mark_dirty(x)
        for part, kept in _parts(x, mask):
            F.elu_(part).mul_(kept.view(torch.uint8).to(x.dtype).mul_(scale))
        ctx.save_for_backward(x, mask)
        ctx.scale = scale
        return x

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        # Where a value y of ELU was kept, the slope is 1 for y > 0 and y + 1 below.
        out, mask = ctx.saved_tensors
        d_x = grads[0].contiguous()
        for part, value, kept in _parts(d_x, out, mask):
            part.mul_(kept.view(torch.uint8).to(part.dtype).mul_(ctx.scale))
            part.mul_((value * (1.0 / ctx.scale)).clamp_(max=0.0).add_(1.0))
        return d_x, None, None


_elu_dropout: Callable[..., Tensor] = _EluDropout.apply


def masked(x: Tensor, mask: Tensor, scale: float) -> Tensor:
    """Return x * mask * scale in one new tensor."""
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    for part, value, kept in _parts(out, x.contiguous(), mask):
        part.copy_(kept.view(torch.uint8)).mul_(scale).mul_(value)  # bools convert slowly
    return out


def _parts(*tensors: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Cut contiguous tensors of one size into parts whose temporaries stay in a CPU's cache."""
    if tensors[0].device.type != "cpu":
        return iter([tensors])
    return zip(*(torch.split(tensor.view(-1), _PART) for tensor in tensors), strict=True)
