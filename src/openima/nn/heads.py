"""Classifiers on top of the embeddings."""

from __future__ import annotations

import math

import torch
from torch import nn


def linear_head(n_inputs: int, n_classes: int, generator: torch.Generator) -> nn.Linear:
    """Make a linear classifier with bias, drawn (Xavier normal, gain sqrt 2) from `generator`."""
    head = nn.Linear(n_inputs, n_classes, device="meta").to_empty(device="cpu")
    nn.init.xavier_normal_(head.weight, gain=math.sqrt(2.0), generator=generator)
    nn.init.zeros_(head.bias)
    return head
