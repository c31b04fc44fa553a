from __future__ import annotations

import math

import pytest
import torch
from torch.distributions import Normal, kl_divergence

from openima.losses.variational import divergence, reconstruction


def test_divergence_is_that_of_normals() -> None:
    generator = torch.Generator().manual_seed(0)
    mean, log_sigma = torch.randn(2, 5, 3, generator=generator, dtype=torch.float64)
    expected = kl_divergence(
        Normal(mean, log_sigma.exp()), Normal(torch.zeros_like(mean), torch.ones_like(mean))
    ).mean()
    torch.testing.assert_close(divergence(mean, log_sigma), expected)
    assert divergence(torch.zeros(2, 2), torch.zeros(2, 2)).item() == 0.0


def test_reconstruction_equals_a_loop() -> None:
    linked, random = [0.3, -2.0, 5.0], [-1.0, 0.5]
    of_linked = [-math.log(1.0 / (1.0 + math.exp(-x))) for x in linked]
    of_random = [-math.log(1.0 - 1.0 / (1.0 + math.exp(-x))) for x in random]
    found = reconstruction(torch.tensor(linked), torch.tensor(random))
    assert found.item() == pytest.approx(sum(of_linked) / 3 + sum(of_random) / 2)


def test_reconstruction_is_finite_for_large_products_and_none() -> None:
    none = torch.zeros(0)
    assert reconstruction(none, none).item() == 0.0
    assert reconstruction(torch.tensor([-1e4]), none).item() == pytest.approx(1e4)
    assert reconstruction(torch.tensor([1e4]), torch.tensor([-1e4])).item() == 0.0
