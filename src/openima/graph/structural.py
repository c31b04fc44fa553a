"""Features for a graph that has none, made from its links alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from openima.errors import InputError
from openima.graph.graph import Features, checked_edges

KINDS = ("walk", "identity")

_COLUMNS, _SEED = 64, 0
_STEPS = (1, 2, 4)  # lengths of the walks: the longer, the wider the neighbourhood that counts


def structural_features(
    sources: ArrayLike,
    targets: ArrayLike,
    n_nodes: int,
    *,
    directed: bool,
    kind: str = "walk",
) -> tuple[Features, NDArray[np.str_]]:
    """Describe each node by its place in the graph; return `(features, feature names)`.

    - `"walk"` (dense float32, 193 columns, or 194 if directed): how many links a node has, and
      which nodes short random walks from it reach. Nodes that are close look alike, so what is
      learned on some nodes carries over to others, and memory grows with N. The usual choice.
    - `"identity"` (sparse, one column a node): every node is a feature of its own. Nothing
      is assumed, but an encoder needs a row of weights for each node and cannot serve nodes it
      has not seen. For graphs of up to some ten thousand nodes in which exact neighbours matter.

    Both are the same in every run. Parallel edges count once, and walks go along a link in both
    directions even if `directed`; in- and out-degrees are then told apart.
    """
    if kind not in KINDS:
        raise InputError(
            f"there are no structural features {kind!r}",
            expected=" or ".join(map(repr, KINDS)),
            remedy="choose one of these: structural=...",
        )
    if n_nodes < 1:
        raise InputError("the graph has no nodes", remedy="check the file of nodes")
    source, target = checked_edges(sources, targets, n_nodes, "edges")
    if kind == "identity":
        return sp.csr_array(sp.eye_array(n_nodes, dtype=np.float32)), np.arange(n_nodes).astype(str)
    edges = sp.coo_array((np.ones(len(source), dtype=bool), (target, source)), (n_nodes, n_nodes))
    links = edges.tocsr() + edges.T.tocsr()
    degrees = {"log degree": np.diff(links.indptr)}
    if directed:
        incoming = edges.tocsr()
        outgoing = np.bincount(incoming.indices, minlength=n_nodes)
        degrees = {"log in-degree": np.diff(incoming.indptr), "log out-degree": outgoing}
    names = [*degrees, *(f"walk {s}.{c}" for s in _STEPS for c in range(_COLUMNS))]
    features = np.zeros((n_nodes, len(names)), dtype=np.float32)
    for column, degree in enumerate(degrees.values()):
        features[:, column] = _standardised(np.log1p(degree))
    _walk(links, features[:, len(degrees) :])
    return features, np.asarray(names)


def _walk(links: Any, out: NDArray[np.float32]) -> None:
    """Write one block of columns for each length of walk into `out`.

    Each node starts with a random vector. After `s` steps it holds the mean of the vectors that
    a walk of `s` steps from it ends at, so the product of two nodes' rows tells how much their
    walks overlap. The walk may stay where it is; a node without links keeps its own vector. What
    all nodes have in common is taken out of a block, and its rows get length 1, which puts nodes
    of many and of few links on one scale.
    """
    n_nodes = len(out)
    step = (links + sp.eye_array(n_nodes, dtype=bool)).astype(np.float32).tocsr()
    step.data = np.repeat(np.float32(1) / np.diff(step.indptr), np.diff(step.indptr))
    state = np.random.default_rng(_SEED).standard_normal((n_nodes, _COLUMNS), dtype=np.float32)
    taken = 0
    for block_number, steps in enumerate(_STEPS):
        for _ in range(steps - taken):
            state = step @ state
        taken = steps
        block = state - state.mean(axis=0, dtype=np.float64).astype(np.float32)
        length = np.linalg.norm(block, axis=1, keepdims=True)
        first = block_number * _COLUMNS
        np.divide(block, length, out=out[:, first : first + _COLUMNS], where=length > 0)


def _standardised(values: NDArray[np.float64]) -> NDArray[np.float64]:
    centred = values - values.mean()
    spread = float(values.std())
    return centred / spread if spread > 0 else np.zeros_like(centred)
