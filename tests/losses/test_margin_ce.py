from math import exp, log

import pytest
import torch
from torch import Tensor

from openima.losses.margin_ce import margin_cross_entropy

LABELS = [2, 0, 1, 2]


def logits() -> Tensor:
    drawn = torch.randn(4, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return drawn.requires_grad_()


def by_loops(rows: list[list[float]], labels: list[int], margin: float) -> float:
    losses = []
    for row, label in zip(rows, labels, strict=True):
        moved = [o + margin if c == label else o for c, o in enumerate(row)]
        losses.append(log(sum(exp(o) for o in moved)) - moved[label])
    return sum(losses) / len(losses)


@pytest.mark.parametrize("margin", [0.0, 3.5, -2.0])
def test_equals_a_loop_over_nodes(margin: float) -> None:
    o = logits()
    expected = by_loops(o.tolist(), LABELS, margin)
    for given in (margin, torch.tensor(margin)):
        found = margin_cross_entropy(o, torch.tensor(LABELS), given)
        assert found.item() == pytest.approx(expected, rel=1e-12)


def test_a_larger_margin_pulls_less() -> None:
    o, labels = logits(), torch.tensor(LABELS)
    pulls = []
    for margin in (0.0, 1.0, 5.0):
        (slope,) = torch.autograd.grad(margin_cross_entropy(o, labels, margin), o)
        pulls.append(slope.abs().sum().item())
    assert pulls[0] > pulls[1] > pulls[2] > 0


def test_without_nodes_nothing_is_pulled() -> None:
    o = logits()
    loss = margin_cross_entropy(o[:0], torch.tensor([], dtype=torch.int64), 1.0)
    (slope,) = torch.autograd.grad(loss, o)
    assert loss.item() == 0.0
    assert not slope.any()
