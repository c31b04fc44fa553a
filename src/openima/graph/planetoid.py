"""Citeseer's raw files, as the Planetoid project published them: pickles of Python 2.

A pickle may run any code when it is loaded, so these are read by an unpickler that knows the
six names such files need, and refuses every other one.
"""

from __future__ import annotations

import pickle
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from openima.errors import InputError, MissingFileError
from openima.graph.graph import Graph
from openima.graph.task import LabelledGraph

PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
"""The files of one graph are called `ind.<name>.<part>`."""

_REMEDY = "delete the file and load again, to download it anew"


def read_planetoid(folder: Path, name: str = "citeseer") -> LabelledGraph:
    """Read the graph `name` from its raw files in `folder`.

    Nodes are the rows of `allx`, then the test nodes: row `i` of `tx` is the node that line `i`
    of `test.index` names. Numbers that no line names are nodes too (15 in Citeseer): they have
    links but neither features nor a label. As in DGL, which the paper's experiments used, their
    features are zero and their class is 0. Features are divided by the sum of their row (L1);
    zero rows stay zero. Self-loops stay, parallel links become one.

    For Citeseer this gives the paper's 3,327 nodes and 4,676 links: 4,552 between two nodes and
    124 self-loops, hence 2 x 4,552 + 124 = 9,228 directed edges.
    """
    features = [_features(folder / f"ind.{name}.{part}") for part in ("allx", "tx")]
    labels = [_one_hot(folder / f"ind.{name}.{part}") for part in ("ally", "ty")]
    for label, feature, part in zip(labels, features, ("ally", "ty"), strict=True):
        if len(label) != feature.shape[0] or label.shape[1] != labels[0].shape[1]:
            raise _unexpected(
                folder / f"ind.{name}.{part}",
                f"{feature.shape[0]:,} rows of {labels[0].shape[1]} classes",
                f"shape {label.shape}",
            )
    known, tested = features[0].shape[0], features[1].shape[0]
    test_nodes = _test_nodes(folder / f"ind.{name}.test.index", known, tested)
    n_nodes = max(known, int(test_nodes.max(initial=-1)) + 1)
    source, target = _links(folder / f"ind.{name}.graph", n_nodes)

    node_of_row = np.concatenate([np.arange(known), test_nodes])
    stacked = sp.vstack(features).tocoo()
    placed = sp.coo_array(
        (stacked.data, (node_of_row[stacked.row], stacked.col)), (n_nodes, stacked.shape[1])
    )
    label_of_node = np.zeros(n_nodes, dtype=np.int64)
    label_of_node[node_of_row] = np.concatenate(labels).argmax(axis=1)
    graph = Graph.from_edges(source, target, _l1_rows(placed), directed=False, name=name)
    return LabelledGraph(graph, label_of_node, tuple(str(c) for c in range(labels[0].shape[1])))


class _PickledCsr:
    """Takes the place of SciPy's `csr_matrix`, whose attributes a pickle puts into `__dict__`."""


def _dtype(code: str, *_flags: int) -> np.dtype[Any]:
    """Build the dtype of a pickled array; NumPy no longer takes the flags as the integers saved."""
    return np.dtype(code, copy=True)


_STAND_INS: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): _dtype,
    ("scipy.sparse.csr", "csr_matrix"): _PickledCsr,
    ("collections", "defaultdict"): defaultdict,
    ("__builtin__", "list"): list,
}


class _PlanetoidUnpickler(pickle.Unpickler):
    """Loads arrays, sparse matrices and dicts of lists; anything else is refused, and not run."""

    def find_class(self, module: str, name: str) -> Any:
        """Return what stands for a name in the file, if it is one of the six."""
        if (module, name) not in _STAND_INS:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}")
        return _STAND_INS[module, name]


def _require(path: Path) -> None:
    if not path.is_file():
        raise MissingFileError(
            "a raw file of the data set is missing",
            where=str(path),
            expected="the Planetoid files ind.<name>.<part>: " + ", ".join(PARTS),
            remedy=f"put it into {path.parent}",
        )


def _load(path: Path) -> Any:
    _require(path)
    with path.open("rb") as file:
        try:
            return _PlanetoidUnpickler(file, fix_imports=False, encoding="latin1").load()
        except pickle.UnpicklingError as error:
            raise InputError(
                "this is not a Planetoid file, and was not loaded",
                where=str(path),
                expected="a pickle of arrays, sparse matrices or lists alone",
                got=str(error),
                remedy=_REMEDY,
            ) from error
        except Exception as error:  # a damaged pickle can fail in any way
            raise InputError(
                "the file is damaged", where=str(path), got=repr(error), remedy=_REMEDY
            ) from error


def _features(path: Path) -> Any:
    """Read a sparse matrix from its three arrays, so that SciPy checks that they fit together."""
    saved = _load(path)
    state = vars(saved) if isinstance(saved, _PickledCsr) else {}
    parts: Any = tuple(state.get(key) for key in ("data", "indices", "indptr"))
    if not all(isinstance(part, np.ndarray) for part in parts):
        raise _unexpected(path, "a sparse matrix", type(saved).__name__)
    try:
        matrix: Any = sp.csr_array(parts, shape=state.get("_shape"))
        matrix.check_format(full_check=True)
    except (ValueError, TypeError) as error:
        raise _unexpected(path, "a sparse matrix", str(error)) from error
    return matrix.astype(np.float32)


def _one_hot(path: Path) -> NDArray[Any]:
    saved = _load(path)
    if not isinstance(saved, np.ndarray) or saved.ndim != 2 or saved.dtype.kind not in "if":
        raise _unexpected(path, "a matrix with a column a class", type(saved).__name__)
    return saved


def _test_nodes(path: Path, first: int, count: int) -> NDArray[np.int64]:
    _require(path)
    lines = path.read_text(encoding="utf-8", errors="replace").split()
    for number, line in enumerate(lines, start=1):
        if not (line.isascii() and line.isdigit()):
            raise _unexpected(path, f"a node number in line {number}", repr(line))
    nodes = np.array(lines, dtype=np.int64)
    if len(np.unique(nodes)) != count or len(nodes) != count or nodes.min(initial=first) < first:
        raise _unexpected(
            path,
            f"{count:,} different node numbers from {first:,} on",
            f"{len(nodes):,} of which {len(np.unique(nodes[nodes >= first])):,} are such",
        )
    return nodes


def _links(path: Path, n_nodes: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    saved = _load(path)
    if not isinstance(saved, dict) or not all(isinstance(v, list) for v in saved.values()):
        raise _unexpected(path, "a list of neighbours for each node", type(saved).__name__)
    pairs = [(node, other) for node, others in saved.items() for other in others]
    for node, other in pairs:
        for end in (node, other):
            if not isinstance(end, int) or not 0 <= end < n_nodes:
                raise _unexpected(path, f"node numbers from 0 to {n_nodes - 1:,}", repr(end))
    ends = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return ends[:, 1], ends[:, 0]


def _l1_rows(matrix: Any) -> Any:
    """Divide each row by its sum; zero rows stay zero. The counts in it are not negative."""
    rows = sp.csr_array(matrix)
    sums = np.asarray(rows.sum(axis=1)).reshape(-1)
    rows.data /= np.repeat(np.where(sums == 0, 1, sums), np.diff(rows.indptr))
    return rows


def _unexpected(path: Path, expected: str, got: str) -> InputError:
    return InputError(
        "the file does not hold what its name says",
        where=str(path),
        expected=expected,
        got=got,
        remedy=_REMEDY,
    )
