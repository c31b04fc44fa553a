"""Two tables become the graph that the same arrays make, whatever the format and the order."""

from __future__ import annotations

import gzip
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from openima.graph.graph import Graph
from openima.graph.readers.table_features import word_weights
from openima.graph.readers.tables import find_tables, read_tables
from openima.graph.structural import structural_features
from openima.graph.task import LabelledGraph


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., LabelledGraph]:
    """Write both tables as CSV text and read them."""

    def write_and_read(nodes: str, edges: str, **options: Any) -> LabelledGraph:
        paths = tmp_path / "nodes.csv", tmp_path / "edges.csv"
        for path, content in zip(paths, (nodes, edges), strict=True):
            path.write_text(content, newline="")
        return read_tables(*paths, **options)

    return write_and_read


def dense(graph: Graph) -> NDArray[Any]:
    features = graph.features
    return features if isinstance(features, np.ndarray) else np.asarray(features.toarray())


def assert_same(one: Graph, other: Graph) -> None:
    np.testing.assert_array_equal(one.indptr, other.indptr)
    np.testing.assert_array_equal(one.sources, other.sources)
    np.testing.assert_array_equal(dense(one), dense(other))
    assert one.directed == other.directed
    assert (one.weights is None) == (other.weights is None)
    if one.weights is not None and other.weights is not None:
        np.testing.assert_allclose(one.weights, other.weights, rtol=1e-6)


def test_usual_names_are_found_in_any_case_and_place(read: Callable[..., LabelledGraph]) -> None:
    found = read(
        "x,Class,NODE_ID,z\n1,red,a,0.5\n2,,b,1e-2\n3,blue,c,-4\n",
        "when,To,From,Weight\n2001,b,a,2\n2002,c,b,0.5\n",
        directed=True,
    )
    graph = found.graph
    assert found.class_names == ("blue", "red")
    assert found.labels.tolist() == [1, -1, 0]
    assert graph.node_ids is not None
    assert graph.node_ids.tolist() == ["a", "b", "c"]
    assert graph.feature_names is not None
    assert graph.feature_names.tolist() == ["x", "z"]
    assert graph.weights is not None
    np.testing.assert_allclose(dense(graph), np.array([[1, 0.5], [2, 0.01], [3, -4]]), rtol=1e-6)
    # a -> b with weight 2, b -> c with 0.5
    assert graph.indptr.tolist() == [0, 0, 1, 2]
    assert graph.sources.tolist() == [0, 1]
    assert graph.weights.tolist() == [2, 0.5]


def test_names_can_be_given_and_what_is_left_is_a_feature(
    read: Callable[..., LabelledGraph],
) -> None:
    found = read(
        "label,key,group\n1,a,p\n2,b,q\n",
        "weight,end,start,strength\n0,b,a,7\n",
        id="key",
        labels="group",
        source="start",
        target="end",
        weight="strength",
    )
    assert found.class_names == ("p", "q")
    assert dense(found.graph).tolist() == [[1], [2]]  # the column called label
    assert found.graph.weights is not None
    assert found.graph.weights.tolist() == [7, 7]


def test_without_usual_names_the_first_columns_count(read: Callable[..., LabelledGraph]) -> None:
    found = read("y,paper,x\nA,p,1\nB,q,2\n", "citing,cited,year\np,q,1999\n", directed=True)
    assert found.graph.node_ids is not None
    assert found.graph.node_ids.tolist() == ["p", "q"]  # y is the label
    assert found.graph.sources.tolist() == [0]
    assert found.graph.indptr.tolist() == [0, 0, 1]
    assert found.graph.weights is None


@pytest.mark.parametrize(
    ("ids", "kind", "first"),
    [
        (("7", "3", "1000000000000000"), "i", 7),
        (("7", "-3", "0"), "i", 7),
        (("7", "007", "8"), "U", "7"),
        (("7", "3", "99999999999999999999"), "U", "7"),
        (("7.0", "3", "1"), "U", "7.0"),
        ((" 7", "3 ", "1"), "i", 7),
        (("NA", "null", "nan"), "U", "NA"),
        (("é", "日本", "ß"), "U", "é"),
    ],
)
def test_ids_are_integers_only_if_all_are(
    ids: tuple[str, ...], kind: str, first: Any, read: Callable[..., LabelledGraph]
) -> None:
    rows = "".join(f"{id},{x}\n" for x, id in enumerate(ids))
    graph = read("id,x\n" + rows, f"source,target\n{ids[2]},{ids[0]}\n", directed=True).graph
    assert graph.node_ids is not None
    assert graph.node_ids.dtype.kind == kind
    assert graph.node_ids[0] == first
    assert graph.sources.tolist() == [2]
    assert graph.indptr.tolist() == [0, 1, 1, 1]


