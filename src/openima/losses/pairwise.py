"""Nodes in pairs that ought to have the same class, and how far a head is from agreeing."""

from __future__ import annotations

import torch
from torch import Tensor

from openima.nn.products import matmul

TILE = 1024
"""Rows whose similarities to all others are held at once."""

LEAST_LOG = -100.0
"""Agreement below exp(-100) counts as that, so that one pair cannot outweigh all others."""


def agreement_loss(first: Tensor, second: Tensor) -> Tensor:
    """Return the mean over rows of -log <softmax(first_i), softmax(second_i)>, of logits (n, C).

    The product of the two is the probability that classes drawn from both are equal.
    """
    log_joint = first.log_softmax(1) + second.log_softmax(1)
    return -log_joint.logsumexp(1).clamp(min=LEAST_LOG).mean()


@torch.no_grad()
def nearest_others(z: Tensor) -> Tensor:
    """Return, for each unit row of `z` (n, d), the other row most like it, (n,).

    A row that is alone is its own. No gradient flows through the choice.
    """
    nearest = [torch.empty(0, dtype=torch.int64, device=z.device)]
    for start in range(0, len(z), TILE):
        similarity = matmul(z[start : start + TILE], z.t())
        similarity.diagonal(start).fill_(-torch.inf)
        nearest.append(similarity.argmax(1))
    return torch.cat(nearest)


def same_label_partners(labels: Tensor, generator: torch.Generator) -> Tensor:
    """Draw, for each row, another row with the same of the `labels` (n,), all equally likely.

    A row alone with its label is its own partner. `generator` must be on the labels' device.
    """
    order = torch.argsort(labels, stable=True)  # rows with one label now stand side by side
    _, group, size = torch.unique(labels, return_inverse=True, return_counts=True)
    start = size.cumsum(0) - size
    others = size[group] - 1
    # A step of 1 to `others` places, round the end of the group, is never back to oneself.
    draw = torch.rand(len(labels), generator=generator, device=labels.device, dtype=torch.float64)
    step = torch.minimum((draw * others).long() + 1, others)
    place = torch.empty_like(order)
    place[order] = torch.arange(len(order), device=labels.device)
    first = start[group]
    return order[first + (place - first + step) % size[group]]
