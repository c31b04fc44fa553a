from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from openima.errors import InputError, MissingFileError
from openima.graph.readers.common import optional_package
from openima.graph.readers.pyg import is_symmetric, read_pyg

pyg: Any = optional_package("torch_geometric.data", "pyg")


class RunsCode:
    def __reduce__(self) -> tuple[Callable[..., object], tuple[str]]:
        return print, ("this ran",)


@pytest.fixture
def data() -> Any:
    return pyg.Data(
        x=torch.tensor([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]]),
        edge_index=torch.tensor([[0, 1, 1], [1, 0, 2]]),
        y=torch.tensor([1, 0, -1]),
        train_mask=torch.tensor([True, False, False]),
    )


def test_an_object_is_read(data: Any) -> None:
    found = read_pyg(data)
    graph = found.graph
    assert graph.name == "PyG Data"
    assert graph.directed  # 1 -> 2 has no reverse
    assert graph.indptr.tolist() == [0, 1, 2, 3]
    assert graph.sources.tolist() == [1, 0, 1]
    assert graph.weights is None
    assert isinstance(graph.features, np.ndarray)
    assert graph.features.tolist() == [[1, 0], [0, 2], [0, 0]]
    assert found.labels.tolist() == [1, 0, -1]
    assert found.class_names == ("0", "1")


def test_an_edge_and_its_reverse_make_the_graph_undirected(data: Any) -> None:
    data.edge_index = torch.tensor([[0, 1, 1, 2, 2, 2], [1, 0, 2, 1, 1, 2]])
    graph = read_pyg(data).graph
    assert not graph.directed
    assert graph.n_links == 3


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(1, 6),
    pairs=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=14),
    mirrored=st.booleans(),
)
def test_direction_is_computed_exactly(
    n: int, pairs: list[tuple[int, int]], mirrored: bool
) -> None:
    pairs = [(a % n, b % n) for a, b in pairs]
    if mirrored:
        pairs += [(b, a) for a, b in pairs]
    edges = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    expected = {(b, a) for a, b in pairs} == set(pairs)
    assert is_symmetric(edges[:, 0], edges[:, 1], n) == expected
    data = pyg.Data(edge_index=torch.tensor(edges.T.copy()), x=torch.ones(n, 1))
    graph = read_pyg(data).graph
    assert graph.directed != expected
    ends = np.repeat(np.arange(n), graph.in_degrees)
    found = list(zip(graph.sources.tolist(), ends.tolist(), strict=True))
    assert sorted(found) == sorted(set(pairs))


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
def test_sparse_features_stay_sparse(data: Any, layout: torch.layout) -> None:
    dense = data.x.numpy().copy()
    data.x = data.x.to_sparse(layout=layout)
    graph = read_pyg(data).graph
    assert not isinstance(graph.features, np.ndarray)
    np.testing.assert_array_equal(graph.features.toarray(), dense)
    assert graph.features.nnz == 2


@pytest.mark.parametrize(
    "y", [torch.tensor([[3], [7], [-1]]), torch.tensor([3.0, 7.0, float("nan")])]
)
def test_labels_of_other_shapes(data: Any, y: torch.Tensor) -> None:
    data.y = y
    found = read_pyg(data)
    assert found.class_names == ("3", "7")
    assert found.labels.tolist() == [0, 1, -1]


@pytest.mark.parametrize("key", ["edge_weight", "edge_attr"])
@pytest.mark.parametrize("shape", [(3,), (3, 1)])
def test_weights(data: Any, key: str, shape: tuple[int, ...]) -> None:
    data[key] = torch.tensor([1.0, 2.0, 0.5]).reshape(shape)
    weights = read_pyg(data).graph.weights
    assert weights is not None
    assert weights.tolist() == [2.0, 1.0, 0.5]


def test_edge_features_are_not_weights(data: Any) -> None:
    data.edge_attr = torch.ones(3, 4)
    assert read_pyg(data).graph.weights is None


def test_a_graph_alone(data: Any) -> None:
    found = read_pyg(pyg.Data(edge_index=data.edge_index, num_nodes=5), structural="identity")
    assert found.graph.n_nodes == 5
    assert found.graph.is_sparse
    assert found.labels.tolist() == [-1] * 5
    assert read_pyg(pyg.Data(edge_index=data.edge_index)).graph.n_nodes == 3


def test_half_precision_is_read(data: Any) -> None:
    data.x = data.x.bfloat16()
    assert read_pyg(data).graph.features.dtype == np.float32


def test_the_data_are_left_alone(data: Any) -> None:
    before = data.clone()
    read_pyg(data)
    for key, value in before.to_dict().items():
        assert torch.equal(value, data[key])
    data.x += 1  # still writeable