@pytest.mark.parametrize(
    ("labels", "unknown", "names", "codes"),
    [
        (["10", "9", "", "2"], None, ("2", "9", "10"), [2, 1, -1, 0]),
        (["3.0", "1.0", "nan", "3"], None, ("1", "3"), [1, 0, -1, 1]),
        (["-1", "4", "4", "5"], "-1", ("4", "5"), [-1, 0, 0, 1]),
        (["-1.0", "4", "4", "5"], "-1", ("4", "5"), [-1, 0, 0, 1]),
        (["-1", "4", "4", "5"], None, ("-1", "4", "5"), [0, 1, 1, 2]),
        (["?", "b ", "NULL", "a"], "?", ("a", "b"), [-1, 1, -1, 0]),
        (["007", "7", "10", "a"], None, ("007", "10", "7", "a"), [0, 2, 1, 3]),
        (["true", "false", "true", ""], None, ("false", "true"), [1, 0, 1, -1]),
        (["0.5", "1.0", "0.5", "N/A"], None, ("0.5", "1"), [0, 1, 0, -1]),
    ],
)
def test_labels(
    labels: list[str],
    unknown: str | None,
    names: tuple[str, ...],
    codes: list[int],
    read: Callable[..., LabelledGraph],
) -> None:
    rows = "".join(f"{id},{label},1\n" for id, label in enumerate(labels))
    found = read("id,label,x\n" + rows, "source,target\n0,1\n", unknown=unknown)
    assert found.class_names == names
    assert found.labels.tolist() == codes


def test_without_labels_all_are_unknown(read: Callable[..., LabelledGraph]) -> None:
    found = read("id,x\n1,1\n2,2\n", "source,target\n1,2\n")
    assert found.class_names == ()
    assert found.labels.tolist() == [-1, -1]


def test_true_and_false_are_numbers(read: Callable[..., LabelledGraph]) -> None:
    graph = read("id,x,z\n1,True, 0\n2,false,1\t\n", "source,target\n1,2\n").graph
    assert dense(graph).tolist() == [[1, 0], [0, 1]]
    assert dense(graph).dtype == np.float32


TITLES = ["graph neural nets", "neural graph models, and graph kernels", "kernels", "12 of é"]


def test_text_becomes_sparse_words_of_unit_length(read: Callable[..., LabelledGraph]) -> None:
    rows = "".join(f'{id},"{title}"\n' for id, title in enumerate(TITLES))
    graph = read("id,title\n" + rows, "source,target\n0,1\n", text="title").graph
    assert graph.is_sparse
    assert graph.features.dtype == np.float32
    assert graph.feature_names is not None
    assert graph.feature_names.tolist() == ["title:graph", "title:kernels", "title:neural"]
    # By hand: each of the three words is in two of four rows, so all weigh the same.
    counts = np.array([[1, 0, 1], [2, 1, 1], [0, 1, 0], [0, 0, 0]], dtype=np.float64)
    lengths = np.maximum(np.linalg.norm(counts, axis=1, keepdims=True), 1e-9)
    np.testing.assert_allclose(dense(graph), counts / lengths, rtol=1e-6)


def test_numbers_come_before_words(read: Callable[..., LabelledGraph]) -> None:
    rows = "".join(f'{id},"{title}",{id}.5\n' for id, title in enumerate(TITLES))
    graph = read("id,title,year\n" + rows, "source,target\n0,1\n", text="title").graph
    assert sp.issparse(graph.features)
    assert graph.feature_names is not None
    assert graph.feature_names[:2].tolist() == ["year", "title:graph"]
    assert dense(graph)[:, 0].tolist() == [0.5, 1.5, 2.5, 3.5]
    np.testing.assert_allclose((dense(graph)[:3, 1:] ** 2).sum(axis=1), 1, rtol=1e-6)


