"""What one view says with confidence is what the other view is to learn."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor


def consistency(
    strong: Tensor, weak: Tensor, threshold: float, temperature: float | None = None
) -> Tensor:
    """Return the sum of confident nodes' cross-entropies, over the number of all nodes.

    Both are logits (n, C) of the same nodes. A node counts if its largest softmax(weak) is at
    least `threshold`; the target of softmax(strong) is then that class, or softmax(weak / t)
    where a `temperature` t is given. No gradient flows into `weak`. 0 without nodes.
    """
    weak = weak.detach()
    confidence, label = weak.softmax(1).max(1)
    target = label if temperature is None else (weak / temperature).softmax(1)
    losses = F.cross_entropy(strong, target, reduction="none")
    return (losses * (confidence >= threshold)).sum() / max(1, len(strong))
