"""The gradient of a loss after a step, with respect to what the step depended on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

Loss = Callable[[], Tensor]

PROBE = 0.01
"""How far the finite difference looks, as the length of the way in the space of parameters."""


def gradient_after_step(
    inner: Loss,
    outer: Loss,
    coupling: Loss,
    moving: Sequence[Tensor],
    fixed: Sequence[Tensor],
    rate: float,
) -> list[Tensor]:
    """Return the gradient of outer(theta - rate * d inner / d theta) with respect to `fixed`.

    theta are the `moving` parameters; `outer` depends on `fixed` through the step alone, and
    `coupling` is the part of `inner` that depends on both. With v the gradient of `outer` after
    the step, the wanted one is -rate * d/d fixed (d coupling / d theta . v), and this directional
    derivative is taken as a difference of two gradients, at theta +- e v with e = 0.01 / |v|.
    So nothing is differentiated twice.

    The losses are computed where the parameters stand when they are called; they have to repeat
    their dropout by themselves. Afterwards all parameters are, to the bit, what they were.
    """
    with moved(moving, _gradients(inner(), moving), -rate):
        v = _gradients(outer(), moving)
    length = torch.stack([part.square().sum() for part in v]).sum().sqrt()
    probe = PROBE / length.clamp(min=torch.finfo(length.dtype).tiny ** 0.5)
    sides = []
    for way in (probe, -probe):
        with moved(moving, v, way):
            sides.append(_gradients(coupling(), fixed))
    return [(up - down) * (-rate / (2 * probe)) for up, down in zip(*sides, strict=True)]


@contextmanager
def moved(
    parameters: Sequence[Tensor], directions: Sequence[Tensor], by: Tensor | float
) -> Iterator[None]:
    """Move parameters for a while, and put them back to where they were."""
    before = [parameter.detach().clone() for parameter in parameters]
    with torch.no_grad():
        for parameter, direction in zip(parameters, directions, strict=True):
            parameter.add_(direction * by)
    try:
        yield
    finally:
        with torch.no_grad():
            for parameter, old in zip(parameters, before, strict=True):
                parameter.copy_(old)


def _gradients(loss: Tensor, parameters: Sequence[Tensor]) -> list[Tensor]:
    return list(
        torch.autograd.grad(loss, list(parameters), allow_unused=True, materialize_grads=True)
    )
