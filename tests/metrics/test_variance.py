from math import inf, isnan

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from openima.errors import InputError
from openima.metrics import class_spread, imbalance_and_separation

repeatable = settings(derandomize=True, deadline=None, max_examples=60)


def points(n: int, k: int, seed: int = 0) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, k, n)
    width = rng.uniform(0.5, 2.0, (k, 1))
    z = 3 * rng.standard_normal((k, 6))[labels] + width[labels] * rng.standard_normal((n, 6))
    return z.astype(np.float32), labels


def naive_spread(
    z: NDArray[np.float32], labels: NDArray[np.int64], c: int
) -> tuple[list[float], float]:
    rows = [[float(v) for v in row] for row, label in zip(z, labels, strict=True) if label == c]
    centre = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
    squares = [sum((v - m) ** 2 for v, m in zip(row, centre, strict=True)) for row in rows]
    return centre, (sum(squares) / len(rows)) ** 0.5


def test_spread_is_that_of_naive_loops() -> None:
    z, labels = points(120, 5)
    labels[labels == 2] = 9  # class 2 does not occur
    spread = class_spread(z, labels)
    assert spread.classes.tolist() == [0, 1, 3, 4, 9]
    for row, c in enumerate(spread.classes):
        centre, std = naive_spread(z, labels, c)
        np.testing.assert_allclose(spread.centres[row], centre, rtol=1e-12)
        np.testing.assert_allclose(spread.std[row], std, rtol=1e-12)


def test_std_is_the_root_of_the_trace_of_the_covariance() -> None:
    z, labels = points(200, 3)
    for c, std in enumerate(class_spread(z, labels).std):
        covariance = np.cov(z[labels == c].astype(np.float64).T, bias=True)
        np.testing.assert_allclose(std, np.sqrt(np.trace(covariance)), rtol=1e-12)


def test_nodes_of_unknown_class_are_left_out() -> None:
    z, labels = points(80, 4)
    known = np.random.default_rng(0).random(80) < 0.6
    hidden = np.where(known, labels, -1)
    whole, part = class_spread(z, hidden), class_spread(z[known], labels[known])
    np.testing.assert_array_equal(whole.classes, part.classes)
    np.testing.assert_array_equal(whole.centres, part.centres)
    np.testing.assert_array_equal(whole.std, part.std)
    assert imbalance_and_separation(z, hidden, 2) == imbalance_and_separation(
        z[known], labels[known], 2
    )


def test_unknown_classes_alone_leave_nothing() -> None:
    spread = class_spread(np.ones((3, 2)), [-1, -1, -1])
    assert (len(spread.classes), spread.centres.shape, len(spread.std)) == (0, (0, 2), 0)
    assert len(class_spread(np.empty((0, 2)), []).std) == 0


@pytest.mark.parametrize("n_seen", [1, 3, 4])
def test_rates_are_those_of_naive_loops(n_seen: int) -> None:
    z, labels = points(150, 6, seed=n_seen)
    z, labels = z[labels != 1], labels[labels != 1]  # class 1 does not occur
    pairs = []
    for s in sorted({c for c in labels.tolist() if c < n_seen}):
        for n in sorted({c for c in labels.tolist() if c >= n_seen}):
            (centre_s, std_s), (centre_n, std_n) = (naive_spread(z, labels, c) for c in (s, n))
            gap = sum((a - b) ** 2 for a, b in zip(centre_s, centre_n, strict=True)) ** 0.5
            widest, narrowest = max(std_s, std_n), min(std_s, std_n)
            pairs.append((widest / narrowest, std_n / std_s, gap / (std_s + std_n)))
    found = imbalance_and_separation(z, labels, n_seen)
    means, least = np.mean(pairs, axis=0), np.min(pairs, axis=0)
    np.testing.assert_allclose(
        (found.imbalance, found.imbalance_ratio, found.separation), means, rtol=1e-9
    )
    np.testing.assert_allclose(
        (found.imbalance_min, found.imbalance_ratio_min, found.separation_min), least, rtol=1e-9
    )


