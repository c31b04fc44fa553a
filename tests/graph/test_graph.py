from __future__ import annotations

import dataclasses
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from openima.errors import InputError
from openima.graph import graph as graph_module
from openima.graph.graph import Graph

Edge = tuple[int, int, float]

edge_lists = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, 6), st.sampled_from([0.5, 1.0, 2.0, 3.0])),
    max_size=25,
)


def naive_edges(edges: list[Edge], directed: bool) -> dict[tuple[int, int], float]:
    """The rules of `Graph`, on Python dicts: `(source, target) -> weight`."""
    given_edges: dict[tuple[int, int], float] = {}
    for source, target, weight in edges:
        given_edges[source, target] = given_edges.get((source, target), 0.0) + weight
    if directed:
        return given_edges
    both_ways = set(given_edges) | {(b, a) for a, b in given_edges}
    return {
        (a, b): max(given_edges.get((a, b), 0.0), given_edges.get((b, a), 0.0))
        for a, b in both_ways
    }


def stored_edges(graph: Graph) -> dict[tuple[int, int], float]:
    found = {}
    for node in range(graph.n_nodes):
        for at in range(int(graph.indptr[node]), int(graph.indptr[node + 1])):
            edge = (int(graph.sources[at]), node)
            assert edge not in found
            found[edge] = 1.0 if graph.weights is None else float(graph.weights[at])
    return found


def build(edges: list[Edge], n: int, *, directed: bool, weighted: bool) -> Graph:
    return Graph.from_edges(
        np.array([e[0] for e in edges], dtype=np.int64),
        np.array([e[1] for e in edges], dtype=np.int64),
        np.ones((n, 2), dtype=np.float32),
        directed=directed,
        weights=[e[2] for e in edges] if weighted else None,
    )


@settings(max_examples=150, deadline=None)
@given(edges=edge_lists, directed=st.booleans(), weighted=st.booleans())
def test_edges_follow_the_rules(edges: list[Edge], directed: bool, weighted: bool) -> None:
    graph = build(edges, 7, directed=directed, weighted=weighted)
    expected = naive_edges(edges, directed)
    found = stored_edges(graph)
    assert set(found) == set(expected)
    if weighted:
        assert found == expected
    assert (graph.weights is None) == (not weighted)
    # Sources ascend within a node, and the counts agree with counting one by one.
    for node in range(7):
        into = graph.sources[graph.indptr[node] : graph.indptr[node + 1]]
        assert (np.diff(into) > 0).all()
        assert graph.in_degrees[node] == len(into)
    assert graph.n_edges == len(expected)
    assert graph.n_self_loops == sum(a == b for a, b in expected)
    links = set(expected) if directed else {frozenset(edge) for edge in expected}
    assert graph.n_links == len(links)


@settings(max_examples=60, deadline=None)
@given(edges=edge_lists, directed=st.booleans(), seed=st.integers(0, 99))
def test_the_order_of_edges_changes_nothing(edges: list[Edge], directed: bool, seed: int) -> None:
    order = np.random.default_rng(seed).permutation(len(edges))
    first = build(edges, 7, directed=directed, weighted=True)
    second = build([edges[i] for i in order], 7, directed=directed, weighted=True)
    for name in ("indptr", "sources", "weights"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))


@settings(max_examples=60, deadline=None)
@given(edges=edge_lists)
def test_an_undirected_graph_is_its_own_mirror_image(edges: list[Edge]) -> None:
    found = stored_edges(build(edges, 7, directed=False, weighted=True))
    assert found == {(b, a): weight for (a, b), weight in found.items()}


def test_hand_made_examples() -> None:
    # Parallel edges add up first, then the larger direction holds; loops stay as they are.
    edges = [(0, 1, 1.0), (0, 1, 2.0), (1, 0, 2.5), (2, 2, 1.0), (2, 2, 4.0)]
    undirected = build(edges, 4, directed=False, weighted=True)
    assert stored_edges(undirected) == {(0, 1): 3.0, (1, 0): 3.0, (2, 2): 5.0}
    assert (undirected.n_edges, undirected.n_links, undirected.n_self_loops) == (3, 2, 1)
    directed = build(edges, 4, directed=True, weighted=True)
    assert stored_edges(directed) == {(0, 1): 3.0, (1, 0): 2.5, (2, 2): 5.0}
    assert (directed.n_edges, directed.n_links) == (3, 3)
    assert directed.indptr.tolist() == [0, 1, 2, 3, 3]


