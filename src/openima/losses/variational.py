"""The loss of a variational graph auto-encoder: what a code costs, and the links it gives back."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor


def divergence(mean: Tensor, log_sigma: Tensor) -> Tensor:
    """Return the divergence of normals from the standard normal, mean over nodes and dimensions.

    Both are (n, d); of each value it is -log sigma + (sigma^2 + mean^2 - 1) / 2.
    """
    return (0.5 * ((2.0 * log_sigma).exp() + mean.square() - 1.0) - log_sigma).mean()


def reconstruction(linked: Tensor, random: Tensor) -> Tensor:
    """Return the cross-entropy of telling links from random pairs by their inner products.

    `linked` (m,) and `random` (k,) are such products, and each kind counts by its mean; a kind
    of which there is none counts as 0.
    """
    of_linked = F.softplus(-linked).sum() / max(1, len(linked))
    return of_linked + F.softplus(random).sum() / max(1, len(random))
