from __future__ import annotations

from itertools import pairwise
from math import exp, pi, sqrt

import numpy as np
import pytest
from scipy.integrate import quad

from openima.errors import InputError
from openima.theory import (
    TwoGaussians,
    accuracies,
    accuracy_slopes,
    cell_means,
    count_thresholds,
    excess,
    lloyd_slope,
    threshold,
)

# γ, α: the theorem's corners, a wider seen class, and one with three thresholds
RATES = [(1.0, 1.5), (1.4, 1.7), (2.0, 1.5), (2.0, 3.0), (0.6, 1.2), (20.0, 0.5)]


def density(x: float, mean: float, sigma: float) -> float:
    return exp(-(((x - mean) / sigma) ** 2) / 2) / (sigma * sqrt(2 * pi))


def integral(mixture: TwoGaussians, low: float, high: float, weight_x: bool) -> float:
    """Integrate the mixture, or x times it, piece by piece; both classes weigh one half."""
    s1, s2, d = float(mixture.sigma1), float(mixture.sigma2), float(mixture.distance)
    inner = sorted({low, high, *(p for p in (-5 * s1, 0.0, 5 * s1, d) if low < p < high)})

    def value(x: float) -> float:
        return (density(x, 0, s1) + density(x, d, s2)) / 2 * (x if weight_x else 1)

    pieces = pairwise(inner)
    return sum(quad(value, a, b, epsabs=1e-13, epsrel=1e-12)[0] for a, b in pieces)


def lloyd(mixture: TwoGaussians, n_points: int = 200_001) -> float:
    """K-Means on the axis, cut into many small weighted points, from the middle of the means."""
    s1, s2, d = float(mixture.sigma1), float(mixture.sigma2), float(mixture.distance)
    reach = 10 * max(s1, s2)
    x = np.linspace(-reach, d + reach, n_points)
    first, second = np.exp(-((x / s1) ** 2) / 2), np.exp(-(((x - d) / s2) ** 2) / 2)
    weight = first / first.sum() + second / second.sum()
    cut = d / 2
    for _ in range(400):
        lower = x < cut
        means = [np.average(x[side], weights=weight[side]) for side in (lower, ~lower)]
        moved = (means[0] + means[1]) / 2
        if abs(moved - cut) < 1e-12:
            break
        cut = moved
    return float(cut)


@pytest.mark.parametrize(("gamma", "alpha"), RATES)
@pytest.mark.parametrize("place", [-0.3, 0.5, 0.9])
def test_cell_means_are_the_integrals(gamma: float, alpha: float, place: float) -> None:
    mixture = TwoGaussians.from_rates(gamma, alpha, sigma1=0.7)
    s = place * float(mixture.distance)
    far = 12 * float(max(mixture.sigma1, mixture.sigma2)) + float(mixture.distance)
    for (low, high), mean in zip(((-far, s), (s, far)), cell_means(mixture, s), strict=True):
        expected = integral(mixture, low, high, True) / integral(mixture, low, high, False)
        assert mean == pytest.approx(expected, rel=1e-8, abs=1e-8)


@pytest.mark.parametrize(("gamma", "alpha"), RATES)
def test_accuracies_are_the_integrals(gamma: float, alpha: float) -> None:
    mixture = TwoGaussians.from_rates(gamma, alpha)
    s, d = float(threshold(mixture)), float(mixture.distance)
    seen, novel = accuracies(mixture)
    assert seen == pytest.approx(quad(density, -12, s, args=(0, 1), points=[0])[0], abs=1e-9)
    beyond = quad(density, s, d + 12 * gamma, args=(d, gamma), points=[d])[0]
    assert novel == pytest.approx(beyond, abs=1e-9)


@pytest.mark.parametrize(("gamma", "alpha"), RATES)
def test_the_threshold_is_where_lloyd_stops(gamma: float, alpha: float) -> None:
    mixture = TwoGaussians.from_rates(gamma, alpha, sigma1=0.7)
    s = threshold(mixture)
    assert excess(mixture, s) == pytest.approx(0, abs=1e-12 * float(mixture.distance + gamma))
    spacing = (20 * max(1.0, gamma) * 0.7 + float(mixture.distance)) / 200_000
    assert s == pytest.approx(lloyd(mixture), abs=3 * spacing)