@pytest.mark.parametrize("kind", ["walk", "identity"])
@pytest.mark.parametrize("directed", [True, False])
def test_without_features_they_come_from_the_edges(
    kind: str, directed: bool, read: Callable[..., LabelledGraph]
) -> None:
    graph = read(
        "paper-id\nc\na\nb\n", "source,target\na,b\nb,c\n", structural=kind, directed=directed
    ).graph
    features, names = structural_features(
        np.array([1, 2]), np.array([2, 0]), 3, directed=directed, kind=kind
    )
    expected = Graph.from_edges([1, 2], [2, 0], features, directed=directed)
    assert_same(graph, expected)
    assert graph.feature_names is not None
    assert graph.feature_names.tolist() == names.tolist()


VARIANTS = {
    "tab": lambda text: text.replace(",", "\t"),
    "semicolon": lambda text: text.replace(",", ";"),
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "CR": lambda text: text.replace("\n", "\r"),
    "BOM": lambda text: "\ufeff" + text,
    "blank lines": lambda text: text.replace("\n", "\n\n"),
    "no newline at the end": str.rstrip,
    "quotes": lambda text: "\n".join(
        ",".join(f'"{field}"' for field in row.split(",")) for row in text.split()
    ),
}


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS.keys())
def test_the_same_table_in_other_clothes(
    variant: Callable[[str], str], read: Callable[..., LabelledGraph]
) -> None:
    nodes, edges = "id,label,x\na,p,1.5\nb,q,2\nc,,3\n", "source,target\na,b\nc,a\n"
    plain, other = read(nodes, edges), read(variant(nodes), variant(edges), id="id")
    assert_same(plain.graph, other.graph)
    assert plain.class_names == other.class_names == ("p", "q")
    assert plain.labels.tolist() == other.labels.tolist()


def test_commas_and_newlines_in_quoted_text(read: Callable[..., LabelledGraph]) -> None:
    nodes = 'id;title, short\n1;"one; two\nthree"\n2;"two, three"\n'
    graph = read(nodes, "source,target\n1,2\n", text="title, short").graph
    assert graph.n_nodes == 2
    assert graph.feature_names is not None
    assert graph.feature_names.tolist() == ["title, short:three", "title, short:two"]


@pytest.mark.parametrize("end", [".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet"])
def test_every_format_is_found_in_a_folder(end: str, tmp_path: Path) -> None:
    folder = tmp_path / "club"
    folder.mkdir()
    tables = {
        "nodes": pd.DataFrame({"id": ["a", "b"], "x": [1.0, 2.0]}),
        "edges": pd.DataFrame({"source": ["a"], "target": ["b"]}),
    }
    for part, table in tables.items():
        path = folder / f"{part}{end}"
        if end == ".parquet":
            table.to_parquet(path, index=False)
        else:
            table.to_csv(path, index=False, sep="\t" if end.startswith(".tsv") else ",")
    graph = read_tables(*find_tables(folder)).graph
    assert graph.name == "club"
    assert graph.n_links == 1
    assert dense(graph).tolist() == [[1], [2]]


def test_gzip_is_known_by_its_ending_in_any_case(tmp_path: Path) -> None:
    nodes, edges = tmp_path / "PAPERS.CSV.GZ", tmp_path / "links.csv"
    nodes.write_bytes(gzip.compress(b"id,x\n1,1\n2,2\n"))
    edges.write_text("source,target\n1,2\n")
    assert read_tables(nodes, edges).graph.name == "PAPERS"


def test_parquet_types_are_read_by_their_meaning(tmp_path: Path) -> None:
    nodes, edges = tmp_path / "n.parquet", tmp_path / "e.parquet"
    table = pd.DataFrame(
        {
            "id": [10.0, 2.0, 7.0],  # as pandas makes them of integers beside a blank
            "label": [1.0, None, 0.0],
            "flag": [True, False, True],
            "count": np.array([1, 2, 3], dtype=np.int8),
            "f": np.array([0.1, 0.2, 0.3]),
        }
    )
    table.to_parquet(nodes, index=False)
    pd.DataFrame({"source": ["10", "2"], "target": ["7", "10"]}).to_parquet(edges, index=False)
    found = read_tables(nodes, edges, directed=True)
    assert found.class_names == ("0", "1")
    assert found.labels.tolist() == [1, -1, 0]
    assert found.graph.node_ids is not None
    assert found.graph.node_ids.tolist() == [10, 2, 7]
    assert found.graph.feature_names is not None
    assert found.graph.feature_names.tolist() == ["flag", "count", "f"]
    expected = np.array([[1, 1, 0.1], [0, 2, 0.2], [1, 3, 0.3]], dtype=np.float32)
    np.testing.assert_array_equal(dense(found.graph), expected)
    table["label"] = pd.Categorical(["q", "p", None])
    table.to_parquet(nodes, index=False)
    assert read_tables(nodes, edges).class_names == ("p", "q")


