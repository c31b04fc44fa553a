from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from openima.errors import InputError, MissingFileError, MissingPackageError
from openima.graph.graph import Graph
from openima.graph.readers import FORMATS, Format, read_graph
from openima.graph.readers.common import optional_package
from openima.graph.task import LabelledGraph

EDGES = np.array([[0, 1, 2], [1, 2, 3]])
X = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0], [0.0, 2.0]], dtype=np.float32)


def as_tables(folder: Path) -> dict[str, Any]:
    nodes, edges = folder / "people.csv", folder / "friends.tsv"
    nodes.write_text("id,a,b,label\n0,1,0,red\n1,0,1,blue\n2,2,0,\n3,0,2,red\n")
    edges.write_text("source\ttarget\n0\t1\n1\t2\n2\t3\n")
    return {"data": nodes, "edges": edges}


def as_folder(folder: Path) -> dict[str, Any]:
    tables = as_tables(folder)
    tables["data"].rename(folder / "nodes.csv")
    tables["edges"].rename(folder / "edges.tsv")
    return {"data": str(folder)}


def as_npz(folder: Path) -> dict[str, Any]:
    path = folder / "small.NPZ"  # endings are read in any case
    with path.open("wb") as file:
        np.savez(
            file,
            adj_data=np.ones(3),
            adj_indices=EDGES[1],
            adj_indptr=np.array([0, 1, 2, 3, 3]),
            adj_shape=np.array([4, 4]),
            attr_matrix=X,
            labels=np.array([1, 0, -1, 1]),
            class_names=np.array(["blue", "red"]),
        )
    return {"data": path}


def as_networkx(_: Path) -> dict[str, Any]:
    graph = optional_package("networkx", "networkx").Graph(EDGES.T.tolist())
    for node, label in enumerate(["red", "blue", None, "red"]):
        graph.nodes[node].update(x=X[node], label=label)
    return {"data": graph}


def as_graphml(folder: Path) -> dict[str, Any]:
    networkx = optional_package("networkx", "networkx")
    graph = networkx.Graph(EDGES.T.tolist())
    for node, label in enumerate(["red", "blue", "", "red"]):
        graph.nodes[node].update(a=float(X[node, 0]), b=float(X[node, 1]), label=label)
    networkx.write_graphml(graph, folder / "small.graphml")
    return {"data": folder / "small.graphml"}


def as_pyg(_: Path) -> dict[str, Any]:
    both_ways = torch.from_numpy(np.concatenate([EDGES, EDGES[::-1]], axis=1))
    data = optional_package("torch_geometric.data", "pyg").Data(
        x=torch.from_numpy(X.copy()), edge_index=both_ways, y=torch.tensor([1, 0, -1, 1])
    )
    return {"data": data}


def as_pt(folder: Path) -> dict[str, Any]:
    torch.save(as_pyg(folder)["data"], folder / "small.pt")
    return {"data": folder / "small.pt"}


def as_anndata(_: Path) -> dict[str, Any]:
    data = optional_package("anndata", "anndata").AnnData(X.copy())
    data.obs["kind"] = ["red", "blue", "", "red"]
    links = np.zeros((4, 4))
    links[EDGES[0], EDGES[1]] = links[EDGES[1], EDGES[0]] = 1
    data.obsp["connectivities"] = links
    return {"data": data, "labels": "kind"}


def as_h5ad(folder: Path) -> dict[str, Any]:
    as_anndata(folder)["data"].write_h5ad(folder / "small.h5ad")
    return {"data": folder / "small.h5ad", "labels": "kind"}


Write = Callable[[Path], dict[str, Any]]
EVERY: tuple[Write, ...] = (
    as_tables,
    as_folder,
    as_npz,
    as_networkx,
    as_graphml,
    as_pyg,
    as_pt,
    as_anndata,
    as_h5ad,
)


@pytest.mark.parametrize("write", EVERY)
def test_every_format_gives_the_same_graph(write: Write, tmp_path: Path) -> None:
    arguments = write(tmp_path)
    found = read_graph(arguments.pop("data"), **arguments)
    expected = Graph.from_edges(EDGES[0], EDGES[1], X, directed=False)
    for name in ("indptr", "sources", "features"):
        np.testing.assert_array_equal(getattr(found.graph, name), getattr(expected, name))
    assert not found.graph.directed
    assert found.graph.weights is None
    assert found.labels.tolist() == [1, 0, -1, 1]
    assert found.class_names in (("blue", "red"), ("0", "1"))


def test_a_labelled_graph_comes_back_as_it_is() -> None:
    graph = Graph.from_edges(EDGES[0], EDGES[1], X, directed=False)
    labelled = LabelledGraph(graph, np.array([0, 1, -1, 0]), ("a", "b"))
    assert read_graph(labelled) is labelled
    options: tuple[dict[str, Any], ...] = ({"labels": "kind"}, {"edges": "edges.csv"})
    for option in options:
        with pytest.raises(InputError, match=r"does not apply.*Expected no options"):
            read_graph(labelled, **option)


def test_options_reach_the_format(tmp_path: Path) -> None:
    npz = as_npz(tmp_path)["data"]
    assert read_graph(npz, directed=True).graph.directed
    nodes, edges = as_tables(tmp_path).values()
    tables = read_graph(nodes, edges, labels="label", unknown="blue", id="id", directed=True)
    assert tables.class_names == ("red",)
    assert tables.graph.directed
    assert read_graph(as_anndata(tmp_path)["data"], k=3).graph.n_links == 6


def test_every_option_is_one_of_some_format_and_none_is_forgotten() -> None:
    parameters = inspect.signature(read_graph).parameters.values()
    offered = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY}
    assert offered == {option for form in FORMATS for option in form.options}


