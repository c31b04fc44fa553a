"""PyTorch Geometric: `Data` objects and files that hold one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray

from openima.errors import InputError
from openima.graph.graph import IndexArray, checked_edges
from openima.graph.readers.common import (
    assemble,
    damaged,
    existing_file,
    labels_from_numbers,
    listed,
    optional_package,
)
from openima.graph.task import UNKNOWN, LabelledGraph

# The classes of which a saved Data consists. They hold data and run nothing when they are built.
_DATA = "torch_geometric.data.data."
_SAFE = {
    "torch_geometric.data.storage.GlobalStorage",
    *(_DATA + name for name in ("Data", "DataEdgeAttr", "DataTensorAttr")),
}


def read_pyg(source: Any, *, structural: str = "walk") -> LabelledGraph:
    """Read a homogeneous PyG `Data`, or the path of a file with one.

    - `edge_index` (2, E). The graph is undirected if every edge has its reverse, else directed.
    - `x` (N, D), dense or sparse (COO, CSR): the features, as they are. Without it, features are
      made from the edges: `structural_features(..., kind=structural)`.
    - `y` (N,) or (N, 1): class numbers, -1 or NaN for unknown. Without it all are unknown.
    - `edge_weight`, else `edge_attr`, (E,) or (E, 1): positive weights. A wider `edge_attr`, and
      all other attributes, are not read.

    A file may hold a `Data`, the `data.pt` that a PyG dataset of one graph writes, or a dict with
    the keys above. It is read without running code from it, so a file with any other object is
    refused.
    """
    if isinstance(source, str | Path):
        path = existing_file(Path(source))
        where, name, content = str(path), path.stem, _load(path)
    else:
        where = name = f"PyG {type(source).__name__}"
        content = source
    return _read_mapping(_as_mapping(content, where), where, name, structural)


def _load(path: Path) -> Any:
    """Read a file with nothing but tensors, plain containers and the classes of a `Data`."""
    try:
        foreign = torch.serialization.get_unsafe_globals_in_checkpoint(path)
    except Exception as error:  # whatever torch and zip meet in a bad file
        raise damaged(path, ".pt", error) from error
    refused = sorted(set(foreign) - _SAFE)
    if refused:
        raise InputError(
            f"the file holds {listed(refused, 3)}; to read that can run code from the file",
            where=str(path),
            expected="a homogeneous PyG Data, or a dict of tensors",
            remedy="save torch.save(data.to_dict(), path) with tensors only; "
            "if you trust the file, load it yourself and pass the Data",
        )
    classes = []
    for full_name in foreign:
        module, _, name = full_name.rpartition(".")
        classes.append(getattr(optional_package(module, "pyg"), name))
    try:
        with torch.serialization.safe_globals(classes):
            return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise damaged(path, ".pt", error) from error


def _as_mapping(content: Any, where: str) -> Mapping[str, Any]:
    if isinstance(content, tuple) and len(content) > 1 and content[1] is None:
        content = content[0]  # what a dataset of one graph writes: (data, no slices, ...)
    if isinstance(content, Mapping):
        return content
    kinds = {f"{kind.__module__}.{kind.__qualname__}" for kind in type(content).__mro__}
    if _DATA + "Data" in kinds:
        mapping: Mapping[str, Any] = content.to_dict()
        return mapping
    raise InputError(
        f"a {type(content).__name__} is not one homogeneous graph",
        where=where,
        expected="a torch_geometric.data.Data, or a dict with edge_index, x and y",
        remedy="of HeteroData pass data.to_homogeneous(), of a dataset one graph: dataset[0]",
    )


def _read_mapping(
    content: Mapping[str, Any], where: str, name: str, structural: str
) -> LabelledGraph:
    if content.get("edge_index") is None:
        raise InputError(
            "there is no edge_index",
            where=where,
            expected="edge_index, and usually x and y",
            got=listed([key for key, value in content.items() if value is not None]) or "nothing",
            remedy="set data.edge_index, of shape (2, E)",
        )
    edges = _array(content["edge_index"], f"{where}, edge_index")
    if edges.ndim != 2 or len(edges) != 2 or edges.dtype.kind not in "iu":
        raise InputError(
            "edges are two rows of node numbers",
            where=f"{where}, edge_index",
            expected="integers of shape (2, E)",
            got=f"type {edges.dtype} and shape {edges.shape}",
            remedy="transpose it if it is (E, 2): edge_index.t()",
        )
    features = content.get("x")
    if features is not None:
        features = _features(features, f"{where}, x")
    y = content.get("y")
    y = None if y is None else _column(_array(y, f"{where}, y"))
    n_nodes = _n_nodes(content.get("num_nodes"), features, y, edges)
    source, target = checked_edges(edges[0], edges[1], n_nodes, f"{where}, edge_index")
    numbers = np.full(n_nodes, UNKNOWN) if y is None else y
    return assemble(
        source,
        target,
        features,
        labels_from_numbers(numbers, f"{where}, y"),
        where=where,
        name=name,
        directed=not is_symmetric(source, target, n_nodes),
        weights=_weights(content, where),
        structural=structural,
    )


def is_symmetric(sources: IndexArray, targets: IndexArray, n_nodes: int) -> bool:
    """Tell whether every edge has its reverse; how often an edge is there does not matter."""
    present = np.ones(len(sources), dtype=bool)
    edges = sp.coo_array((present, (sources, targets)), shape=(n_nodes, n_nodes)).tocsr()
    # Equal columns mean equal in- and out-degrees, and with them equal rows.
    return np.array_equal(edges.indices, edges.T.tocsr().indices)


def _n_nodes(given: Any, features: Any, y: NDArray[Any] | None, edges: NDArray[Any]) -> int:
    if features is not None:
        return int(features.shape[0])
    if y is not None and y.ndim:
        return len(y)
    if given is not None:
        return int(given)
    return int(edges.max()) + 1 if edges.size else 0


def _array(value: Any, where: str) -> NDArray[Any]:
    if isinstance(value, torch.Tensor) and value.layout == torch.strided:
        tensor = value.detach().cpu()
        return np.asarray(tensor.float() if tensor.dtype == torch.bfloat16 else tensor)
    if isinstance(value, np.ndarray | list | int | float):
        return np.asarray(value)
    raise InputError(
        "this cannot be read as an array",
        where=where,
        expected="a dense tensor",
        got=type(value).__name__,
        remedy="convert it to a tensor",
    )


def _features(value: Any, where: str) -> Any:
    if not isinstance(value, torch.Tensor) or value.layout == torch.strided:
        return _array(value, where)
    if value.layout not in (torch.sparse_coo, torch.sparse_csr) or value.ndim != 2:
        raise InputError(
            "this layout of sparse features cannot be read",
            where=where,
            expected="a two-dimensional COO or CSR tensor",
            got=f"{value.layout} of shape {tuple(value.shape)}",
            remedy="convert it: x.to_sparse()",
        )
    entries = value.detach().cpu().to_sparse(layout=torch.sparse_coo).coalesce()
    values = _array(entries.values(), where)
    rows, columns = _array(entries.indices(), where)
    return sp.coo_array((values, (rows, columns)), shape=tuple(value.shape)).tocsr()


def _column(array: NDArray[Any]) -> NDArray[Any]:
    """Take (N, 1) for (N,), and true/false for 1 and 0."""
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    return array.astype(np.int64) if array.dtype.kind == "b" else array


def _weights(content: Mapping[str, Any], where: str) -> NDArray[Any] | None:
    if content.get("edge_weight") is not None:
        return _column(_array(content["edge_weight"], f"{where}, edge_weight"))
    if content.get("edge_attr") is None:
        return None
    weights = _column(_array(content["edge_attr"], f"{where}, edge_attr"))
    return weights if weights.ndim == 1 else None
