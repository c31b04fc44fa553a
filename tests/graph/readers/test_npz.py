from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from openima.errors import InputError, MissingFileError, OpenimaError
from openima.graph.readers.npz import read_npz

Arrays = dict[str, Any]


def csr_parts(prefix: str, matrix: NDArray[Any]) -> Arrays:
    csr = sp.csr_array(matrix)
    return {
        f"{prefix}_data": csr.data,
        f"{prefix}_indices": csr.indices,
        f"{prefix}_indptr": csr.indptr,
        f"{prefix}_shape": np.array(csr.shape),
    }


@pytest.fixture
def arrays() -> Arrays:
    """Three nodes, edges 0->1, 1->2 and a loop at 2, two features."""
    adjacency = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 1]], dtype=np.float32)
    attributes = np.array([[0, 2], [1, 0], [0, 0]], dtype=np.float32)
    return {
        **csr_parts("adj", adjacency),
        **csr_parts("attr", attributes),
        "labels": np.array([1, 0, -1]),
        "class_names": np.array(["red", "blue"]),
        "attr_names": np.array(["size", "age"]),
        "node_names": np.array(["a", "b", "c"]),
    }


@pytest.fixture
def save(tmp_path: Path) -> Callable[[Arrays], Path]:
    def write(content: Arrays) -> Path:
        path = tmp_path / "small.npz"
        np.savez(path, **content)
        return path

    return write


def test_a_file_with_everything(arrays: Arrays, save: Callable[[Arrays], Path]) -> None:
    found = read_npz(save(arrays), directed=True)
    graph = found.graph
    assert graph.name == "small"
    assert graph.directed
    assert graph.sources.tolist() == [0, 1, 2]
    assert graph.indptr.tolist() == [0, 0, 1, 3]
    assert graph.weights is None  # all ones
    assert graph.is_sparse
    assert not isinstance(graph.features, np.ndarray)
    assert graph.features.dtype == np.float32
    assert graph.features.toarray().tolist() == [[0, 2], [1, 0], [0, 0]]
    assert found.labels.tolist() == [1, 0, -1]
    assert found.class_names == ("red", "blue")
    assert graph.feature_names is not None
    assert graph.feature_names.tolist() == ["size", "age"]
    assert [graph.id_of(i) for i in range(3)] == ["a", "b", "c"]


def test_links_go_both_ways_unless_directed(arrays: Arrays, save: Callable[[Arrays], Path]) -> None:
    graph = read_npz(str(save(arrays))).graph
    assert not graph.directed
    assert graph.sources.tolist() == [1, 0, 2, 1, 2]
    assert graph.n_links == 3


def test_only_weights_that_say_something_are_kept(
    arrays: Arrays, save: Callable[[Arrays], Path]
) -> None:
    arrays["adj_data"] = np.array([1.0, 0.0, 2.5])
    graph = read_npz(save(arrays)).graph
    assert graph.sources.tolist() == [1, 0, 2]  # the stored zero is no edge
    assert graph.weights is not None
    assert graph.weights.tolist() == [1.0, 1.0, 2.5]


def test_dense_features_stay_dense(arrays: Arrays, save: Callable[[Arrays], Path]) -> None:
    content = {key: array for key, array in arrays.items() if not key.startswith("attr_")}
    content["attr_matrix"] = np.arange(6, dtype=np.float64).reshape(3, 2)
    features = read_npz(save(content)).graph.features
    assert isinstance(features, np.ndarray)
    assert features.dtype == np.float32
    np.testing.assert_array_equal(features, content["attr_matrix"])


def test_a_graph_alone_gets_structural_features_and_unknown_labels(
    arrays: Arrays, save: Callable[[Arrays], Path]
) -> None:
    content = {key: array for key, array in arrays.items() if key.startswith("adj_")}
    walk, identity = (read_npz(save(content), structural=k) for k in ("walk", "identity"))
    assert walk.labels.tolist() == [-1, -1, -1]
    assert walk.class_names == ()
    assert walk.graph.n_features == 193
    assert identity.graph.n_features == 3
    assert identity.graph.is_sparse


def test_classes_without_names_are_called_by_number(
    arrays: Arrays, save: Callable[[Arrays], Path]
) -> None:
    del arrays["class_names"]
    arrays["labels"] = np.array([7.0, np.nan, 2.0])
    found = read_npz(save(arrays))
    assert found.class_names == ("2", "7")
    assert found.labels.tolist() == [1, -1, 0]


def test_names_that_are_objects_are_left_out(
    arrays: Arrays, save: Callable[[Arrays], Path]
) -> None:
    arrays["class_names"] = np.array(["red", None], dtype=object)
    with pytest.warns(UserWarning, match="'class_names' is an array of Python objects"):
        found = read_npz(save(arrays))
    assert found.class_names == ("0", "1")


def without(key: str) -> Callable[[Arrays], Arrays]:
    return lambda arrays: {k: v for k, v in arrays.items() if k != key}