def test_the_two_imbalances_differ_where_seen_classes_are_wider() -> None:
    z = np.array([[-3.0], [3.0], [9.0], [11.0]])
    found = imbalance_and_separation(z, [0, 0, 1, 1], n_seen=1)
    assert found.imbalance == found.imbalance_min == 3.0
    assert found.imbalance_ratio == found.imbalance_ratio_min == pytest.approx(1 / 3)
    assert found.separation == found.separation_min == 10 / 4


@repeatable
@given(st.integers(0, 10_000), st.floats(0.01, 100), st.floats(-50, 50))
def test_rates_do_not_depend_on_shift_scale_or_order(seed: int, scale: float, shift: float) -> None:
    z, labels = points(60, 4, seed=seed)
    order = np.random.default_rng(seed).permutation(60)
    moved = (z.astype(np.float64) * scale + shift)[order]
    before = imbalance_and_separation(z, labels, 2)
    after = imbalance_and_separation(moved, labels[order], 2)
    np.testing.assert_allclose(list(vars(after).values()), list(vars(before).values()), rtol=1e-8)
    assert before.imbalance >= before.imbalance_min >= 1
    assert before.imbalance >= before.imbalance_ratio >= before.imbalance_ratio_min
    assert before.separation >= before.separation_min > 0


def test_a_mean_far_away_costs_no_precision() -> None:
    z, labels = points(500, 3)
    near, far = class_spread(z, labels), class_spread(z.astype(np.float64) + 1e6, labels)
    np.testing.assert_allclose(far.std, near.std, rtol=1e-8)


def test_a_class_without_width_makes_rates_infinite_or_undefined() -> None:
    """Three equal rows of 0.1 have exactly no width, whatever their mean rounds to."""
    wide = [[0.0], [2.0]]
    flat_seen = imbalance_and_separation([[0.1]] * 3 + wide, [0, 0, 0, 1, 1], 1)
    assert flat_seen.imbalance == flat_seen.imbalance_ratio == inf
    assert flat_seen.separation == pytest.approx(0.9)
    flat_novel = imbalance_and_separation([[0.1]] * 3 + wide, [1, 1, 1, 0, 0], 1)
    assert flat_novel.imbalance == inf
    assert flat_novel.imbalance_ratio == 0.0
    both = imbalance_and_separation([[0.1]] * 3 + [[0.7]], [0, 0, 0, 1], 1)
    assert isnan(both.imbalance)
    assert isnan(both.imbalance_ratio)
    assert both.separation == inf
    assert isnan(imbalance_and_separation([[0.1], [0.1]], [0, 1], 1).separation)


@pytest.mark.parametrize("n_seen", [0, 3])
def test_no_pair_no_rate(n_seen: int) -> None:
    z, labels = points(30, 3)
    assert all(isnan(rate) for rate in vars(imbalance_and_separation(z, labels, n_seen)).values())


def test_tensors_are_accepted_and_input_is_left_as_it_is() -> None:
    z, labels = points(50, 3)
    before = z.copy()
    expected = imbalance_and_separation(z, labels, 1)
    assert imbalance_and_separation(np.asarray(torch.from_numpy(z)), labels, 1) == expected
    np.testing.assert_array_equal(z, before)


@pytest.mark.parametrize(
    ("z", "labels", "n_seen", "message"),
    [
        ([[0.0], [1.0]], [0], 1, "labels does not fit the nodes.*Expected 2 numbers. Got 1"),
        ([[0.0], [1.0]], [0, -2], 1, "labels of row 1 is -2"),
        ([[0.0], [np.inf]], [0, 1], 1, "row 1 of z holds values that are not finite"),
        ([0.0, 1.0], [0, 1], 1, "z is a matrix of numbers"),
        ([[0.0], [1.0]], [0, 1], -1, "n_seen cannot be negative"),
    ],
)
def test_bad_input_is_refused(
    z: list[list[float]], labels: list[int], n_seen: int, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        imbalance_and_separation(z, labels, n_seen)
