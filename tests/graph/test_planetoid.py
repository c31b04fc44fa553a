from __future__ import annotations

import io
import os
import pickle
import struct
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

from openima.errors import InputError, MissingFileError
from openima.graph.planetoid import read_planetoid


def python2_array(array: NDArray[Any]) -> bytes:
    """Write the opcodes that Python 2 left for an array (protocol 2, without head and end)."""
    shape = b"".join(b"I%d\n" % n for n in array.shape)
    code = array.dtype.str[1:].encode()
    raw = array.tobytes()
    return (
        b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\ntS'b'\ntR"
        b"(I1\n(" + shape + b"tcnumpy\ndtype\n(S'" + code + b"'\nI0\nI1\ntR"
        b"(I3\nS'<'\nNNNI-1\nI-1\nI0\ntbI00\nT" + struct.pack("<i", len(raw)) + raw + b"tb"
    )


def python2_csr(dense: list[list[int]]) -> bytes:
    matrix = sp.csr_array(np.array(dense, dtype=np.float32))
    rows, columns = matrix.shape
    parts = (("data", matrix.data), ("indices", matrix.indices), ("indptr", matrix.indptr))
    state = b"".join(b"S'%b'\n%b" % (key.encode(), python2_array(value)) for key, value in parts)
    shape = b"S'_shape'\n(I%d\nI%d\nt" % (rows, columns)
    return b"cscipy.sparse.csr\ncsr_matrix\n)\x81}(" + state + shape + b"ub"


def file_of(opcodes: bytes) -> bytes:
    return b"\x80\x02" + opcodes + b"."


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """Four nodes with labels and two test nodes, 6 and 4; number 5 is in no list."""
    links = defaultdict(list, {0: [1, 1, 0], 1: [0, 2], 2: [1], 6: [5], 5: [6], 3: [], 4: []})
    files = {
        "allx": file_of(python2_csr([[1, 0, 1], [0, 1, 0], [0, 0, 0], [1, 1, 1]])),
        "tx": file_of(python2_csr([[0, 2, 2], [3, 0, 0]])),
        "ally": file_of(python2_array(np.array([[1, 0], [0, 1], [0, 1], [1, 0]], np.int32))),
        "ty": file_of(python2_array(np.array([[0, 1], [0, 1]], np.int32))),
        "graph": pickle.dumps(links, protocol=2),
        "test.index": b"6\n4\n",
    }
    for part, content in files.items():
        (tmp_path / f"ind.citeseer.{part}").write_bytes(content)
    return tmp_path


def test_rows_land_on_the_nodes_that_the_test_index_names(raw: Path) -> None:
    made = read_planetoid(raw)
    features = made.graph.features
    assert isinstance(features, sp.csr_array)
    assert features.dtype == np.float32
    expected = np.array(
        [[0.5, 0, 0.5], [0, 1, 0], [0, 0, 0], [1 / 3] * 3, [1, 0, 0], [0, 0, 0], [0, 0.5, 0.5]]
    )
    np.testing.assert_allclose(features.toarray(), expected, rtol=1e-6)
    assert made.labels.tolist() == [0, 1, 1, 0, 1, 0, 1]
    assert made.class_names == ("0", "1")
    assert made.graph.name == "citeseer"


def test_parallel_links_become_one_and_loops_stay(raw: Path) -> None:
    graph = read_planetoid(raw).graph
    assert (graph.n_links, graph.n_self_loops, graph.n_edges) == (4, 1, 7)
    assert not graph.directed


def test_nothing_warns_or_depends_on_x_and_y(raw: Path) -> None:
    assert not (raw / "ind.citeseer.x").exists()
    assert read_planetoid(raw).graph.n_nodes == 7


class Malicious:
    """A pickle of this runs a command when a plain unpickler loads it."""

    def __init__(self, witness: Path) -> None:
        self.witness = witness

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        return os.system, (f"touch {self.witness}",)


class Gullible(pickle.Unpickler):
    """Loads whatever it is given."""


@pytest.mark.parametrize("part", ["allx", "ally", "graph"])
@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_a_pickle_that_would_run_code_is_refused_and_runs_nothing(
    raw: Path, part: str, protocol: int
) -> None:
    witness = raw / "ran"
    content = pickle.dumps(Malicious(witness), protocol=protocol)
    (raw / f"ind.citeseer.{part}").write_bytes(content)
    with pytest.raises(InputError, match=r"not loaded.*it asks for (posix|nt)\.system") as caught:
        read_planetoid(raw)
    assert not witness.exists()
    assert f"ind.citeseer.{part}" in str(caught.value)
    Gullible(io.BytesIO(content)).load()  # where nothing stops it, it does run
    assert witness.exists()


@pytest.mark.parametrize(
    "name", ["builtins eval", "builtins getattr", "numpy.core.multiarray fromfile", "numpy load"]
)
def test_names_near_the_known_ones_are_refused(raw: Path, name: str) -> None:
    module, attribute = name.encode().split()
    (raw / "ind.citeseer.graph").write_bytes(file_of(b"c" + module + b"\n" + attribute + b"\n"))
    with pytest.raises(InputError, match=f"it asks for {name.replace(' ', '.')}"):
        read_planetoid(raw)