def changed(key: str, value: Any) -> Callable[[Arrays], Arrays]:
    return lambda arrays: {**arrays, key: np.asarray(value)}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (without("adj_indptr"), "'adj_indptr' is missing"),
        (without("attr_data"), "'attr_data' is missing"),
        (changed("adj_indices", [1, -2, 2]), "adj_.*>= 0"),
        (changed("adj_indices", [1, 3, 2]), "adj_.*< 3"),
        (changed("adj_indices", [1, 2]), "adj_.*same size"),
        (changed("adj_indices", [1.0, 2.0, 2.0]), "'adj_indices' is not a list of integers"),
        (changed("adj_indptr", [0, 1, 3]), "adj_.*pointer size 3 should be 4"),
        (changed("adj_indptr", [0, 2, 1, 3]), "adj_.*non-decreasing"),
        (changed("adj_indptr", [0, 1, 2, 2]), "adj_.*2 entries"),
        (changed("adj_shape", [3, 4]), "not square"),
        (changed("adj_shape", [3]), "adj_"),
        (changed("adj_data", [1.0, -1.0, 1.0]), "weight of edge 1 is not a positive number"),
        (changed("adj_data", [1.0, np.nan, 1.0]), "weight of edge 1 is not a positive number"),
        (changed("adj_data", ["a", "b", "c"]), "'adj_data' is not a list of numbers"),
        (changed("attr_data", np.array([1, None], dtype=object)), "'attr_data'.*Python objects"),
        (changed("attr_data", [np.inf, 1.0]), "feature 1 of node 0 is inf"),
        (changed("attr_matrix", np.ones((2, 2))), "attr_matrix.*3 rows"),
        (changed("attr_matrix", np.full((3, 2), "x")), "attr_matrix.*numbers"),
        (changed("attr_names", ["size"]), "feature names do not fit"),
        (changed("node_names", ["a", "b"]), "node ids do not fit"),
        (changed("labels", [0, 1]), "labels and nodes differ"),
        (changed("labels", [0, 1, -2]), "label of node 2"),
        (changed("labels", [0, 2, 1]), "label of node 1.*names, 2"),
        (changed("labels", [0.5, 1, 1]), "label of node 0.*whole number"),
        (changed("labels", [[0, 1], [1, 0], [0, 0]]), "one class number a node"),
        (changed("labels", np.array([0, None, 1], dtype=object)), "'labels'.*Python objects"),
        (lambda _: {}, "no keys at all"),
    ],
)
def test_bad_content_is_refused(
    arrays: Arrays,
    save: Callable[[Arrays], Path],
    change: Callable[[Arrays], Arrays],
    says: str,
) -> None:
    path = save(change(arrays))
    with pytest.raises(InputError, match=says) as caught:
        read_npz(path)
    assert str(path) in str(caught.value)
    assert "Remedy: " in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match=r"absent\.npz: the file is not there"):
        read_npz(tmp_path / "absent.npz")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "the file is empty"),
        (b"id,label\n1,2\n", "not a readable .npz file"),
        (b"PK\x03\x04 and no more", "not a readable .npz file"),
    ],
)
def test_other_content_is_refused(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "bad.npz"
    path.write_bytes(content)
    with pytest.raises(InputError, match=says) as caught:
        read_npz(path)
    assert str(path) in str(caught.value)
    assert "Remedy" in str(caught.value)


def test_a_folder_and_a_single_array_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a file"):
        read_npz(tmp_path)
    with (tmp_path / "one.npz").open("wb") as file:
        np.save(file, np.ones(3))
    with pytest.raises(InputError, match="one array without a name"):
        read_npz(tmp_path / "one.npz")


@settings(max_examples=60, deadline=None)
@given(cut=st.floats(0, 0.999), flip=st.floats(0, 0.999), compressed=st.booleans())
def test_damage_never_shows_a_foreign_error(
    tmp_path_factory: pytest.TempPathFactory, cut: float, flip: float, compressed: bool
) -> None:
    path = tmp_path_factory.mktemp("damage") / "graph.npz"
    adjacency = np.triu(np.ones((9, 9)), 1)
    content: Arrays = {**csr_parts("adj", adjacency), "labels": np.arange(9) % 2}
    (np.savez_compressed if compressed else np.savez)(path, **content)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(cut * len(whole))])
    with pytest.raises(OpenimaError):
        read_npz(path)
    position = int(flip * len(whole))
    path.write_bytes(whole[:position] + bytes([whole[position] ^ 255]) + whole[position + 1 :])
    with contextlib.suppress(OpenimaError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        read_npz(path)  # the flipped byte may be one that does not matter


def test_physics_is_read_in_under_a_second(data_root: Path) -> None:
    path = data_root / "Physics" / "raw" / "ms_academic_phy.npz"
    start = time.process_time()
    found = read_npz(path)
    assert time.process_time() - start < 1.0
    graph = found.graph
    assert (graph.n_nodes, graph.n_links, graph.n_features) == (34493, 247962, 8415)
    assert found.n_classes == 5
    assert graph.weights is None
    assert graph.is_sparse
    assert graph.nbytes < 20e6  # dense features alone would take 1.16 GB