@pytest.mark.parametrize("alpha", [0.1, 1.5, 3.0, 40.0])
def test_equal_widths_are_cut_in_the_middle(alpha: float) -> None:
    mixture = TwoGaussians.from_rates(1.0, alpha, sigma1=3.0)
    assert threshold(mixture) == pytest.approx(3 * alpha, rel=1e-12)
    seen, novel = accuracies(mixture)
    assert seen == pytest.approx(float(novel), rel=1e-12)


def test_classes_that_change_places_mirror_the_threshold() -> None:
    one, other = TwoGaussians.of(1, 1.8, 4), TwoGaussians.of(1.8, 1, 4)
    assert threshold(other) == pytest.approx(4 - float(threshold(one)), rel=1e-14)
    assert accuracies(other) == pytest.approx(accuracies(one)[::-1], rel=1e-14)


def test_a_grid_is_solved_as_its_entries_are() -> None:
    gamma, alpha = np.array([0.6, 1.0, 1.5, 20.0])[:, None], np.array([0.5, 1.5, 3.0])
    grid = threshold(TwoGaussians.from_rates(gamma, alpha))
    assert grid.shape == (4, 3)
    for row, g in enumerate(gamma[:, 0]):
        for column, a in enumerate(alpha):
            assert grid[row, column] == threshold(TwoGaussians.from_rates(g, a))


def test_accuracies_depend_on_the_rates_alone() -> None:
    one, scaled = (TwoGaussians.from_rates(1.7, 1.9, sigma1=width) for width in (1.0, 12.5))
    assert accuracies(scaled) == pytest.approx(accuracies(one), rel=1e-12)
    assert float(scaled.gamma) == pytest.approx(1.7)
    assert float(scaled.alpha) == pytest.approx(1.9)


@pytest.mark.parametrize(("gamma", "alpha"), RATES)
def test_the_shift_is_the_gap_of_the_accuracies(gamma: float, alpha: float) -> None:
    mixture = TwoGaussians.from_rates(gamma, alpha)
    s = threshold(mixture)
    lower, upper = cell_means(mixture, s)
    seen, novel = accuracies(mixture)
    shift = float((seen - novel) * (upper - lower) / 2)
    assert s - mixture.distance / 2 == pytest.approx(shift, abs=1e-10)


def test_three_thresholds_where_the_narrow_class_hides_in_the_wide_one() -> None:
    gamma, alpha = np.array([1.0, 2.0, 20.0, 20.0]), np.array([0.5, 1.5, 0.5, 1.5])
    assert count_thresholds(TwoGaussians.from_rates(gamma, alpha)).tolist() == [1, 1, 3, 1]


@pytest.mark.parametrize(("gamma", "alpha"), RATES)
def test_slope_of_lloyds_step_is_its_difference_quotient(gamma: float, alpha: float) -> None:
    mixture = TwoGaussians.from_rates(gamma, alpha)
    s, step = 0.6 * mixture.distance, 1e-5
    quotient = (excess(mixture, s + step) - excess(mixture, s - step)) / (2 * step)
    assert lloyd_slope(mixture, s) == pytest.approx(float(1 - quotient), abs=1e-7)


@pytest.mark.parametrize(("gamma", "alpha"), RATES)
@pytest.mark.parametrize("direction", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, -0.5, 2)])
def test_slopes_of_the_accuracies_are_difference_quotients(
    gamma: float, alpha: float, direction: tuple[float, float, float]
) -> None:
    mixture, step = TwoGaussians.from_rates(gamma, alpha), 1e-5
    place = np.array([mixture.sigma1, mixture.sigma2, mixture.distance], dtype=np.float64)
    ahead, behind = (
        np.array(accuracies(TwoGaussians.of(*(place + sign * step * np.array(direction)))))
        for sign in (1, -1)
    )
    quotient = (ahead - behind) / (2 * step)
    np.testing.assert_allclose(accuracy_slopes(mixture, direction), quotient, atol=2e-8)


def test_classes_far_apart_are_told_apart() -> None:
    mixture = TwoGaussians.from_rates([0.01, 1.0, 100.0], 1000.0)
    assert np.array(accuracies(mixture)).tolist() == [[1.0] * 3] * 2


@pytest.mark.parametrize("distance", [0.0, -1.0, float("nan"), float("inf")])
def test_impossible_mixtures_are_refused(distance: float) -> None:
    with pytest.raises(InputError, match="distance"):
        TwoGaussians.of(1, 1, distance)