@st.composite
def tables(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a small graph, its ids, and an order of its rows."""
    n = draw(st.integers(1, 8))
    if draw(st.booleans()):
        ids: list[Any] = draw(
            st.lists(st.integers(-(10**15), 10**15), min_size=n, max_size=n, unique=True)
        )
    else:
        letters = st.text("ab0,;\"' é-", min_size=1, max_size=6).map(lambda s: f"<{s}>")
        ids = draw(st.lists(letters, min_size=n, max_size=n, unique=True))
    node = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(node, node), min_size=1, max_size=20))
    number = st.floats(-1e6, 1e6, width=32)
    return {
        "ids": ids,
        "edges": edges,
        "order": draw(st.permutations(range(len(edges)))),
        "x": draw(st.lists(st.tuples(number, number), min_size=n, max_size=n)),
        "weighted": draw(st.booleans()),
        "directed": draw(st.booleans()),
    }


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(drawn=tables(), end=st.sampled_from(["csv", "csv.gz", "parquet"]))
def test_a_written_graph_is_read_back_whatever_the_order(
    drawn: dict[str, Any], end: str, tmp_path: Path
) -> None:
    ids, directed = drawn["ids"], drawn["directed"]
    sources, targets = np.array(drawn["edges"]).T
    weights = np.arange(1, len(sources) + 1, dtype=np.float32) if drawn["weighted"] else None
    features = np.array(drawn["x"], dtype=np.float32)
    nodes = pd.DataFrame({"id": ids, "x0": features[:, 0], "x1": features[:, 1]})
    edges = pd.DataFrame({"source": [ids[s] for s in sources], "target": [ids[t] for t in targets]})
    if weights is not None:
        edges["weight"] = weights
    edges = edges.iloc[drawn["order"]]
    paths = tmp_path / f"nodes.{end}", tmp_path / f"edges.{end}"
    for path, table in zip(paths, (nodes, edges), strict=True):
        if end == "parquet":
            table.to_parquet(path, index=False)
        else:
            table.to_csv(path, index=False)
    graph = read_tables(*paths, directed=directed).graph
    expected = Graph.from_edges(sources, targets, features, directed=directed, weights=weights)
    assert_same(graph, expected)
    assert graph.node_ids is not None
    assert graph.node_ids.tolist() == ids


def test_words_of_another_table_weigh_what_they_did_there(
    read: Callable[..., LabelledGraph],
) -> None:
    """Read again with the weights that its features give back, a table is the same to the bit."""
    titles = ["red red wine", "red car", "old wine", "old old red car"]
    rows = "".join(f"{i},{i * i},{title}\n" for i, title in enumerate(titles))
    table, links = "id,size,title\n" + rows, "source,target\n0,1\n"
    graph = read(table, links, text="title").graph
    assert graph.feature_names is not None
    assert not isinstance(graph.features, np.ndarray)
    names = [name.removeprefix("title:") for name in graph.feature_names[1:]]
    weights = word_weights(graph.features)[1:]
    for name, weight in zip(names, weights, strict=True):
        n_with = sum(name in title.split() for title in titles)
        assert weight == pytest.approx(math.log(5 / (1 + n_with)) + 1, rel=1e-6)
    words = dict(zip(names, weights.tolist(), strict=True))
    again = read(table, links, text="title", words=words).graph
    assert again.feature_names is not None
    assert again.feature_names.tolist() == graph.feature_names.tolist()
    assert not isinstance(again.features, np.ndarray)
    assert again.features.toarray().tobytes() == graph.features.toarray().tobytes()
    few = read("id,size,title\n0,1,blue wine\n1,2,\n", links, text="title", words=words).graph
    assert not isinstance(few.features, np.ndarray)
    expected = np.zeros((2, len(names)))
    expected[0, names.index("wine")] = 1
    np.testing.assert_array_equal(few.features.toarray()[:, 1:], expected)