def test_a_graph_without_edges() -> None:
    graph = Graph.from_edges([], [], np.eye(3), directed=False)
    assert (graph.n_edges, graph.n_links, graph.n_self_loops) == (0, 0, 0)
    assert graph.indptr.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int32, np.int64, np.uint64])
def test_indices_are_int32(dtype: type[Any]) -> None:
    ends = np.array([0, 1], dtype=dtype), np.array([1, 2], dtype=dtype)
    graph = Graph.from_edges(*ends, np.eye(3), directed=False)
    assert graph.indptr.dtype == graph.sources.dtype == np.int32


@pytest.fixture(params=["dense", "fortran", "sparse"])
def features(request: pytest.FixtureRequest) -> Any:
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((50, 6)) < 0.3, rng.random((50, 6)), 0).astype(np.float32)
    if request.param == "sparse":
        return sp.csr_array(dense)
    return np.asfortranarray(dense) if request.param == "fortran" else dense


def arrays_of(features: Any) -> list[NDArray[Any]]:
    if isinstance(features, np.ndarray):
        return [features]
    return [features.data, features.indices, features.indptr]


def test_everything_is_read_only_and_the_users_arrays_are_not(features: Any) -> None:
    sources, targets = np.array([3, 1, 1]), np.array([2, 0, 0])
    weights, ids = np.array([1.0, 2.0, 3.0], dtype=np.float32), np.arange(50)
    names = np.array([f"f{i}" for i in range(6)])
    given_arrays = [sources, targets, weights, ids, names, *arrays_of(features)]
    before = [array.copy() for array in given_arrays]
    graph = Graph.from_edges(
        sources,
        targets,
        features,
        directed=False,
        weights=weights,
        node_ids=ids,
        feature_names=names,
    )
    for array, copy in zip(given_arrays, before, strict=True):
        np.testing.assert_array_equal(array, copy)
        assert array.flags.writeable
    kept = [graph.indptr, graph.sources, graph.weights, graph.node_ids, graph.feature_names]
    for kept_array in [*kept, *arrays_of(graph.features)]:
        assert kept_array is not None
        assert not kept_array.flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            kept_array[0] = kept_array[0]
    for field in dataclasses.fields(graph):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(graph, field.name, None)
    weights[:] = 9  # edges are copied
    assert graph.weights is not None
    assert graph.weights.max() == 5


def test_features_are_kept_as_they_come_without_a_copy(features: Any) -> None:
    graph = Graph.from_edges([0], [1], features, directed=True)
    for kept, original in zip(arrays_of(graph.features), arrays_of(features), strict=True):
        assert np.shares_memory(kept, original)
        assert kept.dtype == original.dtype
    assert graph.is_sparse == (not isinstance(features, np.ndarray))
    dense = features if isinstance(features, np.ndarray) else features.toarray()
    assert graph.density == pytest.approx((dense != 0).mean())
    assert graph.n_features == 6


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.bool_])
def test_whole_numbers_become_float32(dtype: type[Any]) -> None:
    values = np.eye(3).astype(dtype)
    assert Graph.from_edges([0], [1], values, directed=True).features.dtype == np.float32
    sparse = sp.csr_array(values)
    assert Graph.from_edges([0], [1], sparse, directed=True).features.dtype == np.float32


def test_nodes_have_names_if_given() -> None:
    ids = np.array(["x", "y", "z"])
    named = Graph.from_edges([0], [1], np.eye(3), directed=True, node_ids=ids, name="letters")
    assert named.id_of(1) == "y"
    assert Graph.from_edges([0], [1], np.eye(3), directed=True).id_of(1) == 1
    assert repr(named) == "Graph('letters', 3 nodes, 1 directed links, 3 dense features)"


def random_graph(n_nodes: int, n_links: int, n_features: int) -> Graph:
    rng = np.random.default_rng(0)
    sources = rng.integers(0, n_nodes, n_links, dtype=np.int32)
    targets = rng.integers(0, n_nodes, n_links, dtype=np.int32)
    features = rng.random((n_nodes, n_features), dtype=np.float32)
    return Graph.from_edges(sources, targets, features, directed=False)


def test_ogbn_products_fits_in_the_memory_it_may_take() -> None:
    graph = random_graph(2000, 30_000, 100)
    per_node, per_edge = 4 + 4 * graph.n_features, 4
    assert graph.nbytes == 4 + per_node * graph.n_nodes + per_edge * graph.n_edges
    assert per_node * 2_450_000 + per_edge * 123_700_000 < 2.5e9


def test_building_takes_memory_in_proportion_to_the_edges() -> None:
    tracemalloc.start()
    try:
        graph = random_graph(10_000, 500_000, 2)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 20 * graph.n_edges


