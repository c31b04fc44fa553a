from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from openima.errors import InputError
from openima.predict import best_matching, count_matrix

repeatable = settings(derandomize=True, deadline=None, max_examples=60)
counts_of_any_shape = hnp.arrays(
    np.int64, st.tuples(st.integers(1, 5), st.integers(1, 5)), elements=st.integers(0, 20)
)


def test_counts_are_those_of_a_naive_loop() -> None:
    rng = np.random.default_rng(0)
    predicted, labels = rng.integers(0, 5, 200), rng.integers(0, 7, 200)
    expected = np.zeros((7, 7), dtype=np.int64)
    for p, c in zip(predicted, labels, strict=True):
        expected[p, c] += 1
    np.testing.assert_array_equal(count_matrix(predicted, labels), expected)


@pytest.mark.parametrize(("n", "size"), [(None, 4), (4, 4), (6, 6)])
def test_counts_are_square_and_as_large_as_asked(n: int | None, size: int) -> None:
    counts = count_matrix([0, 3], [1, 1], n)
    assert counts.shape == (size, size)
    assert counts.dtype == np.int64
    assert counts.sum() == 2
    assert counts[0, 1] == counts[3, 1] == 1


def test_no_nodes_make_no_counts() -> None:
    assert count_matrix([], []).shape == (0, 0)
    assert count_matrix([], [], 3).tolist() == [[0] * 3] * 3
    assert best_matching(count_matrix([], [])).shape == (0,)


@repeatable
@given(counts_of_any_shape)
def test_matching_is_the_best_of_all_permutations(counts: NDArray[np.int64]) -> None:
    matching = best_matching(counts)
    size = max(counts.shape)
    padded = np.zeros((size, size), dtype=np.int64)
    padded[: counts.shape[0], : counts.shape[1]] = counts
    best = max(padded[range(size), order].sum() for order in permutations(range(size)))
    assert padded[np.arange(len(counts)), matching].sum() == best
    assert len(matching) == len(counts)
    assert len(set(matching.tolist())) == len(counts)
    assert matching.min() >= 0
    assert matching.max() < size


def test_groups_beyond_the_classes_get_ids_of_their_own() -> None:
    matching = best_matching([[0, 9], [5, 8], [1, 0], [0, 0]])
    assert matching[:2].tolist() == [1, 0]
    assert sorted(matching[2:]) == [2, 3]


def test_fewer_groups_than_classes_leave_classes_out() -> None:
    assert best_matching([[0, 2, 7]]).tolist() == [2]


@pytest.mark.parametrize(
    ("predicted", "labels", "n", "message"),
    [
        ([0, 1], [0], None, "labels does not fit the nodes"),
        ([0, -1], [0, 1], None, "predicted of row 1 is -1"),
        ([0, 1], [0, -1], None, "labels of row 1 is -1"),
        ([0.0, 1.0], [0, 1], None, "predicted is a list of whole numbers"),
        ([[0, 1]], [0, 1], None, "predicted is a list of whole numbers"),
        (["a"], [0], None, "predicted is a list of whole numbers"),
        ([[0], [1, 2]], [0, 1], None, "predicted cannot be read"),
        ([0, 4], [0, 1], 3, "an id is too large"),
        ([0, 10_000_000], [0, 1], None, "too many ids to match"),
    ],
)
def test_bad_ids_are_refused(
    predicted: list[Any], labels: list[int], n: int | None, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        count_matrix(predicted, labels, n)


@pytest.mark.parametrize("counts", [[1, 2], [[0.5, 1.0]], [["a"]]])
def test_counts_must_be_a_matrix_of_whole_numbers(counts: list[Any]) -> None:
    with pytest.raises(InputError, match="counts is a matrix of whole numbers"):
        best_matching(counts)
