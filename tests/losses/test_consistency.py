from math import exp, log

import pytest
import torch
from torch import Tensor

from openima.losses.consistency import consistency


def by_loops(strong: Tensor, weak: Tensor, threshold: float, temperature: float | None) -> float:
    total = 0.0
    for row, other in zip(strong.tolist(), weak.tolist(), strict=True):
        p = [exp(o) / sum(map(exp, other)) for o in other]
        if max(p) < threshold:
            continue
        log_q = [o - log(sum(map(exp, row))) for o in row]
        if temperature is None:
            total -= log_q[p.index(max(p))]
        else:
            sharp = [exp(o / temperature) for o in other]
            total -= sum(s / sum(sharp) * q for s, q in zip(sharp, log_q, strict=True))
    return total / len(strong)


def two_views() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    strong, weak = torch.randn(2, 12, 4, generator=generator, dtype=torch.float64)
    return strong.requires_grad_(), weak.requires_grad_()


@pytest.mark.parametrize("temperature", [None, 0.4, 1.0])
@pytest.mark.parametrize("threshold", [0.0, 0.5, 0.7, 0.999])
def test_equals_a_loop_over_nodes(threshold: float, temperature: float | None) -> None:
    strong, weak = two_views()
    found = consistency(strong, weak, threshold, temperature)
    assert found.item() == pytest.approx(by_loops(strong, weak, threshold, temperature), rel=1e-10)


def test_all_nodes_divide_and_not_the_confident_ones_alone() -> None:
    sure, unsure = torch.tensor([[5.0, 0.0]]), torch.tensor([[0.1, 0.0]])
    both = torch.cat([sure, unsure])
    alone = consistency(sure, sure, 0.9)
    assert alone > 0
    torch.testing.assert_close(consistency(both, both, 0.9), alone / 2)


def test_the_target_is_not_moved() -> None:
    strong, weak = two_views()
    loss = consistency(strong, weak, 0.3, 0.5)
    slopes = torch.autograd.grad(loss, (strong, weak), allow_unused=True)
    assert slopes[0].any()
    assert slopes[1] is None


def test_no_nodes_and_no_confident_nodes_cost_nothing() -> None:
    strong, weak = two_views()
    for loss in (consistency(strong[:0], weak[:0], 0.5), consistency(strong, weak, 1.0)):
        assert loss.item() == 0.0
        assert not torch.autograd.grad(loss, strong)[0].any()
