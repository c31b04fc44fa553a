"""Classifiers and projectors on top of the embeddings."""

from __future__ import annotations

import math
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from openima.nn.products import project


def linear_head(n_inputs: int, n_classes: int, generator: torch.Generator) -> nn.Linear:
    """Make a linear classifier with bias, drawn (Xavier normal, gain sqrt 2) from `generator`."""
    head = nn.Linear(n_inputs, n_classes, device="meta").to_empty(device="cpu")
    nn.init.xavier_normal_(head.weight, gain=math.sqrt(2.0), generator=generator)
    nn.init.zeros_(head.bias)
    return head


class CosineHead(nn.Module):
    """A classifier whose logits are `scale` times the cosines to one direction a class.

    The length of the class's weights does not count; they start at unit length.
    """

    def __init__(
        self, n_inputs: int, n_classes: int, scale: float, generator: torch.Generator
    ) -> None:
        """Draw the directions uniformly from `generator`."""
        super().__init__()
        self.scale = scale
        drawn = torch.randn(n_classes, n_inputs, generator=generator)
        self.weight = nn.Parameter(F.normalize(drawn, dim=1))

    def forward(self, z: Tensor) -> Tensor:
        """Return the logits (n, C) of unit rows (n, d)."""
        return self.scale * F.linear(z, F.normalize(self.weight, dim=1))


class Projector(nn.Module):
    """A perceptron with GELU between its layers, whose outputs have unit length."""

    def __init__(self, widths: tuple[int, ...], generator: torch.Generator) -> None:
        """Draw the weights (normal with spread 0.02, cut off at 2) from `generator`."""
        super().__init__()
        weights = [torch.empty(pair) for pair in pairwise(widths)]
        for weight in weights:
            nn.init.trunc_normal_(weight, std=0.02, generator=generator)
        self.weights = nn.ParameterList(weights)
        self.biases = nn.ParameterList(torch.zeros(width) for width in widths[1:])

    def forward(self, x: Tensor) -> Tensor:
        """Map rows (n, widths[0]) to unit rows (n, widths[-1])."""
        last = len(self.weights) - 1
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            x = project(x, weight[None])[0] + bias
            x = x if layer == last else F.gelu(x)
        return F.normalize(x, dim=1)
