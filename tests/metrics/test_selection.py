from math import inf, nan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openima.errors import InputError
from openima.metrics.selection import best_row, contenders, sc_and_acc

repeatable = settings(derandomize=True, deadline=None, max_examples=100)
# Quarters, so that no sum is rounded and ties are ties.
values = st.integers(-4, 4).map(lambda n: n / 4)
rows = st.lists(st.tuples(values, values), min_size=1, max_size=12)


def by_loops(silhouettes: list[float], accuracies: list[float], weight: float) -> list[float]:
    scores = []
    for sc, acc in zip(silhouettes, accuracies, strict=True):
        score = 0.0
        for value, all_values, part in (
            (sc, silhouettes, weight),
            (acc, accuracies, 1.0 - weight),
        ):
            low, high = min(all_values), max(all_values)
            score += part * ((value - low) / (high - low) if high > low else 0.0)
        scores.append(score)
    return scores


@repeatable
@given(rows, st.sampled_from([0.0, 0.25, 0.5, 1.0]))
def test_scores_are_those_of_a_naive_loop(pairs: list[tuple[float, float]], weight: float) -> None:
    sc, acc = [p[0] for p in pairs], [p[1] for p in pairs]
    expected = by_loops(sc, acc, weight)
    np.testing.assert_allclose(sc_and_acc(sc, acc, weight), expected, atol=1e-12)
    found = best_row(sc, acc, weight)
    assert expected[found] == pytest.approx(max(expected), abs=1e-12)
    assert all(score <= expected[found] + 1e-12 for score in expected[:found])
    assert all(score < expected[found] + 1e-12 for score in expected[found + 1 :])


@repeatable
@given(rows)
def test_scale_and_offset_of_either_do_not_matter(pairs: list[tuple[float, float]]) -> None:
    sc, acc = np.array(pairs).T
    assert best_row(4 * sc - 8, acc / 2) == best_row(sc, acc)


def test_both_count_half_by_default() -> None:
    sc, acc = [0.1, 0.3, 0.5], [0.8, 0.9, 0.4]
    np.testing.assert_allclose(sc_and_acc(sc, acc), [0.4, 0.75, 0.5])
    assert best_row(sc, acc) == 1
    assert best_row(sc, acc, weight=1.0) == 2
    assert best_row(sc, acc, weight=0.0) == 1


def test_negative_silhouettes_are_scaled_like_others() -> None:
    """Maxima that start from 0 would squeeze these into a corner."""
    np.testing.assert_allclose(sc_and_acc([-0.9, -0.5, -0.1], [0.5, 0.5, 0.5]), [0, 0.25, 0.5])


def test_of_equals_the_last_is_chosen() -> None:
    assert best_row([0.2, 0.5, 0.5], [0.7, 0.9, 0.9]) == 2
    assert best_row([0.0, 1.0], [1.0, 0.0]) == 1
    assert best_row([0.3] * 4, [0.6] * 4) == 3


def test_one_row_is_the_best() -> None:
    assert best_row([-0.3], [0.1]) == 0
    assert sc_and_acc([-0.3], [0.1]).tolist() == [0.0]
    assert best_row([nan], [nan]) == 0


def test_what_is_equal_in_all_rows_does_not_choose() -> None:
    assert best_row([0.4, 0.4, 0.4], [0.1, 0.9, 0.3]) == 1
    assert best_row([0.1, 0.9, 0.3], [0.4, 0.4, 0.4]) == 1


@pytest.mark.parametrize("missing", [nan, inf, -inf])
def test_a_row_without_a_number_is_the_lowest(missing: float) -> None:
    np.testing.assert_allclose(sc_and_acc([missing, 0.2, 0.6], [0.5] * 3), [0.0, 0.0, 0.5])
    assert best_row([0.5, missing], [0.5, 0.5]) == 0
    assert best_row([0.5, 0.5, missing], [0.5] * 3) == 1


def test_without_validation_nodes_the_silhouette_chooses() -> None:
    assert best_row([0.1, 0.4, 0.3], [nan] * 3) == 1
    assert best_row([nan] * 3, [nan] * 3) == 2


def beaten(pairs: list[tuple[float, float]], i: int) -> bool:
    sc, acc = pairs[i]
    return any(
        s >= sc and a >= acc and ((s, a) != (sc, acc) or k > i)
        for k, (s, a) in enumerate(pairs)
        if k != i
    )


@repeatable
@given(rows)
def test_contenders_are_those_that_no_other_row_surpasses(pairs: list[tuple[float, float]]) -> None:
    found = contenders(*zip(*pairs, strict=True))
    assert found.tolist() == [not beaten(pairs, i) for i in range(len(pairs))]


@repeatable
@given(rows, rows)
def test_whatever_comes_later_the_best_row_has_always_been_a_contender(
    first: list[tuple[float, float]], more: list[tuple[float, float]]
) -> None:
    pairs = first + more
    best = best_row([pair[0] for pair in pairs], [pair[1] for pair in pairs])
    for n in range(best + 1, len(pairs) + 1):
        assert contenders(*zip(*pairs[:n], strict=True))[best]


def test_a_row_without_a_number_is_no_contender_beside_one_with_it() -> None:
    assert contenders([nan, 0.1], [0.5, 0.5]).tolist() == [False, True]
    assert contenders([0.1, nan], [0.5, 0.5]).tolist() == [True, False]
    assert contenders([nan, 0.1], [0.9, 0.5]).tolist() == [True, True]
    assert contenders([], []).tolist() == []


@pytest.mark.parametrize(
    ("silhouettes", "accuracies", "weight", "message"),
    [
        ([], [], 0.5, "there is no row to choose from"),
        (
            [0.1],
            [0.1, 0.2],
            0.5,
            "SC and ACC are two lists of the same rows.*\\(1,\\) and \\(2,\\)",
        ),
        ([[0.1]], [[0.1]], 0.5, "SC and ACC are two lists of the same rows"),
        ([0.1], [0.1], 1.5, "weight is a share. Expected 0 to 1. Got 1.5"),
    ],
)
def test_bad_rows_are_refused(
    silhouettes: list[float], accuracies: list[float], weight: float, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        best_row(silhouettes, accuracies, weight)
