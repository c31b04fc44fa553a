from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

from openima.errors import InputError
from openima.graph.graph import Graph
from openima.graph.structural import structural_features

Edges = tuple[NDArray[np.int64], NDArray[np.int64]]


@pytest.fixture(scope="module")
def planted() -> tuple[Edges, NDArray[np.int64]]:
    """Two communities of 200 nodes, four times as many links within as between."""
    community = np.arange(400) % 2
    rng = np.random.default_rng(3)
    chance = np.where(community[:, None] == community, 0.08, 0.02)
    sources, targets = np.triu(rng.random((400, 400)) < chance, 1).nonzero()
    return (sources, targets), community


def dense(edges: Edges, n: int, **options: Any) -> NDArray[np.float32]:
    features, names = structural_features(*edges, n, **options)
    assert isinstance(features, np.ndarray)
    assert features.dtype == np.float32
    assert features.shape == (n, len(names)) == (n, len(set(names)))
    return features


def test_communities_become_separable(planted: tuple[Edges, NDArray[np.int64]]) -> None:
    edges, community = planted
    features = dense(edges, 400, directed=False)
    # Nearest class mean, learned from the first 60 nodes only.
    means = [features[:60][community[:60] == c].mean(axis=0) for c in (0, 1)]
    distances = np.stack([((features - mean) ** 2).sum(axis=1) for mean in means])
    accuracy = (distances.argmin(axis=0) == community)[60:].mean()
    assert accuracy > 0.9
    # The order of the nodes alone, without their links, gives nothing away.
    shuffled = np.random.default_rng(0).permutation(400)
    unrelated = features[shuffled]
    means = [unrelated[:60][community[:60] == c].mean(axis=0) for c in (0, 1)]
    distances = np.stack([((unrelated - mean) ** 2).sum(axis=1) for mean in means])
    assert (distances.argmin(axis=0) == community)[60:].mean() < 0.65


def test_a_walk_of_one_step_is_the_mean_of_neighbours() -> None:
    # A path 0-1-2 and an isolated node 3; the oracle walks with a dense transition matrix.
    edges = (np.array([0, 1, 1]), np.array([1, 2, 2]))
    features = dense(edges, 4, directed=False)
    transition = np.array(
        [[1 / 2, 1 / 2, 0, 0], [1 / 3, 1 / 3, 1 / 3, 0], [0, 1 / 2, 1 / 2, 0], [0, 0, 0, 1]]
    )
    start = np.random.default_rng(0).standard_normal((4, 64), dtype=np.float32)
    for block, steps in enumerate((1, 2, 4)):
        state = np.linalg.matrix_power(transition, steps) @ start
        state -= state.mean(axis=0)
        state /= np.linalg.norm(state, axis=1, keepdims=True)
        found = features[:, 1 + 64 * block : 1 + 64 * (block + 1)]
        np.testing.assert_allclose(found, state, atol=1e-5)


def test_degrees_are_standardised_logs() -> None:
    sources, targets = np.array([0, 0, 0, 0]), np.array([1, 2, 3, 3])
    undirected = dense((sources, targets), 4, directed=False)[:, 0]
    degrees = np.log1p([3, 1, 1, 1])  # parallel edges count once
    np.testing.assert_allclose(undirected, (degrees - degrees.mean()) / degrees.std(), rtol=1e-5)
    directed, names = structural_features(sources, targets, 4, directed=True)
    assert names[:2].tolist() == ["log in-degree", "log out-degree"]
    assert isinstance(directed, np.ndarray)
    assert directed[0, 1] > 0 > directed[0, 0]  # node 0 sends to all and hears from none


def test_direction_changes_the_degrees_but_not_the_walk() -> None:
    edges = (np.array([0, 1, 2, 2]), np.array([1, 2, 3, 0]))
    one_way = dense(edges, 4, directed=True)
    both_ways = dense(edges, 4, directed=False)
    np.testing.assert_array_equal(one_way[:, 2:], both_ways[:, 1:])


def test_every_run_gives_the_same_bytes(planted: tuple[Edges, NDArray[np.int64]]) -> None:
    edges, _ = planted
    first, second = (dense(edges, 400, directed=False) for _ in range(2))
    assert first.tobytes() == second.tobytes()


@pytest.mark.parametrize("n", [1, 5])
def test_a_graph_without_links_has_finite_features(n: int) -> None:
    nothing = np.empty(0, dtype=np.int64)
    features = dense((nothing, nothing), n, directed=False)
    assert np.isfinite(features).all()
    assert (features[:, 0] == 0).all()


def test_identity_gives_each_node_a_feature_of_its_own() -> None:
    features, names = structural_features([0, 1], [1, 2], 3, directed=False, kind="identity")
    assert sp.issparse(features)
    np.testing.assert_array_equal(features.toarray(), np.eye(3))
    assert names.tolist() == ["0", "1", "2"]
    graph = Graph.from_edges([0, 1], [1, 2], features, directed=False, feature_names=names)
    assert graph.is_sparse


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: structural_features([0], [1], 2, directed=False, kind="degree"), "'identity'"),
        (lambda: structural_features([0], [2], 2, directed=False), "numbers from 0 to 1"),
        (lambda: structural_features([-1], [0], 2, directed=False), "Got -1"),
        (lambda: structural_features([0, 1], [0], 2, directed=False), "as many sources"),
        (lambda: structural_features([], [], 0, directed=False), "no nodes"),
    ],
)
def test_bad_edges_are_refused(call: Callable[[], object], says: str) -> None:
    with pytest.raises(InputError, match=says) as caught:
        call()
    assert "\n" not in str(caught.value)
