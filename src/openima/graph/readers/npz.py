"""The gnn-benchmark .npz format: adjacency and attributes as CSR parts, labels as numbers."""

from __future__ import annotations

import warnings
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from openima.errors import InputError
from openima.graph.graph import Features
from openima.graph.readers.common import assemble, damaged, existing_file, labels_from_numbers
from openima.graph.task import UNKNOWN, LabelledGraph

_PARTS = ("data", "indices", "indptr", "shape")
_CSR_REMEDY = "save the four parts of one scipy.sparse.csr_array"


def read_npz(
    path: str | Path, *, directed: bool = False, structural: str = "walk"
) -> LabelledGraph:
    """Read a graph in the format of the gnn-benchmark collection.

    Keys, for N nodes and D features:

    - `adj_data`, `adj_indices`, `adj_indptr`, `adj_shape`: the CSR parts of the (N, N) adjacency;
      row i, column j is the edge from i to j. The graph is symmetrised unless `directed`. A
      stored 0 is no edge. Values other than 1 are kept as weights.
    - `attr_data`, `attr_indices`, `attr_indptr`, `attr_shape`: sparse features (N, D), or
      `attr_matrix`: dense ones. They stay sparse or dense, in float32. Without either, features
      are made from the edges: `structural_features(..., kind=structural)`.
    - `labels`: class numbers (N,), -1 or NaN for unknown. Without them all are unknown.
    - `class_names`, `attr_names`, `node_names`: names, optional. Where they are stored as Python
      objects they are left out with a warning, since reading objects can run code.
    """
    path = existing_file(Path(path))
    where = str(path)
    try:
        with path.open("rb") as stream, _open(stream, path) as file:
            sources, targets, weights, n_nodes = _edges(file, where)
            features = _features(file, where, n_nodes)
            names = {key: _names(file, where, f"{key}_names") for key in ("class", "attr", "node")}
            numbers = np.full(n_nodes, UNKNOWN)
            if "labels" in file:
                numbers = _array(file, where, "labels")
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError) as error:
        raise damaged(path, ".npz", error) from error
    class_names = None if names["class"] is None else names["class"].astype(str).tolist()
    return assemble(
        sources,
        targets,
        features,
        labels_from_numbers(numbers, f"{where}, labels", class_names),
        where=where,
        name=path.stem,
        directed=directed,
        weights=weights,
        node_ids=names["node"],
        feature_names=None if features is None else names["attr"],
        structural=structural,
    )


def _open(stream: BinaryIO, path: Path) -> Any:
    try:
        file = np.load(stream, allow_pickle=False)
    except ValueError as error:  # numpy takes whatever it does not know for a pickle
        raise damaged(path, ".npz", zipfile.BadZipFile("not a zip archive")) from error
    if not isinstance(file, np.lib.npyio.NpzFile):
        raise InputError(
            "the file holds one array without a name",
            where=str(path),
            expected="the keys adj_data, adj_indices, adj_indptr, adj_shape, ...",
            remedy="save it with numpy.savez",
        )
    return file


def _array(file: Mapping[str, Any], where: str, key: str) -> NDArray[Any]:
    if key not in file:
        raise InputError(
            f"the key {key!r} is missing",
            where=where,
            got=f"the keys {', '.join(sorted(file)[:12])}" if len(file) else "no keys at all",
            remedy="add the array, or see read_npz for the format",
        )
    try:
        return np.asarray(file[key])
    except ValueError as error:
        problem = (
            "is an array of Python objects, which can run code when it is read"
            if "Object arrays" in str(error)
            else f"cannot be read ({error})"
        )
        raise InputError(
            f"the key {key!r} {problem}",
            where=where,
            expected="an array of numbers or text",
            remedy="save it again with a plain type, such as array.astype(str)",
        ) from error


def _names(file: Mapping[str, Any], where: str, key: str) -> NDArray[Any] | None:
    """Read optional names, unless they are objects."""
    if key not in file:
        return None
    try:
        return _array(file, where, key)
    except InputError as error:
        warnings.warn(f"{error} The names are left out.", stacklevel=4)
        return None


def _edges(
    file: Mapping[str, Any], where: str
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None, int]:
    adjacency = _csr(file, where, "adj")
    n_nodes, n_columns = adjacency.shape
    if n_nodes != n_columns:
        raise InputError(
            "the adjacency matrix is not square",
            where=f"{where}, adj_shape",
            expected="as many columns as rows",
            got=f"{n_nodes:,} rows and {n_columns:,} columns",
            remedy="give every node a row and a column",
        )
    adjacency.eliminate_zeros()
    edges = adjacency.tocoo()
    return edges.row, edges.col, None if (edges.data == 1).all() else edges.data, n_nodes


def _features(file: Mapping[str, Any], where: str, n_nodes: int) -> Features | None:
    """Read the (N, D) features as they are stored, in float32; None if there are none."""
    features: Any
    if "attr_matrix" in file:
        key, features = "attr_matrix", _array(file, where, "attr_matrix")
    elif any(f"attr_{part}" in file for part in _PARTS):
        key = "attr_shape"
        features = _csr(file, where, "attr")
    else:
        return None
    if features.dtype.kind not in "fiub" or features.ndim != 2 or features.shape[0] != n_nodes:
        raise InputError(
            "features are a matrix of numbers with one row a node",
            where=f"{where}, {key}",
            expected=f"{n_nodes:,} rows",
            got=f"type {features.dtype} and shape {features.shape}",
            remedy="give every node of the adjacency matrix a row",
        )
    checked: Features = features.astype(np.float32, copy=False)
    return checked


def _csr(file: Mapping[str, Any], where: str, prefix: str) -> Any:
    """Put a CSR matrix together from its parts; entries are sorted, repeated ones added up."""
    parts = {part: _array(file, where, f"{prefix}_{part}") for part in _PARTS}
    for part, array in parts.items():
        numbers = "numbers" if part == "data" else "integers"
        if array.ndim != 1 or array.dtype.kind not in ("fiub" if part == "data" else "iu"):
            raise InputError(
                f"the key '{prefix}_{part}' is not a list of {numbers}",
                where=where,
                got=f"type {array.dtype} and shape {array.shape}",
                remedy=_CSR_REMEDY,
            )
    data, indices, indptr, shape = parts.values()
    try:
        matrix = sp.csr_array((data, indices, indptr), shape=tuple(shape.tolist()))
        matrix.check_format(full_check=True)
        if matrix.ndim != 2:
            raise ValueError(f"{prefix}_shape has {matrix.ndim} numbers in place of 2")
        if matrix.nnz != len(data):
            raise ValueError(f"indptr speaks of {matrix.nnz:,} entries and data of {len(data):,}")
        matrix.sum_duplicates()
    except (ValueError, TypeError) as error:
        raise InputError(
            f"the parts '{prefix}_*' do not make a CSR matrix",
            where=where,
            got=str(error),
            remedy=_CSR_REMEDY,
        ) from error
    return matrix
