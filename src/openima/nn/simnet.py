"""A small network that says how alike two embeddings are, for all pairs of a batch at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from openima.nn.heads import linear_head

_CPU_TILE, _GPU_TILE = 1 << 17, 1 << 22
"""Pairs that are worked on at once: what a cache holds, or enough to keep a GPU busy."""


class SimNet(nn.Module):
    """Two layers on the joined embeddings of a pair, and a probability that both are of a class.

    The first layer is kept as two maps, one for each node of a pair: W (b, a) = W_b b + W_a a.
    Nodes are mapped once, and pairs only add what has been mapped.
    """

    def __init__(self, n_inputs: int, hidden: int, generator: torch.Generator) -> None:
        """Draw the weights (Xavier normal, gain sqrt 2) from `generator`."""
        super().__init__()
        self.first = linear_head(2 * n_inputs, hidden, generator)
        self.second = linear_head(hidden, 1, generator)

    def forward(self, g: Tensor) -> Tensor:
        """Return the similarity in 0 to 1 of every ordered pair of rows of `g` (n, d), (n, n)."""
        of_b, of_a = self.first.weight.chunk(2, dim=1)
        mapped_b = F.linear(g, of_b, self.first.bias)
        scores = pair_scores(mapped_b, F.linear(g, of_a), self.second.weight[0])
        return (scores + self.second.bias).sigmoid()


def pair_scores(first: Tensor, second: Tensor, weight: Tensor) -> Tensor:
    """Return s_ij = sum_h weight_h ReLU(first_ih + second_jh), (n, m), from (n, H) and (m, H).

    Nothing of size n x m x H is ever held.
    """
    return _pair_scores(first, second, weight)


class _PairScores(torch.autograd.Function):
    """The sum, a hidden unit at a time: ReLU(x + y) = max(x, -y) + y takes one pass a unit."""

    @staticmethod
    def forward(ctx: Any, first: Tensor, second: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(first, second, weight)
        scores = first.new_zeros(len(first), len(second))
        for rows, units, border, buffer in _tiles(first, second):
            for h, of_unit in enumerate(weight.tolist()):
                higher = torch.maximum(units[h, :, None], border[h], out=buffer)
                scores[rows].add_(higher, alpha=of_unit)
        return scores.add_(second @ weight)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        first, second, weight = ctx.saved_tensors
        grad = grads[0].contiguous()
        # How much of the gradient arrives where a unit is active, by the rows of either side.
        of_first = torch.zeros_like(first.t(), memory_format=torch.contiguous_format)
        of_second = torch.zeros_like(second.t(), memory_format=torch.contiguous_format)
        ones = grad.new_ones(max(grad.shape))
        for rows, units, border, buffer in _tiles(first, second):
            for h in range(len(weight)):
                active = torch.gt(units[h, :, None], border[h], out=buffer).mul_(grad[rows])
                of_first[h, rows] = active @ ones[: len(second)]
                of_second[h] += active.t() @ ones[: len(active)]
        d_weight = (of_first * first.t()).sum(1) + (of_second * second.t()).sum(1)
        return of_first.t() * weight, of_second.t() * weight, d_weight


_pair_scores: Callable[..., Tensor] = _PairScores.apply


def _tiles(first: Tensor, second: Tensor) -> Iterator[tuple[slice, Tensor, Tensor, Tensor]]:
    """Yield some rows of the first side at a time, and what is needed of both, by unit.

    That is `first` (H, k), the `border` -second (H, m) above which a unit is active, and a buffer
    (k, m) to work in.
    """
    border = -second.t().contiguous()
    units = first.t().contiguous()
    size = _CPU_TILE if first.device.type == "cpu" else _GPU_TILE
    n_rows = max(1, size // max(1, len(second)))
    space = first.new_empty(min(n_rows, len(first)), len(second))
    for start in range(0, len(first), n_rows):
        part = units[:, start : start + n_rows]
        stop = start + part.shape[1]
        yield slice(start, stop), part, border, space[: part.shape[1]]
