"""What detectors of new classes are trained with besides cross-entropy (OODGAT, OpenWGL)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def entropies(logits: Tensor) -> Tensor:
    """Return the entropy of each row's softmax, (n,), from logits (n, C)."""
    log_p = F.log_softmax(logits, dim=1)
    return -(log_p.exp() * log_p).sum(1)


def disagreement(scores: Tensor, entropy: Tensor) -> Tensor:
    """Ask that nodes score high where the classifier is unsure; returns a scalar from -1.

    `scores` (n, L) are those of L layers and `entropy` is (n,). The loss is minus the cosine of
    sigmoid(scores) and sigmoid(standardised entropy) over the nodes, mean over layers.
    """
    deviation = entropy.std(correction=0).clamp(min=torch.finfo(entropy.dtype).eps)
    unsure = torch.sigmoid((entropy - entropy.mean()) / deviation)
    return -F.cosine_similarity(torch.sigmoid(scores), unsure[:, None], dim=0).mean()


def discord(scores: Tensor) -> Tensor:
    """Ask that two layers score alike: minus the cosine of the columns of `scores` (n, 2)."""
    return -F.cosine_similarity(scores[:, 0], scores[:, 1], dim=0)


def rejected_uniformity(logits: Tensor, novelty: Tensor, margin: float) -> Tensor:
    """Ask that nodes with a novelty from `margin` are of every class alike.

    The mean over these nodes of the cross-entropy with a uniform target, of logits (n, C) and
    novelty (n,), into which no gradient flows; 0 if there is none of them.
    """
    chosen = (novelty.detach() >= margin).to(logits.dtype)
    spread = -F.log_softmax(logits, dim=1).mean(1)
    return (chosen * spread).sum() / chosen.sum().clamp(min=1.0)


def uncertainty(logits: Tensor, below: float) -> Tensor:
    """Ask that nodes the classifier is not sure of become less sure still.

    Of nodes whose largest probability lies between 1 / C and `below`, the mean of p log p over
    nodes and classes, from logits (n, C); 0 if there is none, as with two classes and 0.5.
    """
    log_p = F.log_softmax(logits, dim=1)
    top = log_p.detach().exp().amax(1)
    n_classes = logits.shape[1]
    chosen = ((top > 1.0 / n_classes) & (top < below)).to(logits.dtype)
    negative_entropy = (log_p.exp() * log_p).mean(1)
    return (chosen * negative_entropy).sum() / chosen.sum().clamp(min=1.0)
