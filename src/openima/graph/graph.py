"""The graph itself: who sends messages to whom, and what each node looks like."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from openima.errors import InputError

IndexArray: TypeAlias = NDArray[np.signedinteger[Any]]
DenseFeatures: TypeAlias = NDArray[np.floating[Any]]
if TYPE_CHECKING:  # scipy's arrays take type parameters in its stubs only
    SparseFeatures: TypeAlias = sp.csr_array[np.floating[Any], tuple[int, int]]
else:
    SparseFeatures: TypeAlias = sp.csr_array
Features: TypeAlias = DenseFeatures | SparseFeatures

_CHUNK = 1 << 22  # values looked at in one go when a large array is checked


@dataclass(frozen=True, eq=False)
class Graph:
    """An immutable graph with node features. Build it with `Graph.from_edges`.

    Edges are kept by the node they *arrive* at: the sources of the edges into node `i` are
    `sources[indptr[i]:indptr[i + 1]]`, ascending. The rules for what goes in:

    - an undirected graph holds both directions of every link;
    - parallel edges become one edge, and their weights add up;
    - the two directions of an undirected link are one link; the larger weight holds;
    - self-loops stay as given (encoders add one loop per node of their own).
    """

    indptr: IndexArray
    sources: IndexArray
    features: Features
    directed: bool
    weights: NDArray[np.float32] | None = None
    node_ids: NDArray[Any] | None = None
    feature_names: NDArray[np.str_] | None = None
    name: str = "graph"

    @classmethod
    def from_edges(
        cls,
        sources: ArrayLike,
        targets: ArrayLike,
        features: Features,
        *,
        directed: bool,
        weights: ArrayLike | None = None,
        node_ids: NDArray[Any] | None = None,
        feature_names: NDArray[np.str_] | None = None,
        name: str = "graph",
    ) -> Graph:
        """Build a graph from a list of edges `sources[k] -> targets[k]` over `len(features)` nodes.

        The features are kept as they are (dense or sparse, no copy); the edges are copied.
        """
        features = _checked_features(features, name)
        n_nodes = features.shape[0]
        source, target = checked_edges(sources, targets, n_nodes, name)
        weight = None if weights is None else _checked_weights(weights, len(source), name)
        adjacency = _incoming_csr(source, target, weight, n_nodes)
        if not directed:
            adjacency = adjacency.maximum(adjacency.T.tocsr())
        adjacency.sort_indices()
        return cls(
            indptr=_frozen(_smallest_index(adjacency.indptr, adjacency.nnz)),
            sources=_frozen(_smallest_index(adjacency.indices, n_nodes)),
            features=features,
            directed=directed,
            weights=None if weight is None else _frozen(adjacency.data.astype(np.float32)),
            node_ids=_checked_names(node_ids, n_nodes, "node ids", name),
            feature_names=_checked_names(feature_names, features.shape[1], "feature names", name),
            name=name,
        )

    @property
    def n_nodes(self) -> int:
        """How many nodes there are."""
        return len(self.indptr) - 1

    @property
    def n_edges(self) -> int:
        """How many directed edges are stored; an undirected link counts twice, a self-loop once."""
        return len(self.sources)

    @property
    def n_self_loops(self) -> int:
        """How many nodes have an edge to themselves."""
        return int((self.sources == np.repeat(np.arange(self.n_nodes), self.in_degrees)).sum())

    @property
    def n_links(self) -> int:
        """How many links there are: edges if directed, else unordered pairs (loops included)."""
        if self.directed:
            return self.n_edges
        loops = self.n_self_loops
        return (self.n_edges - loops) // 2 + loops

    @property
    def n_features(self) -> int:
        """How many features a node has."""
        return int(self.features.shape[1])

    @property
    def in_degrees(self) -> IndexArray:
        """How many edges arrive at each node."""
        return np.diff(self.indptr)

    @property
    def is_sparse(self) -> bool:
        """Whether the features are stored sparse."""
        return sp.issparse(self.features)

    @property
    def density(self) -> float:
        """The share of feature values that are not zero."""
        total = self.n_nodes * self.n_features
        return float(_count_nonzero(self.features) / total) if total else 0.0

    @property
    def nbytes(self) -> int:
        """How many bytes the arrays of this graph take."""
        optional = (self.weights, self.node_ids, self.feature_names)
        arrays = [self.indptr, self.sources, *(a for a in optional if a is not None)]
        if isinstance(self.features, np.ndarray):
            arrays.append(self.features)
        else:
            arrays += [self.features.data, self.features.indices, self.features.indptr]
        return sum(int(array.nbytes) for array in arrays)

    def with_features(self, features: Features, names: NDArray[np.str_] | None = None) -> Graph:
        """Return this graph with other features (N, F) and their `names` (F,), if they have any.

        They may be larger than memory: map a .npy file of float32 or float16 numbers,
        `graph.with_features(np.load("features.npy", mmap_mode="r"))`, and it is read in parts.
        """
        features = _checked_features(features, self.name)
        if features.shape[0] != self.n_nodes:
            raise InputError(
                "the features do not fit the nodes",
                where=self.name,
                expected=f"{self.n_nodes:,} rows",
                got=f"{features.shape[0]:,}",
                remedy="give each node one row, in the order of the graph's nodes",
            )
        names = _checked_names(names, features.shape[1], "feature names", self.name)
        return replace(self, features=features, feature_names=names)

    def id_of(self, node: int) -> Any:
        """Return the name under which the user knows node number `node`."""
        return node if self.node_ids is None else self.node_ids[node]

    def __repr__(self) -> str:
        kind = "directed" if self.directed else "undirected"
        storage = "sparse" if self.is_sparse else "dense"
        return (
            f"Graph({self.name!r}, {self.n_nodes:,} nodes, {self.n_links:,} {kind} links, "
            f"{self.n_features:,} {storage} features)"
        )


def _incoming_csr(
    source: IndexArray, target: IndexArray, weight: NDArray[np.float32] | None, n_nodes: int
) -> Any:
    """Sort edges by target in linear time; parallel edges are merged, their weights added."""
    values = np.ones(len(source), dtype=np.bool_) if weight is None else weight
    return sp.coo_array((values, (target, source)), shape=(n_nodes, n_nodes)).tocsr()


def checked_edges(
    sources: ArrayLike, targets: ArrayLike, n_nodes: int, name: str
) -> tuple[IndexArray, IndexArray]:
    """Refuse edges that are not pairs of node numbers from 0 to `n_nodes - 1`."""
    source, target = _node_index(sources, n_nodes, name), _node_index(targets, n_nodes, name)
    if len(source) != len(target):
        raise InputError(
            "an edge needs a source and a target",
            where=name,
            expected="as many sources as targets",
            got=f"{len(source):,} sources and {len(target):,} targets",
            remedy="pass both ends of every edge",
        )
    return source, target


def _node_index(nodes: ArrayLike, n_nodes: int, name: str) -> IndexArray:
    array = np.asarray(nodes)
    if array.size == 0:
        return np.empty(0, dtype=np.int32)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InputError(
            "edges are lists of node numbers",
            where=name,
            expected="one-dimensional integer arrays",
            got=f"an array of type {array.dtype} and shape {array.shape}",
            remedy="number the nodes from 0 and pass integers",
        )
    low, high = int(array.min()), int(array.max())
    if low < 0 or high >= n_nodes:
        raise InputError(
            "an edge ends at a node that does not exist",
            where=name,
            expected=f"node numbers from 0 to {n_nodes - 1:,}",
            got=str(low if low < 0 else high),
            remedy="add the node with its features, or drop the edge",
        )
    return array.astype(np.int32 if n_nodes <= np.iinfo(np.int32).max else np.int64, copy=False)


def _checked_weights(weights: ArrayLike, n_edges: int, name: str) -> NDArray[np.float32]:
    array = np.asarray(weights)
    if array.shape != (n_edges,) or array.dtype.kind not in "fiub":
        raise InputError(
            "every edge needs one weight",
            where=name,
            expected=f"{n_edges:,} numbers",
            got=f"an array of type {array.dtype} and shape {array.shape}",
            remedy="give one number an edge, or leave out the weights",
        )
    array = array.astype(np.float32)
    bad = np.flatnonzero(~(np.isfinite(array) & (array > 0)))
    if len(bad):
        raise InputError(
            f"the weight of edge {bad[0]:,} is not a positive number",
            where=name,
            got=str(array[bad[0]]),
            remedy="drop the edge, or give it a positive weight",
        )
    return array


def _checked_features(features: Any, name: str) -> Features:
    """Accept a finite real matrix as it is; integers and booleans become float32."""
    if not sp.issparse(features):
        features = np.asarray(features)
    if features.ndim != 2 or features.dtype.kind not in "fiub":
        raise InputError(
            "features are a matrix of numbers, one row a node",
            where=name,
            got=f"type {features.dtype} and shape {features.shape}",
            remedy="convert them; a single feature is a matrix of one column",
        )
    if features.shape[0] == 0:
        raise InputError("the graph has no nodes", where=name, remedy="check the file of nodes")
    if features.dtype.kind != "f":
        features = features.astype(np.float32)
    if isinstance(features, np.ndarray):
        _refuse_nonfinite(features, name, lambda at: divmod(at, features.shape[1]))
        return _frozen(features)
    matrix = sp.csr_array(features)
    _refuse_nonfinite(
        matrix.data,
        name,
        lambda at: (int(np.searchsorted(matrix.indptr, at, "right")) - 1, int(matrix.indices[at])),
    )
    return _frozen_csr(matrix)


def _refuse_nonfinite(values: NDArray[Any], name: str, locate: Any) -> None:
    """Look at a few rows at a time, so that nothing as large as `values` is made."""
    rows = max(1, _CHUNK * len(values) // max(1, values.size))
    for start in range(0, len(values), rows):
        part = values[start : start + rows]
        finite = np.isfinite(part)
        if not finite.all():
            at = int(np.argmin(finite))
            row, column = locate(start * (values.size // len(values)) + at)
            raise InputError(
                f"feature {column:,} of node {row:,} is {part.flat[at]}",
                where=name,
                expected="finite numbers",
                remedy="fill in or drop missing values before loading",
            )


def _checked_names(names: Any, n: int, what: str, name: str) -> NDArray[Any] | None:
    if names is None:
        return None
    array = np.asarray(names)
    if array.shape != (n,):
        raise InputError(
            f"the {what} do not fit the features",
            where=name,
            expected=f"{n:,}",
            got=f"{array.shape}",
            remedy="give each one name, or leave out the names",
        )
    return _frozen(array)


def _count_nonzero(features: Features) -> int:
    if isinstance(features, np.ndarray):
        return int(np.count_nonzero(features))
    return int(np.count_nonzero(features.data))


def is_mapped(features: Features) -> bool:
    """Tell whether features lie in a file that is mapped into memory, and not in memory itself."""
    base: Any = features
    while isinstance(base, np.ndarray):
        if isinstance(base, np.memmap):
            return True
        base = base.base
    return False


def _smallest_index(array: NDArray[Any], bound: int) -> IndexArray:
    return array.astype(np.int32 if bound <= np.iinfo(np.int32).max else np.int64, copy=False)


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view; the array that the user holds stays as writeable as it was."""
    view = array.view()
    view.flags.writeable = False
    return view


def _frozen_csr(matrix: Any) -> SparseFeatures:
    parts = (_frozen(matrix.data), _frozen(matrix.indices), _frozen(matrix.indptr))
    return sp.csr_array(parts, shape=matrix.shape)
