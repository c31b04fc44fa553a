from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from openima.errors import InputError
from openima.graph.graph import Graph
from openima.graph.synthetic import synthetic
from openima.graph.task import LabelledGraph


def ends(graph: Graph) -> tuple[NDArray[Any], NDArray[Any]]:
    """Source and target of every stored edge."""
    return graph.sources, np.repeat(np.arange(graph.n_nodes), graph.in_degrees)


def same_class_share(made: LabelledGraph) -> float:
    source, target = ends(made.graph)
    return float((made.labels[source] == made.labels[target]).mean())


def dense_features(made: LabelledGraph) -> NDArray[Any]:
    features = made.graph.features
    assert isinstance(features, np.ndarray)
    return features


def test_sizes_are_exact() -> None:
    made = synthetic(1_234, 5, average_degree=9.3, n_features=7, homophily=0.7, seed=3)
    graph = made.graph
    assert graph.n_nodes == 1_234
    assert graph.n_links == round(1_234 * 9.3 / 2)
    assert graph.n_edges == 2 * graph.n_links
    assert graph.n_self_loops == 0
    assert not graph.directed
    assert graph.weights is None
    assert graph.features.shape == (1_234, 7)
    assert graph.features.dtype == np.float32
    assert graph.sources.dtype == np.int32
    assert made.class_names == tuple(f"class {c}" for c in range(5))
    assert np.unique(made.labels).tolist() == [0, 1, 2, 3, 4]


def test_both_directions_of_every_link_are_there() -> None:
    source, target = ends(synthetic(500, 3, seed=1).graph)
    assert set(zip(source, target, strict=True)) == set(zip(target, source, strict=True))


@pytest.mark.parametrize("homophily", [0.0, 0.25, 0.8, 1.0])
@pytest.mark.parametrize("imbalance", [1.0, 20.0])
def test_homophily_is_met_to_the_nearest_link(homophily: float, imbalance: float) -> None:
    made = synthetic(3_000, 4, homophily=homophily, imbalance=imbalance, average_degree=6)
    assert same_class_share(made) == pytest.approx(homophily, abs=1 / made.graph.n_links)


def test_links_between_two_very_uneven_classes_are_found() -> None:
    made = synthetic(20_000, 2, homophily=0.9, imbalance=1_000, average_degree=4)
    assert same_class_share(made) == pytest.approx(0.9, abs=1e-4)


@pytest.mark.parametrize("imbalance", [1.0, 10.0, 100.0])
def test_class_sizes_fall_geometrically(imbalance: float) -> None:
    made = synthetic(40_000, 5, imbalance=imbalance, average_degree=2, n_features=1)
    sizes = np.bincount(made.labels)
    assert sizes.sum() == 40_000
    assert sizes[0] / sizes[-1] == pytest.approx(imbalance, rel=0.01)
    steps = sizes[:-1] / sizes[1:]
    assert steps == pytest.approx(np.full(4, imbalance ** (1 / 4)), rel=0.01)


def test_class_is_not_told_by_the_node_number() -> None:
    labels = synthetic(10_000, 2, average_degree=1, n_features=1).labels
    assert np.corrcoef(labels, np.arange(10_000))[0, 1] == pytest.approx(0, abs=0.05)


@pytest.mark.parametrize("exponent", [2.2, 2.5, 3.5])
def test_degrees_have_the_tail_asked_for(exponent: float) -> None:
    """Below the cut-off, P(degree >= d) falls as d ** (1 - exponent)."""
    made = synthetic(100_000, 2, average_degree=30, n_features=1, degree_exponent=exponent)
    degrees = made.graph.in_degrees
    assert degrees.mean() == pytest.approx(30)
    at = np.geomspace(2 * degrees.mean(), 10 * degrees.mean(), 10)
    share = [(degrees >= d).mean() for d in at]
    slope = np.polyfit(np.log(at), np.log(share), 1)[0]
    assert slope == pytest.approx(1 - exponent, abs=0.25)


def test_noise_spreads_features_around_unit_centres() -> None:
    made = synthetic(20_000, 3, n_features=16, feature_noise=0.5, average_degree=1)
    features = dense_features(made)
    for c in range(3):
        own = features[made.labels == c]
        assert np.linalg.norm(own.mean(axis=0)) == pytest.approx(1, abs=0.05)
        assert own.std(axis=0) == pytest.approx(np.full(16, 0.5), rel=0.05)


def test_without_noise_features_are_the_centres() -> None:
    made = synthetic(300, 3, n_features=16, feature_noise=0, average_degree=2)
    assert len(np.unique(dense_features(made), axis=0)) == 3


def test_same_seed_same_bytes_and_another_seed_another_graph() -> None:
    one, two, other = (synthetic(2_000, 4, seed=seed) for seed in (7, 7, 8))
    for part in ("indptr", "sources", "features"):
        assert getattr(one.graph, part).tobytes() == getattr(two.graph, part).tobytes()
    assert one.labels.tobytes() == two.labels.tobytes()
    assert not np.array_equal(one.labels, other.labels)
    assert not np.array_equal(one.graph.sources, other.graph.sources)


def test_tiny_graph() -> None:
    made = synthetic(4, 2, average_degree=0.5, homophily=0.0, n_features=1)
    assert (made.graph.n_nodes, made.graph.n_links) == (4, 1)


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"n_nodes": 3}, "n_nodes"),
        ({"n_nodes": 100.0}, "n_nodes"),
        ({"n_nodes": True}, "n_nodes"),
        ({"n_nodes": 2**31}, "n_nodes"),
        ({"n_classes": 1}, "n_classes"),
        ({"n_classes": 51}, "n_classes"),
        ({"n_features": 0}, "n_features"),
        ({"seed": -1}, "seed"),
        ({"average_degree": 0}, "average_degree"),
        ({"average_degree": float("nan")}, "average_degree"),
        ({"average_degree": float("inf")}, "average_degree"),
        ({"homophily": 1.1}, "homophily"),
        ({"homophily": -0.1}, "homophily"),
        ({"imbalance": 0.5}, "imbalance"),
        ({"imbalance": 1000}, "smallest class"),
        ({"feature_noise": -1}, "feature_noise"),
        ({"degree_exponent": 2}, "degree_exponent"),
        ({"average_degree": 60}, "too dense"),
        ({"average_degree": 30, "homophily": 1.0}, "inside class 0 for"),
        ({"average_degree": 99, "homophily": 0.0, "n_classes": 2}, "between classes for"),
    ],
)
def test_impossible_wishes_get_one_clear_line(changed: dict[str, Any], named: str) -> None:
    wishes: dict[str, Any] = {"n_nodes": 100, "n_classes": 4, "average_degree": 5} | changed
    with pytest.raises(InputError, match=named) as caught:
        synthetic(**wishes)
    assert str(caught.value).startswith("synthetic: ")
    assert "\n" not in str(caught.value)


def test_hubs_that_leave_no_different_links_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing stops with a clear line where duplicates never run out."""
    module = inspect.getmodule(synthetic)
    monkeypatch.setattr(module, "_ROUNDS", 1)
    with pytest.raises(InputError, match="after 1 rounds"):
        synthetic(60, 2, average_degree=10, homophily=1.0, degree_exponent=2.01)


@pytest.mark.slow
def test_a_graph_of_the_size_of_ogbn_products() -> None:
    made = synthetic(2_400_000, 40, average_degree=50, n_features=100, imbalance=50)
    assert made.graph.n_links == 60_000_000
    assert same_class_share(made) == pytest.approx(0.8)
