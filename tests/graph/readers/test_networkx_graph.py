from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openima.errors import InputError, MissingFileError
from openima.graph.graph import Graph
from openima.graph.readers.common import optional_package
from openima.graph.readers.networkx_graph import read_networkx

nx: Any = optional_package("networkx", "networkx")


@pytest.fixture
def people() -> Any:
    """Three nodes with text ids, numbers, a list and a label; two weighted links."""
    graph = nx.Graph(name="people")
    graph.add_node("ann", age=40, tall=True, place=[1.0, 2.0], label="red")
    graph.add_node("bob", age=30.5, tall=False, place=[3.0, 4.0], label="")
    graph.add_node("cid", age=20, tall=True, place=[5.0, 6.0], label="blue")
    graph.add_edge("bob", "ann", weight=2.0)
    graph.add_edge("cid", "cid", weight=0.5)
    return graph


def test_attributes_become_features_and_labels(people: Any) -> None:
    found = read_networkx(people)
    graph = found.graph
    assert graph.name == "people"
    assert not graph.directed
    assert [graph.id_of(i) for i in range(3)] == ["ann", "bob", "cid"]
    assert graph.feature_names is not None
    assert graph.feature_names.tolist() == ["age", "tall", "place.0", "place.1"]
    expected = [[40, 1, 1, 2], [30.5, 0, 3, 4], [20, 1, 5, 6]]
    assert isinstance(graph.features, np.ndarray)
    assert graph.features.dtype == np.float32
    assert graph.features.tolist() == expected
    assert found.class_names == ("blue", "red")
    assert found.labels.tolist() == [1, -1, 0]
    assert graph.indptr.tolist() == [0, 1, 2, 3]
    assert graph.sources.tolist() == [1, 0, 2]
    assert graph.weights is not None
    assert graph.weights.tolist() == [2.0, 2.0, 0.5]


def test_options_choose_other_attributes(people: Any) -> None:
    nx.set_edge_attributes(people, 3, "strength")
    found = read_networkx(
        people, labels="tall", unknown="False", features="place", weight="strength"
    )
    assert found.class_names == ("True",)
    assert found.labels.tolist() == [0, -1, 0]
    assert found.graph.n_features == 2
    assert found.graph.weights is not None
    assert set(found.graph.weights.tolist()) == {3.0}


def test_direction_comes_from_the_graph() -> None:
    graph = nx.DiGraph([(5, 3), (3, 9)])
    found = read_networkx(graph).graph
    assert found.directed
    assert found.node_ids is not None
    assert found.node_ids.tolist() == [5, 3, 9]
    assert found.node_ids.dtype == np.int64
    assert found.indptr.tolist() == [0, 0, 1, 2]
    assert found.sources.tolist() == [0, 1]
    assert found.n_features == 194  # structural, in- and out-degree told apart


def test_parallel_edges_of_a_multigraph_add_up() -> None:
    graph = nx.MultiDiGraph()
    graph.add_edge(0, 1, weight=1.0)
    graph.add_edge(0, 1, weight=2.5)
    found = read_networkx(graph).graph
    assert found.n_edges == 1
    assert found.weights is not None
    assert found.weights.tolist() == [3.5]


def test_numbers_as_labels_are_named_and_sorted_as_numbers() -> None:
    graph = nx.path_graph(4)
    nx.set_node_attributes(graph, {0: 10, 1: 9, 2: float("nan"), 3: 9.0}, "y")
    found = read_networkx(graph)
    assert found.class_names == ("9", "10")
    assert found.labels.tolist() == [1, 0, -1, 0]


def test_nodes_of_other_kinds_are_named_by_their_text() -> None:
    found = read_networkx(nx.grid_2d_graph(2, 2), structural="identity").graph
    assert found.id_of(3) == "(1, 1)"
    assert found.is_sparse
    assert found.n_features == 4