BAD_FILES: list[tuple[str, bytes, str]] = [
    ("allx", b"", "damaged"),
    ("allx", b"PK\x03\x04 a zip", "not a Planetoid file|damaged"),
    ("allx", file_of(python2_csr([[1, 0, 1]]))[:-40], "damaged|not a Planetoid file"),
    ("allx", file_of(b"]"), "Expected a sparse matrix. Got list"),
    ("allx", file_of(b"cscipy.sparse.csr\ncsr_matrix\n)\x81"), "Expected a sparse matrix"),
    ("tx", file_of(python2_csr([[1, 0, 1]])), "ind.citeseer.ty: .*1 rows of 2 classes"),
    ("ally", file_of(b"]"), "a column a class"),
    ("ally", file_of(python2_array(np.arange(4))), "a column a class"),
    ("ty", file_of(python2_array(np.eye(2, 3))), "2 rows of 2 classes.*Got shape"),
    ("graph", file_of(b"]"), "a list of neighbours for each node"),
    ("graph", pickle.dumps({0: 1}, protocol=2), "a list of neighbours for each node"),
    ("graph", pickle.dumps({0: [7]}, protocol=2), "node numbers from 0 to 6. Got 7"),
    ("graph", pickle.dumps({0: ["1"]}, protocol=2), "node numbers from 0 to 6. Got '1'"),
    ("graph", pickle.dumps({-1: [0]}, protocol=2), "node numbers from 0 to 6. Got -1"),
    ("test.index", b"6\nfour\n", "a node number in line 2. Got 'four'"),
    ("test.index", b"6\n6\n", "2 different node numbers from 4 on"),
    ("test.index", b"6\n", "2 different node numbers from 4 on"),
    ("test.index", b"6\n3\n", "2 different node numbers from 4 on"),
    ("test.index", b"", "2 different node numbers from 4 on"),
]


@pytest.mark.parametrize(("part", "content", "message"), BAD_FILES)
def test_a_bad_file_gets_one_clear_line(raw: Path, part: str, content: bytes, message: str) -> None:
    (raw / f"ind.citeseer.{part}").write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        read_planetoid(raw)
    assert str(caught.value).startswith(str(raw / "ind.citeseer."))
    assert "Remedy: " in str(caught.value)


def test_sparse_columns_out_of_range_are_refused(raw: Path) -> None:
    path = raw / "ind.citeseer.allx"
    good = path.read_bytes()
    path.write_bytes(good.replace(b"S'_shape'\n(I4\nI3\n", b"S'_shape'\n(I4\nI2\n"))
    with pytest.raises(InputError, match=r"allx: .*Expected a sparse matrix"):
        read_planetoid(raw)


@pytest.mark.parametrize("part", ["allx", "graph", "test.index"])
def test_a_missing_file_is_named(raw: Path, part: str) -> None:
    (raw / f"ind.citeseer.{part}").unlink()
    with pytest.raises(MissingFileError, match=f"ind.citeseer.{part}: .*put it into"):
        read_planetoid(raw)


def test_citeseer_is_the_papers(data_root: Path) -> None:
    made = read_planetoid(data_root / "CiteSeer" / "raw")
    graph = made.graph
    assert graph.n_nodes == 3_327
    assert graph.n_links == 4_676  # the paper's number, and 4,552 of them join two nodes
    assert graph.n_self_loops == 124
    assert graph.n_edges == 2 * 4_552 + 124 == 9_228  # DGL's number
    assert graph.n_features == 3_703
    assert made.n_classes == 6
    assert graph.is_sparse
    features = graph.features
    sums = np.asarray(features.sum(axis=1)).reshape(-1)
    assert int((sums == 0).sum()) == 15
    np.testing.assert_allclose(sums[sums > 0], 1, rtol=1e-5)
    assert made.labels[sums == 0].tolist() == [0] * 15
    assert np.bincount(made.labels).tolist() == [249 + 15, 590, 668, 701, 596, 508]


def test_citeseer_agrees_with_pyg(data_root: Path, tmp_path: Path) -> None:
    """PyG reads the same files with code of its own."""
    datasets = pytest.importorskip("torch_geometric.datasets")
    (tmp_path / "CiteSeer").mkdir()
    (tmp_path / "CiteSeer" / "raw").symlink_to(data_root / "CiteSeer" / "raw")
    theirs = datasets.Planetoid(str(tmp_path), "CiteSeer")[0]
    ours = read_planetoid(data_root / "CiteSeer" / "raw")
    assert ours.labels.tolist() == theirs.y.tolist()
    assert isinstance(ours.graph.features, sp.csr_array)
    mine = ours.graph.features.toarray()
    np.testing.assert_array_equal(mine > 0, theirs.x.numpy() > 0)
    pairs = set(map(tuple, theirs.edge_index.T.tolist()))
    target = np.repeat(np.arange(3_327), ours.graph.in_degrees)
    own = set(zip(ours.graph.sources.tolist(), target.tolist(), strict=True))
    assert {pair for pair in own if pair[0] != pair[1]} == {p for p in pairs if p[0] != p[1]}
