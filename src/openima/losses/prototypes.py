"""One direction a class, drawn along by the embeddings that are taken for its own."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def moved_prototypes(prototypes: Tensor, rows: Tensor, classes: Tensor, momentum: float) -> Tensor:
    """Let every row pull the prototype of its class, one row after the other.

    In the order of `rows` (n, d), of `classes` (n,), that is M_c <- norm(m M_c + (1 - m) r_i).
    Rows of different classes do not meet: the first of every class pull together, then the
    second, and so on. Returns new prototypes (C, d).
    """
    by_class = torch.argsort(classes, stable=True)
    sizes = torch.bincount(classes, minlength=len(prototypes))
    starts = sizes.cumsum(0) - sizes
    rank = torch.arange(len(classes), device=classes.device) - starts[classes[by_class]]
    by_rank = by_class[torch.argsort(rank, stable=True)]
    moved = prototypes.clone()
    for turn in torch.split(by_rank, torch.bincount(rank).tolist()):
        of = classes[turn]
        moved[of] = F.normalize(momentum * moved[of] + (1.0 - momentum) * rows[turn], dim=1)
    return moved


def looks_novel(scores: Tensor, labelled_scores: Tensor, n_seen: int, share: float) -> Tensor:
    """Say which rows lie further from all seen prototypes than most labelled rows do, (n,).

    Both are similarities to all prototypes, (n, C) and (m, C). Each row is standardised, and what
    counts is its largest value at a seen class. A row looks novel where this is below that of
    the `share` of labelled rows that have more; without labelled rows, none does.
    """
    if 0 in (len(scores), len(labelled_scores)):
        return torch.zeros(len(scores), dtype=torch.bool, device=scores.device)
    of_rows, of_labelled = (
        _standardised(one)[:, :n_seen].max(1).values for one in (scores, labelled_scores)
    )
    return of_rows < torch.quantile(of_labelled, 1.0 - share)


def _standardised(scores: Tensor) -> Tensor:
    spread, mean = torch.std_mean(scores, dim=1, keepdim=True)
    return (scores - mean) / spread.clamp(min=torch.finfo(scores.dtype).eps)
