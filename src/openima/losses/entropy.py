"""How evenly a distribution spreads over classes: held up, it keeps a head from collapsing."""

from __future__ import annotations

from torch import Tensor

FLOOR = 1e-8
"""Probabilities below this count as this, so that the logarithm and its slope stay finite."""


def entropy(probabilities: Tensor) -> Tensor:
    """Return -sum_c p_c log p_c over the last dimension, from 0 to log C."""
    p = probabilities.clamp(min=FLOOR)
    return -(p * p.log()).sum(-1)