def test_nbytes_counts_every_array(features: Any) -> None:
    graph = Graph.from_edges(
        [0, 1],
        [1, 2],
        features,
        directed=False,
        weights=[1.0, 2.0],
        node_ids=np.arange(50, dtype=np.int64),
        feature_names=np.array(list("abcdef")),
    )
    edges = 4 * 51 + 4 * 4 + 4 * 4
    names = 8 * 50 + 4 * 6
    assert graph.nbytes == edges + names + sum(a.nbytes for a in arrays_of(features))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("chunk", [1, 7, 1 << 22])
@pytest.mark.parametrize(("row", "column"), [(0, 0), (4, 2), (9, 5)])
def test_a_value_that_is_not_finite_is_found(
    monkeypatch: pytest.MonkeyPatch, order: Any, chunk: int, row: int, column: int
) -> None:
    monkeypatch.setattr(graph_module, "_CHUNK", chunk)
    dense = np.array(np.ones((10, 6), dtype=np.float32), order=order)
    Graph.from_edges([0], [1], dense, directed=True)
    dense[row, column] = -np.inf
    says = f"feature {column} of node {row} is -inf"
    with pytest.raises(InputError, match=says):
        Graph.from_edges([0], [1], dense, directed=True)
    dense[1:4] = 0  # rows without stored values
    if row not in (1, 2, 3):
        with pytest.raises(InputError, match=says):
            Graph.from_edges([0], [1], sp.csr_array(dense), directed=True)


def make(**changes: Any) -> Callable[[], Graph]:
    arguments = {
        "sources": [0, 1],
        "targets": [1, 2],
        "features": np.eye(3),
        "directed": False,
        "name": "here",
    }
    return lambda: Graph.from_edges(**{**arguments, **changes})


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (make(sources=[0]), "1 sources and 2 targets"),
        (make(sources=[0, 3]), "numbers from 0 to 2. Got 3"),
        (make(targets=[0, -1]), "Got -1"),
        (make(sources=[0.0, 1.0]), "type float64"),
        (make(sources=["a", "b"]), "integer arrays"),
        (make(sources=[[0, 1]]), r"shape \(1, 2\)"),
        (make(weights=[1.0]), "2 numbers"),
        (make(weights=["a", "b"]), "type <U1"),
        (make(weights=[1.0, 0.0]), "weight of edge 1 is not a positive number. Got 0"),
        (make(weights=[np.nan, 1.0]), "weight of edge 0"),
        (make(weights=[1.0, np.inf]), "weight of edge 1"),
        (make(features=np.ones(3)), r"one row a node.*shape \(3,\)"),
        (make(features=np.array([["a"]] * 3)), "matrix of numbers"),
        (make(features=np.eye(3, dtype=complex)), "matrix of numbers"),
        (make(features=np.ones((0, 3)), sources=[], targets=[]), "no nodes"),
        (make(features=sp.csr_array(np.eye(3) * np.nan)), "feature 0 of node 0 is nan"),
        (make(node_ids=np.arange(2)), "node ids do not fit"),
        (make(feature_names=np.array(["a"])), "feature names do not fit"),
    ],
)
def test_bad_input_is_refused(call: Callable[[], Graph], says: str) -> None:
    with pytest.raises(InputError, match=says) as caught:
        call()
    assert str(caught.value).startswith("here: ")
    assert "\n" not in str(caught.value)


def test_other_features_may_be_a_file_that_is_never_read_whole(tmp_path: Path) -> None:
    graph = Graph.from_edges([0], [1], np.eye(2), directed=True, feature_names=np.array(["a", "b"]))
    big = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", np.float16, (2, 1 << 22))
    big[1] = 1
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    tracemalloc.start()
    try:
        other = graph.with_features(mapped)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < mapped.nbytes
    assert graph_module.is_mapped(other.features)
    assert not graph_module.is_mapped(graph.features)
    assert other.n_features == 1 << 22
    assert other.feature_names is None
    assert graph.feature_names is not None
    assert other.sources is graph.sources


def test_other_features_have_a_row_a_node_and_finite_numbers() -> None:
    graph = Graph.from_edges([0], [1], np.eye(2), directed=True)
    named = graph.with_features(np.ones((2, 1)), np.array(["size"]))
    assert named.feature_names is not None
    assert named.feature_names.tolist() == ["size"]
    with pytest.raises(InputError, match=r"Expected 2 rows.*Got 3"):
        graph.with_features(np.ones((3, 1)))
    with pytest.raises(InputError, match="feature 0 of node 1 is nan"):
        graph.with_features(np.array([[1.0], [np.nan]]))
