import importlib
import time
import tracemalloc

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from openima.errors import InputError
from openima.metrics import silhouette

Points = NDArray[np.float32]
Ids = NDArray[np.int64]
inner = importlib.import_module("openima.metrics.silhouette")  # the name is the function's too
repeatable = settings(derandomize=True, deadline=None, max_examples=60)


def on_sphere(x: NDArray[np.float64]) -> Points:
    return np.asarray(x / np.linalg.norm(x, axis=1, keepdims=True), dtype=np.float32)


def blobs(n: int, k: int, spread: float = 1.0, d: int = 64) -> tuple[Points, Ids]:
    rng = np.random.default_rng(n + k)
    cluster = rng.integers(0, k, n)
    noise = spread * rng.standard_normal((n, d))
    return on_sphere(rng.standard_normal((k, d))[cluster] + noise), cluster


def reference(z: Points, cluster: Ids) -> float:
    """Ask scikit-learn in float64, scaled so that squares neither overflow nor vanish."""
    wide = z.astype(np.float64)
    metrics = importlib.import_module("sklearn.metrics")  # it has no types
    return float(metrics.silhouette_score(wide / np.abs(wide).max(), cluster))


def naive(z: NDArray[np.float64], cluster: list[int]) -> float:
    """Follow the definition, node by node."""
    scores = []
    for i, own in enumerate(cluster):
        distances: dict[int, list[float]] = {c: [] for c in cluster}
        for j, other in enumerate(cluster):
            if i != j:
                distances[other].append(float(np.linalg.norm(z[i] - z[j])))
        if not distances[own]:
            scores.append(0.0)
            continue
        a = float(np.mean(distances.pop(own)))
        b = min(float(np.mean(values)) for values in distances.values())
        scores.append((b - a) / max(a, b) if max(a, b) > 0 else 0.0)
    return float(np.mean(scores))


