from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from scipy.stats import kstest
from torch import nn

from openima.nn.heads import CosineHead, Projector, linear_head


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


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_the_logits_of_a_cosine_head_are_scaled_cosines_whatever_the_lengths() -> None:
    head = CosineHead(6, 3, 10.0, seeded())
    torch.testing.assert_close(head.weight.norm(dim=1), torch.ones(3))
    with torch.no_grad():
        head.weight.mul_(torch.tensor([[0.1], [5.0], [1.0]]))
    g = torch.randn(4, 6, generator=seeded(1))
    found = head(F.normalize(g, dim=1))
    for i in range(4):
        for c in range(3):
            cosine = F.cosine_similarity(g[i], head.weight[c], dim=0)
            assert found[i, c].item() == pytest.approx(10 * cosine.item(), abs=1e-5)


def test_directions_are_drawn_from_all_sides() -> None:
    weight = CosineHead(3, 4000, 1.0, seeded()).weight.detach()
    # On a sphere in three dimensions each coordinate is uniform.
    for axis in range(3):
        assert kstest(weight[:, axis], "uniform", args=(-1, 2)).pvalue > 1e-3


def test_a_projector_is_a_perceptron_with_unit_outputs() -> None:
    projector = Projector((5, 7, 4, 3), seeded()).double()
    with torch.no_grad():
        for bias in projector.biases:
            bias.copy_(torch.randn(len(bias), generator=seeded(2)))
    x = torch.randn(6, 5, generator=seeded(1), dtype=torch.float64)
    out = x
    for layer in range(3):
        out = out @ projector.weights[layer] + projector.biases[layer]
        if layer < 2:  # GELU: x times the share of a normal distribution below x
            out = out * (1 + torch.erf(out / math.sqrt(2))) / 2
    expected = out / out.norm(dim=1, keepdim=True)
    torch.testing.assert_close(projector(x), expected)


def test_a_projector_learns_in_every_layer() -> None:
    projector = Projector((5, 7, 3), seeded())
    projector(torch.randn(6, 5, generator=seeded(1)))[:, 0].sum().backward()
    for parameter in projector.parameters():
        assert parameter.grad is not None
        assert parameter.grad.any()


def test_a_projectors_weights_are_small_and_its_biases_zero() -> None:
    projector = Projector((300, 200, 10), seeded())
    assert kstest(projector.weights[0].detach().flatten() / 0.02, "norm").pvalue > 1e-3
    assert not any(bias.any() for bias in projector.biases)


@pytest.mark.parametrize(
    "draw", [lambda g: CosineHead(8, 4, 1.0, g), lambda g: Projector((8, 4), g)]
)
def test_cosine_heads_and_projectors_come_from_the_given_generator_alone(
    draw: Callable[[torch.Generator], nn.Module],
) -> None:
    before = torch.get_rng_state()
    first, again, other = (next(draw(seeded(seed)).parameters()) for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