def test_graphml_and_the_object_say_the_same(people: Any, tmp_path: Path) -> None:
    for _, data in people.nodes(data=True):
        del data["place"]  # GraphML has no lists
    nx.write_graphml(people, tmp_path / "people.graphml")
    file, given_object = read_networkx(str(tmp_path / "people.graphml")), read_networkx(people)
    assert file.graph.name == "people"
    assert file.class_names == given_object.class_names
    np.testing.assert_array_equal(file.labels, given_object.labels)
    for name in ("indptr", "sources", "features", "weights", "node_ids", "feature_names"):
        np.testing.assert_array_equal(getattr(file.graph, name), getattr(given_object.graph, name))


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(1, 8),
    pairs=st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=20),
    kind=st.sampled_from(["Graph", "DiGraph", "MultiGraph", "MultiDiGraph"]),
)
def test_edges_are_those_of_from_edges(n: int, pairs: list[tuple[int, int]], kind: str) -> None:
    pairs = [(a % n, b % n) for a, b in pairs]
    graph = getattr(nx, kind)()
    graph.add_nodes_from((f"node {i}", {"x": float(i)}) for i in range(n))
    graph.add_edges_from((f"node {a}", f"node {b}") for a, b in pairs)
    found = read_networkx(graph).graph
    expected = Graph.from_edges(
        np.array([a for a, _ in pairs], dtype=int),
        np.array([b for _, b in pairs], dtype=int),
        np.arange(n, dtype=np.float32)[:, None],
        directed="Di" in kind,
    )
    np.testing.assert_array_equal(found.indptr, expected.indptr)
    np.testing.assert_array_equal(found.sources, expected.sources)
    np.testing.assert_array_equal(found.features, expected.features)


@pytest.mark.parametrize(
    ("change", "options", "says"),
    [
        (lambda g: g.nodes["bob"].pop("age"), {}, "'age': node 'bob' has no value"),
        (
            lambda g: g.nodes["bob"].update(age="old"),
            {},
            "'bob' holds.*not a number.*'old'.*labels=",
        ),
        (lambda g: g.nodes["bob"].update(age="7"), {}, "'age': node 'bob' holds"),
        (lambda g: g.nodes["bob"].update(place=[1.0]), {}, "'place': node 'bob'.*Expected 2"),
        (lambda g: g.nodes["bob"].update(place=3.0), {}, "'place': node 'bob'.*Expected 2"),
        (lambda g: g.nodes["bob"].update(place=[[1.0, 2.0]]), {}, "'place': node 'bob' holds"),
        (lambda g: g.nodes["bob"].update(age=float("inf")), {}, "feature 0 of node 1 is inf"),
        (lambda g: g["bob"]["ann"].pop("weight"), {}, r"edge \('ann', 'bob'\) has no value"),
        (lambda g: g["bob"]["ann"].update(weight="much"), {}, "'weight': edge .*not a number"),
        (lambda g: g["bob"]["ann"].update(weight=-1.0), {}, "weight of edge 0"),
        (lambda g: g.clear(), {}, "no nodes"),
        (lambda _: None, {"labels": "colour"}, "attribute 'colour'.*age, tall, place, label"),
        (lambda _: None, {"features": ["size"]}, "attribute 'size'"),
        (lambda _: None, {"features": ["label"]}, "both label and feature"),
        (lambda _: None, {"weight": "strength"}, "no edge has the attribute 'strength'"),
        (lambda _: None, {"unknown": "green"}, "no label is 'green'.*blue, red"),
        (lambda _: None, {"features": [], "structural": "x"}, "structural features 'x'"),
        (lambda g: [d.pop("label") for _, d in g.nodes(data=True)], {"unknown": "?"}, "labels="),
    ],
)
def test_bad_graphs_are_refused(
    people: Any, change: Callable[[Any], object], options: dict[str, Any], says: str
) -> None:
    change(people)
    with pytest.raises(InputError, match=says) as caught:
        read_networkx(people, **options)
    assert "Remedy: " in str(caught.value)
    assert "\n" not in str(caught.value)


def test_ids_that_are_written_alike_are_refused() -> None:
    with pytest.raises(InputError, match="two nodes are written '1'"):
        read_networkx(nx.Graph([(1, "1")]))


GRAPHML = '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">{}</graphml>'


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "the file is empty"),
        (GRAPHML.format("<graph edgedefault='undirected'><node id='a'>"), "mismatched tag"),
        (GRAPHML.format(""), "not a readable GraphML file"),
        ("id,label\n1,2\n", "not a readable GraphML file"),
        (
            GRAPHML.format(
                "<key id='d0' for='node' attr.name='age' attr.type='double'/>"
                "<graph edgedefault='undirected'><node id='a'><data key='d0'>old</data></node>"
                "</graph>"
            ),
            "could not convert string to float: 'old'",
        ),
        (
            GRAPHML.format(
                "<graph edgedefault='directed'><node id='a'><data key='d7'/></node></graph>"
            ),
            "d7",
        ),
        (GRAPHML.format("<graph edgedefault='directed'></graph>"), "no nodes"),
    ],
)
def test_bad_files_are_refused(tmp_path: Path, content: str, says: str) -> None:
    path = tmp_path / "bad.graphml"
    path.write_text(content)
    with pytest.raises(InputError, match=says) as caught:
        read_networkx(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert "Remedy" in message
    assert "\n" not in message


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match=r"absent\.graphml"):
        read_networkx(tmp_path / "absent.graphml")
