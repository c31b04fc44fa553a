from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from openima.errors import InputError, MissingFileError
from openima.graph.graph import Graph
from openima.graph.neighbours import knn_edges
from openima.graph.readers import anndata_file
from openima.graph.readers.anndata_file import read_anndata
from openima.graph.readers.common import optional_package

anndata: Any = optional_package("anndata", "anndata")


@pytest.fixture
def cells() -> Any:
    """Twenty cells in two groups, with types, a reduced matrix and a graph."""
    rng = np.random.default_rng(0)
    group = np.repeat([0.0, 8.0], 10)[:, None]
    x = (group + rng.standard_normal((20, 4))).astype(np.float32)
    data = anndata.AnnData(x)
    data.obs_names = [f"cell {i}" for i in range(20)]
    data.var_names = [f"gene {i}" for i in range(4)]
    kinds = ["B"] * 8 + ["?", ""] + ["T"] * 9 + [None]
    data.obs["kind"] = pd.Categorical(kinds)
    data.obs["batch"] = [2.0] * 10 + [10.0] * 9 + [np.nan]
    data.obsm["X_pca"] = x[:, :2].astype(np.float64)
    links = np.where(rng.random((20, 20)) < 0.1, rng.random((20, 20)), 0).astype(np.float32)
    data.obsp["connectivities"] = sp.csr_matrix(np.maximum(links, links.T))
    return data


def test_labels_names_and_the_stored_graph(cells: Any) -> None:
    found = read_anndata(cells, labels="kind", unknown="?")
    graph = found.graph
    assert found.class_names == ("B", "T")
    assert found.labels.tolist() == [0] * 8 + [-1, -1] + [1] * 9 + [-1]
    assert graph.id_of(3) == "cell 3"
    assert graph.feature_names is not None
    assert graph.feature_names.tolist() == ["gene 0", "gene 1", "gene 2", "gene 3"]
    np.testing.assert_array_equal(graph.features, cells.X)
    assert not graph.directed
    stored = cells.obsp["connectivities"].tocoo()
    expected = Graph.from_edges(
        stored.row, stored.col, cells.X, directed=False, weights=stored.data
    )
    for name in ("indptr", "sources", "weights"):
        np.testing.assert_array_equal(getattr(graph, name), getattr(expected, name))


def test_stored_zeros_are_no_links(cells: Any) -> None:
    links = sp.csr_matrix(([1.0, 0.0], ([0, 1], [1, 2])), shape=(20, 20))
    cells.obsp["connectivities"] = links
    graph = read_anndata(cells).graph
    assert graph.n_links == 1
    assert graph.weights is None  # all ones


@pytest.mark.parametrize(
    ("options", "k", "matrix"),
    [({"k": 3}, 3, "X"), ({"k": 4, "features": "X_pca"}, 4, "X_pca"), ({}, 15, "X")],
)
def test_neighbours_make_the_graph(
    cells: Any, options: dict[str, Any], k: int, matrix: str
) -> None:
    if "k" not in options:
        del cells.obsp["connectivities"]
    points = cells.X if matrix == "X" else cells.obsm[matrix]
    graph = read_anndata(cells, **options).graph
    expected = Graph.from_edges(*knn_edges(points, k), points, directed=False)
    np.testing.assert_array_equal(graph.sources, expected.sources)
    np.testing.assert_array_equal(graph.indptr, expected.indptr)
    np.testing.assert_array_equal(graph.features, points)
    assert graph.weights is None
    assert (graph.feature_names is None) == (matrix != "X")


def test_a_few_cells_are_linked_to_all_others() -> None:
    small = anndata.AnnData(np.arange(6, dtype=np.float32).reshape(3, 2))
    assert read_anndata(small).graph.n_links == 3
    assert read_anndata(small[:1].copy()).graph.n_links == 0


