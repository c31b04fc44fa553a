from __future__ import annotations

import math

import pytest
import torch
from scipy.stats import kstest

from openima.nn.heads import linear_head


def test_weights_are_xavier_normal_and_the_bias_is_zero() -> None:
    head = linear_head(128, 70, torch.Generator().manual_seed(0))
    assert head.weight.shape == (70, 128)
    spread = math.sqrt(2.0) * math.sqrt(2.0 / (128 + 70))
    assert kstest(head.weight.detach().flatten() / spread, "norm").pvalue > 1e-3
    assert torch.equal(head.bias, torch.zeros(70))


def test_it_is_an_affine_map_that_learns() -> None:
    head = linear_head(3, 2, torch.Generator().manual_seed(0))
    z = torch.randn(5, 3)
    with torch.no_grad():
        head.bias.copy_(torch.tensor([1.0, -2.0]))
    torch.testing.assert_close(head(z), z @ head.weight.t() + head.bias)
    head(z).sum().backward()
    for parameter in head.parameters():
        assert parameter.grad is not None
        assert parameter.grad.any()


def test_the_given_generator_decides_and_no_other_is_drawn_from() -> None:
    torch.manual_seed(0)
    before = torch.get_rng_state()
    first, again, other = (
        linear_head(8, 4, torch.Generator().manual_seed(seed)).weight for seed in (1, 1, 2)
    )
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.parametrize("n_classes", [1, 4])
def test_drawing_a_head_moves_the_generator_on(n_classes: int) -> None:
    generator = torch.Generator().manual_seed(3)
    first, second = (linear_head(8, n_classes, generator).weight for _ in range(2))
    assert not torch.equal(first, second)