@pytest.mark.parametrize("write", EVERY)
def test_options_of_other_formats_are_refused(write: Write, tmp_path: Path) -> None:
    arguments = write(tmp_path)
    data, edges = arguments["data"], arguments.get("edges")
    if isinstance(data, str | Path):
        suffix = Path(data).suffix.lower() or ".csv"
        form = next(form for form in FORMATS if suffix in form.extensions)
    else:
        form = next(form for form in FORMATS if form.package in type(data).__module__.split("."))
    others = {option for other in FORMATS for option in other.options} - set(form.options)
    assert others
    for option in others:
        value: Any = 3 if option == "k" else True if option == "directed" else "x"
        with pytest.raises(InputError, match=f"option '{option}' does not apply") as caught:
            read_graph(data, edges, **{option: value})
        assert f"only {', '.join(form.options)}" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("graph.xlsx", "cannot be told from its name.*'.xlsx'.*save the data in one of these"),
        ("graph.npy", r"ends in \.csv, .*\.npz, \.graphml, \.pt, \.h5ad"),
        ("graph", "no extension"),
        ("graph.csv", "half a graph.*pass both tables"),
    ],
)
def test_files_that_are_no_graph_are_refused(tmp_path: Path, name: str, says: str) -> None:
    path = tmp_path / name
    path.write_text("anything")
    with pytest.raises(InputError, match=says) as caught:
        read_graph(path)
    assert str(path) in str(caught.value)
    assert "Remedy: " in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["absent.xyz", "absent", "absent.npz", "absent.pt"])
def test_what_is_not_there_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(MissingFileError, match=name):
        read_graph(tmp_path / name)


def test_a_folder_without_tables_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match="no nodes table"):
        read_graph(tmp_path)


def test_edges_beside_a_format_that_has_them_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"small\.NPZ: .*has its edges in it.*'edges\.csv'"):
        read_graph(as_npz(tmp_path)["data"], "edges.csv")


def test_edges_beside_a_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a folder has its table of edges.*'edges\.csv' besides"):
        read_graph(tmp_path, "edges.csv")


@pytest.mark.parametrize(
    ("data", "edges", "says"),
    [
        ("", None, "the path of the graph is empty"),
        ("nodes.csv", "", "Got an empty text"),
        ("nodes.csv", pd.DataFrame(), "Got a DataFrame.*write a table that is in memory"),
        ("nodes.csv", [(0, 1)], "edges is not the path of a table. Got a list"),
    ],
)
def test_what_is_no_path_is_refused(data: str, edges: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        read_graph(data, edges)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"labels": ["field"]}, "'labels' has a value.*a text. Got list, .'field'.*are y of fit"),
        ({"labels": np.array([0, 1])}, r"Got ndarray, array\(.0, 1.\)"),
        ({"labels": 2}, "Got int, 2"),
        ({"text": ["title"]}, "'text' has a value of another kind. Expected a text"),
        ({"directed": "no"}, "'directed'.*Expected True or False. Got str, 'no'"),
        ({"k": "3"}, "'k' has a value of another kind. Expected a whole number"),
    ],
)
def test_options_of_another_kind_are_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        read_graph("nodes.csv", "edges.csv", **options)


def test_a_data_frame_is_to_be_written_to_a_file() -> None:
    with pytest.raises(InputError, match=r"a DataFrame is not a graph.*nodes\.to_parquet"):
        read_graph(pd.DataFrame({"id": [1]}))


@pytest.mark.parametrize("thing", [3, None, {"x": 1}, [1, 2], X])
def test_other_objects_are_refused(thing: object) -> None:
    with pytest.raises(InputError, match=f"a {type(thing).__name__} is not a graph.*AnnData"):
        read_graph(thing)


@pytest.mark.parametrize(
    ("name", "package", "extra"),
    [("graph.graphml", "networkx", "networkx"), ("graph.h5ad", "anndata", "anndata")],
)
def test_a_missing_package_is_named_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, package: str, extra: str
) -> None:
    (tmp_path / name).write_text("anything")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingPackageError, match=rf"{package}.*pip install 'openima\[{extra}\]'"):
        read_graph(tmp_path / name)


def test_a_file_with_pyg_classes_names_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = as_pt(tmp_path)["data"]
    monkeypatch.setattr(torch.serialization, "get_unsafe_globals_in_checkpoint", lambda _: PYG)
    monkeypatch.setitem(sys.modules, "torch_geometric.data.data", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'openima\[pyg\]'"):
        read_graph(path)


PYG = ["torch_geometric.data.data.Data"]  # what torch lists while PyG is not loaded


def test_a_dict_of_tensors_needs_no_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.save({"edge_index": torch.from_numpy(EDGES)}, tmp_path / "plain.pt")
    monkeypatch.setitem(sys.modules, "torch_geometric", None)
    assert read_graph(tmp_path / "plain.pt").graph.n_nodes == 4


def test_a_format_tells_its_options() -> None:
    def read(data: object, *, depth: int = 1) -> LabelledGraph:
        raise InputError(f"{data} {depth}")

    assert Format("new", read, (".new",)).options == ("depth",)


@pytest.mark.parametrize(
    ("labels", "says"),
    [
        (None, "Got no labels"),
        ([0, 0, -1, -1], "only '0'"),
        ([0, 1, 1, 0], "all nodes have a label"),
    ],
)
def test_labels_that_teach_nothing_are_refused_as_a_task(
    labels: list[int] | None, says: str
) -> None:
    data = as_pyg(Path())["data"]
    data.y = None if labels is None else torch.tensor(labels)
    with pytest.raises(InputError, match=says):
        read_graph(data).task(1)