@pytest.mark.parametrize(
    "pack",
    [
        lambda data: data,
        lambda data: data.to_dict(),
        lambda data: (data.to_dict(), None, type(data)),  # a dataset of one graph
        lambda data: (data, None),
    ],
)
def test_files(data: Any, tmp_path: Path, pack: Callable[[Any], Any]) -> None:
    torch.save(pack(data), tmp_path / "some.pt")
    found, expected = read_pyg(str(tmp_path / "some.pt")), read_pyg(data)
    assert found.graph.name == "some"
    np.testing.assert_array_equal(found.labels, expected.labels)
    for name in ("indptr", "sources", "features"):
        np.testing.assert_array_equal(getattr(found.graph, name), getattr(expected.graph, name))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda d: d.update({"edge_index": None}), "there is no edge_index.*Got x, y"),
        (lambda d: d.update({"edge_index": d.edge_index.t()}), r"\(2, E\).*shape \(3, 2\)"),
        (lambda d: d.update({"edge_index": d.edge_index.float()}), "two rows of node numbers"),
        (lambda d: d.update({"edge_index": torch.tensor([[0], [3]])}), "numbers from 0 to 2"),
        (lambda d: d.update({"edge_index": torch.tensor([[0], [-1]])}), "Got -1"),
        (lambda d: d.update({"y": torch.tensor([0, 1])}), "labels and nodes differ"),
        (lambda d: d.update({"y": torch.eye(3)}), "one class number a node.*argmax"),
        (lambda d: d.update({"y": torch.tensor([0.5, 1.0, 0.0])}), "label of node 0"),
        (lambda d: d.update({"y": torch.tensor([0, -2, 0])}), "label of node 1"),
        (lambda d: d.update({"y": ["a", "b", "c"]}), "one class number a node"),
        (lambda d: d.update({"x": torch.full((3, 2), torch.nan)}), "feature 0 of node 0 is nan"),
        (lambda d: d.update({"x": torch.ones(3)}), "one row a node"),
        (lambda d: d.update({"x": {"a": 1}}), "x: this cannot be read as an array.*dict"),
        (lambda d: d.update({"edge_weight": torch.ones(2)}), "one weight.*3 numbers"),
        (lambda d: d.update({"edge_weight": torch.zeros(3)}), "weight of edge 0"),
        (lambda d: d.update({"edge_weight": ["a", "b", "c"]}), "one weight.*type <U1"),
    ],
)
def test_bad_data_are_refused(data: Any, change: Callable[[Any], object], says: str) -> None:
    change(data)
    with pytest.raises(InputError, match=says) as caught:
        read_pyg(data)
    assert "PyG Data" in str(caught.value)
    assert "Remedy: " in str(caught.value)
    assert "\n" not in str(caught.value)


def test_heterogeneous_data_are_refused(data: Any, tmp_path: Path) -> None:
    mixed = pyg.HeteroData()
    mixed["paper"].x = data.x
    mixed["author"].x = data.x
    mixed["author", "writes", "paper"].edge_index = data.edge_index
    with pytest.raises(InputError, match="HeteroData is not one homogeneous graph"):
        read_pyg(mixed)
    torch.save(mixed, tmp_path / "mixed.pt")
    with pytest.raises(InputError, match=r"mixed\.pt: the file holds .*NodeStorage"):
        read_pyg(tmp_path / "mixed.pt")


def test_a_file_that_needs_code_is_refused_and_not_run(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    torch.save({"x": RunsCode()}, tmp_path / "code.pt")
    with pytest.raises(InputError, match="can run code from the file") as caught:
        read_pyg(tmp_path / "code.pt")
    assert "print" in str(caught.value)
    assert "Remedy: " in str(caught.value)
    assert "\n" not in str(caught.value)
    (tmp_path / "plain.pt").write_bytes(pickle.dumps(RunsCode()))
    with pytest.raises(InputError, match=r"not a readable \.pt file"):
        read_pyg(tmp_path / "plain.pt")
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize("content", [b"", b"id,label\n1,2\n", b"PK\x03\x04 and no more"])
def test_other_content_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.pt"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"bad\.pt: the file is (empty|not a readable)") as caught:
        read_pyg(path)
    assert "Remedy: " in str(caught.value)
    assert "\n" not in str(caught.value)


@settings(max_examples=40, deadline=None)
@given(share=st.floats(0.01, 0.99))
def test_a_truncated_file_is_refused(
    tmp_path_factory: pytest.TempPathFactory, share: float
) -> None:
    path = tmp_path_factory.mktemp("cut") / "cut.pt"
    torch.save({"edge_index": torch.zeros(2, 100, dtype=torch.int64)}, path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(InputError, match=r"not a readable \.pt file"):
        read_pyg(path)


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    torch.save([1, 2], tmp_path / "list.pt")
    with pytest.raises(InputError, match="list is not one homogeneous graph"):
        read_pyg(tmp_path / "list.pt")
    torch.save({"weight": torch.ones(2)}, tmp_path / "weights.pt")
    with pytest.raises(InputError, match=r"no edge_index.*Got weight"):
        read_pyg(tmp_path / "weights.pt")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match=r"absent\.pt"):
        read_pyg(tmp_path / "absent.pt")