@pytest.fixture(params=["each pair once", "rows in full"])
def _both_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run with and without room for the sums of every node and cluster."""
    if request.param == "rows in full":
        monkeypatch.setattr(inner, "_MAX_SUMS", 0)


@pytest.mark.usefixtures("_both_ways")
@pytest.mark.parametrize("block", [1, 3, 8, 512])
@pytest.mark.parametrize("large", [1, 4, 128])
def test_agrees_with_the_definition_for_any_blocks(
    block: int, large: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inner, "_BLOCK", block)
    monkeypatch.setattr(inner, "_LARGE", large)
    rng = np.random.default_rng(block)
    for k in (2, 5, 20):
        z, cluster = rng.standard_normal((30, 4)), rng.integers(0, k, 30)
        assert silhouette(z, cluster) == pytest.approx(naive(z, cluster.tolist()), abs=1e-6)


@repeatable
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-2, 2)), min_size=2, max_size=20))
def test_agrees_with_the_definition_for_any_grid_points(nodes: list[tuple[int, int]]) -> None:
    cluster = [c for c, _ in nodes]
    z = np.array([[x, c * x] for c, x in nodes], dtype=np.float64)  # equal rows abound
    expected = naive(z, cluster) if len(set(cluster)) > 1 else -1.0
    assert silhouette(z, cluster) == pytest.approx(expected, abs=1e-6)


@pytest.mark.usefixtures("_both_ways")
@pytest.mark.parametrize("k", [2, 5, 50, 700])
def test_agrees_with_scikit_learn_on_unit_rows(k: int) -> None:
    z, cluster = blobs(2500, k)
    assert silhouette(z, cluster) == pytest.approx(reference(z, cluster), abs=1e-6)


@pytest.mark.parametrize("share", [0.5, 1.0])
@pytest.mark.parametrize(("n_points", "k"), [(8, 8), (32, 8), (60, 60)])
def test_exact_duplicates_have_no_distance(share: float, n_points: int, k: int) -> None:
    """Half or all of the rows repeat a few points, where rounding would show the most."""
    z, _ = blobs(2000, 8)
    rng = np.random.default_rng(0)
    point = rng.integers(0, n_points, 2000)
    repeated = rng.random(2000) < share
    z[repeated] = z[point[repeated]]
    cluster = point % k
    assert silhouette(z, cluster) == pytest.approx(reference(z, cluster), abs=1e-4)


@pytest.mark.parametrize("width", [1e-2, 1e-3, 1e-4])
def test_clusters_that_split_a_collapsed_class(width: float) -> None:
    """Two clusters share each tight class, far from the others: the small scale decides."""
    z, cluster = blobs(2000, 4, spread=width)
    centre = np.stack([z[cluster == c].mean(axis=0) for c in range(4)])
    halves = cluster + 4 * (z[:, 0] > centre[cluster, 0])
    assert silhouette(z, halves) == pytest.approx(reference(z, halves), abs=1e-5)


@pytest.mark.parametrize("mean", [0.0, 100.0, 1e4])
@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_shift_and_scale_do_not_matter(mean: float, scale: float) -> None:
    rng = np.random.default_rng(1)
    cluster = rng.integers(0, 6, 1000)
    x = rng.standard_normal((6, 16))[cluster] + rng.standard_normal((1000, 16)) + mean
    z = (x * scale).astype(np.float32)
    assert silhouette(z, cluster) == pytest.approx(reference(z, cluster), abs=1e-5)


def test_names_and_order_of_clusters_do_not_matter() -> None:
    z, cluster = blobs(900, 5)
    names, order = np.array([7, -3, 10**9, 0, 2]), np.random.default_rng(0).permutation(900)
    expected = silhouette(z, cluster)
    assert silhouette(z[order], names[cluster][order]) == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize(
    ("clusters", "expected"),
    [([4, 4, 4], -1.0), ([2, 0, 1], 0.0), ([1, 1, 0], (1 - 1 / 5 + 1 - 1 / 4 + 0) / 3)],
)
def test_one_cluster_only_singletons_and_one_singleton(
    clusters: list[int], expected: float
) -> None:
    assert silhouette([[0.0], [1.0], [5.0]], clusters) == pytest.approx(expected, abs=1e-6)


def test_nodes_that_all_coincide_score_zero() -> None:
    assert silhouette(np.ones((6, 3), np.float32), [0, 0, 0, 1, 1, 2]) == 0.0


def test_no_nodes_are_no_two_clusters() -> None:
    assert silhouette(np.empty((0, 3)), []) == -1.0


def test_a_large_graph_is_sampled_by_seed() -> None:
    z, cluster = blobs(3000, 4)
    exact = silhouette(z, cluster)
    assert exact == silhouette(z, cluster, max_exact=None) == silhouette(z, cluster, max_exact=3000)
    few = [silhouette(z, cluster, max_exact=2999, sample_size=500, seed=s) for s in (0, 0, 1)]
    assert few[0] == few[1] != few[2]
    assert few[0] == pytest.approx(exact, abs=0.02)
    assert few[0] != exact
    whole = silhouette(z, cluster, max_exact=100)  # a sample of 10,000 is every node
    assert whole == pytest.approx(exact, abs=1e-6)
    assert silhouette(z, cluster, max_exact=2999, sample_size=1) == -1.0


def test_input_of_any_kind_is_left_as_it_is() -> None:
    z, cluster = blobs(300, 3)
    before = z.copy(), cluster.copy()
    expected = silhouette(z, cluster)
    np.testing.assert_array_equal(z, before[0])
    np.testing.assert_array_equal(cluster, before[1])
    tensors = np.asarray(torch.from_numpy(z)), np.asarray(torch.from_numpy(cluster))
    assert silhouette(*tensors) == expected
    assert silhouette(z.astype(np.float64), cluster.astype(np.int16)) == expected
    assert silhouette(z.astype(np.float16), cluster) == pytest.approx(expected, abs=1e-3)


def test_memory_stays_far_below_all_pairs() -> None:
    z, cluster = blobs(8000, 10, d=16)
    tracemalloc.start()
    silhouette(z, cluster)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16e6  # all pairs in float32 would be 256 MB


@pytest.mark.slow
@pytest.mark.parametrize("k", [5, 50])
def test_exact_physics_size_in_five_cpu_seconds(k: int) -> None:
    z, cluster = blobs(34_493, k, d=128)
    seconds = []
    for _ in range(3):
        start = time.process_time()
        silhouette(z, cluster, max_exact=None)
        seconds.append(time.process_time() - start)
    assert min(seconds) < 5.0


@pytest.mark.parametrize(
    ("z", "clusters", "message"),
    [
        ([[0.0], [1.0]], [0], "clusters does not fit the nodes.*Expected 2 numbers. Got 1"),
        ([0.0, 1.0], [0, 1], "z is a matrix of numbers"),
        ([["a"], ["b"]], [0, 1], "z is a matrix of numbers"),
        ([[0.0], [np.nan]], [0, 1], "row 1 of z holds values that are not finite"),
        ([[0.0], [1.0]], [0.5, 1.0], "clusters is a list of whole numbers"),
        (torch.zeros(2, 1, requires_grad=True), [0, 1], "z cannot be read.*detach"),
    ],
)
def test_bad_input_is_refused(z: list[list[float]], clusters: list[int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        silhouette(z, clusters)


def test_a_sample_needs_a_node() -> None:
    with pytest.raises(InputError, match="sample_size must be at least 1"):
        silhouette([[0.0], [1.0]], [0, 1], sample_size=0)


@pytest.mark.parametrize("max_exact", [None, 100])
def test_chosen_nodes_count_as_if_there_were_no_others(max_exact: int | None) -> None:
    z, cluster = blobs(500, 4)
    nodes = np.random.default_rng(0).permutation(500)[:300]
    found = silhouette(z, cluster, nodes=nodes, max_exact=max_exact, sample_size=50, seed=3)
    alone = silhouette(z[nodes], cluster[nodes], max_exact=max_exact, sample_size=50, seed=3)
    assert found == alone
    assert found != silhouette(z, cluster, max_exact=max_exact, sample_size=50, seed=3)


def test_of_a_large_matrix_no_more_than_the_sample_is_copied() -> None:
    z, cluster = np.zeros((200_000, 32), dtype=np.float32), np.arange(200_000) % 2
    z[:, 0] = cluster
    tracemalloc.start()
    try:
        assert silhouette(z, cluster, nodes=np.arange(199_000), sample_size=100) == 1.0
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < z.nbytes / 2
