from __future__ import annotations

import numpy as np
import pytest

from openima.theory import TwoGaussians, accuracies, simulate


@pytest.mark.parametrize("dimension", [1, 16])
@pytest.mark.parametrize(("gamma", "alpha"), [(1.0, 1.5), (2.0, 1.5), (1.5, 2.5)])
def test_k_means_finds_the_accuracies_of_the_closed_form(
    gamma: float, alpha: float, dimension: int
) -> None:
    drawn = [simulate(gamma, alpha, dimension=dimension, n=8_000, seed=seed) for seed in range(4)]
    mean = np.mean([(run.seen, run.novel) for run in drawn], axis=0)
    np.testing.assert_allclose(mean, accuracies(TwoGaussians.from_rates(gamma, alpha)), atol=0.01)


def test_the_same_seed_draws_the_same() -> None:
    one, again, other = (simulate(1.5, 1.5, dimension=3, n=500, seed=s) for s in (0, 0, 1))
    assert one == again != other
