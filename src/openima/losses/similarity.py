"""Predictions that are as alike as a network says the nodes are."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor


def similarity_regression(p: Tensor, similarity: Tensor, weight: Tensor) -> Tensor:
    """Return sum_ij w_i w_j (cos(p_i, p_j) - q_ij)^2 over all ordered pairs, i = j included.

    `p` (n, C) are predictions, `similarity` q (n, n) what they ought to have in common, and
    `weight` w (n,) the share of each node, which add up to 1.
    """
    direction = F.normalize(p, dim=1)
    difference = direction @ direction.t() - similarity
    return weight @ difference.square() @ weight
