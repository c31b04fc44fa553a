from __future__ import annotations

import itertools
from math import erf, sqrt

import pytest

from openima.theory import TwoGaussians, accuracy_grid, excess


def normal(x: float) -> float:
    return (1 + erf(x / sqrt(2))) / 2


def test_every_combination_is_a_row_with_the_accuracies_on_both_sides_of_a_root() -> None:
    sigmas, gammas, alphas = (0.5, 2.0), (1.0, 1.5, 2.0), (1.5, 4.0)
    table = accuracy_grid(sigmas, gammas, alphas)
    places = list(zip(table["sigma1"], table["gamma"], table["alpha"], strict=True))
    assert places == list(itertools.product(sigmas, gammas, alphas))
    for sigma1, gamma, alpha, cut, seen, novel in table.to_numpy().tolist():
        sigma2 = gamma * sigma1
        distance = alpha * (sigma1 + sigma2)
        assert abs(excess(TwoGaussians.of(sigma1, sigma2, distance), cut)) < 1e-9
        assert seen == pytest.approx(normal(cut / sigma1))
        assert novel == pytest.approx(normal((distance - cut) / sigma2))


def test_widths_are_only_a_unit_of_length() -> None:
    table = accuracy_grid()
    assert len(table) == 3 * 11 * 36
    by_rates = table.groupby(["gamma", "alpha"])[["acc1", "acc2"]]
    spread = by_rates.max() - by_rates.min()
    assert spread.to_numpy().max() < 1e-12
    within = table[table["alpha"] >= 3][["acc1", "acc2"]]
    assert within.to_numpy().min() >= 0.95  # the second claim of the theorem