@pytest.mark.parametrize("sparse", [False, True])
def test_neighbours_in_a_wide_matrix_are_those_of_its_components(
    sparse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[tuple[int, ...]] = []

    def spy(points: Any, k: int) -> Any:
        searched.append(points.shape)
        return knn_edges(points, k)

    monkeypatch.setattr(anndata_file, "knn_edges", spy)
    # Two groups in 3 of 80 columns; the others hold next to nothing.
    rng = np.random.default_rng(1)
    x = 0.01 * rng.random((60, 80))
    x[:30, :3] += 5 + rng.random((30, 3))
    x[30:, 3:6] += 5 + rng.random((30, 3))
    x = x.astype(np.float32)
    data = anndata.AnnData(sp.csc_matrix(x) if sparse else x)
    first, second = (read_anndata(data, k=5).graph for _ in range(2))
    assert searched == [(60, 50)] * 2
    targets = np.repeat(np.arange(60), first.in_degrees)
    assert ((first.sources < 30) == (targets < 30)).all()
    assert first.n_features == 80  # reduced to look for neighbours, not to describe nodes
    assert first.is_sparse == sparse
    np.testing.assert_array_equal(first.sources, second.sources)


def test_sparse_x_stays_sparse(cells: Any) -> None:
    dense = cells.X.copy()
    cells.X = sp.csr_matrix(dense)
    features = read_anndata(cells).graph.features
    assert not isinstance(features, np.ndarray)
    np.testing.assert_array_equal(features.toarray(), dense)


def test_numbers_as_labels_and_no_labels(cells: Any) -> None:
    assert read_anndata(cells, labels="batch").class_names == ("2", "10")
    assert read_anndata(cells).labels.tolist() == [-1] * 20


@pytest.mark.parametrize("backed", [False, True])
def test_a_file_and_the_object_say_the_same(cells: Any, tmp_path: Path, backed: bool) -> None:
    path = tmp_path / "cells.h5ad"
    cells.write_h5ad(path)
    expected = read_anndata(cells, labels="kind")
    source: Any = anndata.read_h5ad(path, backed="r") if backed else str(path)
    found = read_anndata(source, labels="kind")
    assert found.graph.name == ("AnnData" if backed else "cells")
    assert found.class_names == expected.class_names == ("?", "B", "T")
    np.testing.assert_array_equal(found.labels, expected.labels)
    for name in ("indptr", "sources", "weights", "features", "node_ids", "feature_names"):
        np.testing.assert_array_equal(getattr(found.graph, name), getattr(expected.graph, name))
    if backed:
        source.file.close()


def test_the_object_is_left_alone(cells: Any) -> None:
    before = cells.copy()
    read_anndata(cells, labels="kind", unknown="?")
    np.testing.assert_array_equal(cells.X, before.X)
    assert cells.obs.equals(before.obs)
    cells.X[0, 0] = 5  # still writeable


def set_x(value: float) -> Callable[[Any], None]:
    def change(cells: Any) -> None:
        cells.X[2, 1] = value

    return change


def duplicate_names(cells: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cells.obs_names = ["same"] * 2 + [str(i) for i in range(18)]


@pytest.mark.parametrize(
    ("change", "options", "says"),
    [
        (lambda _: None, {"labels": "type"}, r"obs has no column 'type'.*kind, batch"),
        (lambda _: None, {"features": "X_umap"}, r"no 'X_umap' in obsm.*X_pca"),
        (lambda _: None, {"features": ["X_pca", "X"]}, r"one matrix.*'X' or a key of obsm"),
        (lambda _: None, {"unknown": "?"}, r"labels="),
        (lambda _: None, {"labels": "kind", "unknown": "NK"}, r"no label is 'NK'.*\?, B, T"),
        (lambda _: None, {"k": 20}, "k from 1 to 19"),
        (lambda _: None, {"k": 0}, "k from 1 to 19"),
        (set_x(np.nan), {"k": 3}, "AnnData, X: a value is NaN"),
        (set_x(np.inf), {}, "feature 1 of node 2 is inf"),
        (duplicate_names, {}, "'same' is there twice.*obs_names_make_unique"),
        (lambda c: setattr(c, "X", None), {}, "X is empty.*X_pca"),
        (
            lambda c: c.obsp.update(connectivities=-c.obsp["connectivities"]),
            {},
            "weight of edge 0 is not a positive number",
        ),
        (
            lambda c: c.obsm.update(frame=pd.DataFrame({"a": ["x"] * 20}, index=c.obs_names)),
            {"features": "frame"},
            "frame holds something that is not a number",
        ),
    ],
)
def test_bad_data_are_refused(
    cells: Any, change: Callable[[Any], object], options: dict[str, Any], says: str
) -> None:
    change(cells)
    with pytest.raises(InputError, match=says) as caught:
        read_anndata(cells, **options)
    assert "Remedy: " in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"id,label\n1,2\n", b"\x89HDF\r\n\x1a\n and no more"])
def test_other_content_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.h5ad"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"bad\.h5ad: the file is (empty|not a)") as caught:
        read_anndata(path)
    assert "Remedy: " in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_truncated_file_is_refused(cells: Any, tmp_path: Path) -> None:
    path = tmp_path / "cut.h5ad"
    cells.write_h5ad(path)
    path.write_bytes(path.read_bytes()[:2000])
    with pytest.raises(InputError, match=r"cut\.h5ad: the file is not a readable \.h5ad"):
        read_anndata(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match=r"absent\.h5ad"):
        read_anndata(tmp_path / "absent.h5ad")
