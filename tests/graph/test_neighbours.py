from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from openima.errors import InputError
from openima.graph.neighbours import knn_edges


def naive_distances(points: NDArray[Any]) -> NDArray[np.float64]:
    wide = points.astype(float)
    distances = np.zeros((len(wide), len(wide)))
    for i in range(len(wide)):
        for j in range(len(wide)):
            distances[i, j] = sum((wide[i, d] - wide[j, d]) ** 2 for d in range(wide.shape[1]))
    np.fill_diagonal(distances, np.inf)
    return distances


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 25), st.integers(1, 4), st.integers(1, 24), st.integers(0, 2**32 - 1))
def test_neighbours_are_the_k_nearest_others(n: int, d: int, k: int, seed: int) -> None:
    k = min(k, n - 1)
    # Few whole numbers, so that many points share a place and many distances are equal.
    points = np.random.default_rng(seed).integers(0, 3, (n, d))
    sources, targets = knn_edges(points, k)
    assert sources.dtype == targets.dtype == np.int64
    np.testing.assert_array_equal(targets, np.repeat(np.arange(n), k))
    distances = naive_distances(points)
    for i in range(n):
        chosen = sources[targets == i]
        assert i not in chosen
        assert len(set(chosen.tolist())) == k
        # Equal distances may be resolved either way, so it is the distances that must agree.
        np.testing.assert_array_equal(distances[i, chosen], np.sort(distances[i])[:k])


def test_points_in_one_place_are_not_their_own_neighbours() -> None:
    points = np.zeros((40, 3))
    sources, targets = knn_edges(points, 5)
    assert not (sources == targets).any()


def test_the_number_of_threads_changes_nothing() -> None:
    points = np.random.default_rng(0).integers(0, 3, (1500, 20))  # full of equal distances
    with threadpool_limits(1):
        one, _ = knn_edges(points, 7)
    with threadpool_limits(3):
        three, _ = knn_edges(points, 7)
    np.testing.assert_array_equal(one, three)


def test_the_points_are_left_alone() -> None:
    points = np.random.default_rng(0).standard_normal((20, 3)).astype(np.float32)
    before = points.copy()
    knn_edges(points, 3)
    np.testing.assert_array_equal(points, before)


@pytest.mark.parametrize(
    ("points", "k", "says"),
    [
        (np.eye(4), 4, "k from 1 to 3"),
        (np.eye(4), 0, "k from 1 to 3"),
        (np.eye(1), 1, "two points or more"),
        (np.zeros(4), 1, "matrix of numbers"),
        (np.array([["a"], ["b"]]), 1, "matrix of numbers"),
        (np.array([[0.0, 1.0], [2.0, np.nan], [3.0, 4.0]]), 1, "point 1 has a coordinate"),
        (np.array([[0.0], [2.0], [np.inf]]), 1, "point 2 has a coordinate"),
    ],
)
def test_bad_points_are_refused(points: NDArray[Any], k: int, says: str) -> None:
    with pytest.raises(InputError, match=says) as caught:
        knn_edges(points, k)
    assert "\n" not in str(caught.value)
