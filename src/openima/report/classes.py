"""The table of classes: what was found, how clear it is, and what it consists of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from openima.graph.graph import Features, Graph
from openima.metrics.variance import ClassSpread, class_spread

SHOWN = 5
"""How many features and nodes stand for a class."""

_CHUNK = 1 << 16  # rows of dense features that are made float64 in one go


def class_table(
    graph: Graph,
    z: NDArray[np.float32],
    classes: NDArray[np.int64],
    margins: NDArray[np.float32],
    given: NDArray[np.int64],
    names: Sequence[str],
    n_seen: int,
) -> pd.DataFrame:
    """Describe each of the C classes `names`, the first `n_seen` of which are known, in one row.

    `z` (N, d) are the embeddings of the nodes of `graph`, `classes` (N,) their classes, `margins`
    (N,) how clearly they are that, and `given` (N,) the labels that were known, -1
    elsewhere. The columns:

    - `class`, `status` ("seen" or "novel"), `size` (nodes), `n_known` (nodes labelled so);
    - `cohesion`: the length of the mean embedding, which is the mean cosine of a node to the
      centre of its class; 1 if all point the same way;
    - `separation`: the distance of two centres over the sum of their widths (root mean square
      distances to the centre), to the class where that is least; above 1 they lie apart;
    - `nearest_known`: of a novel class, the known one whose centre is nearest;
    - `top_features`: what sets the class off: the features with the largest mean in it less the
      mean outside, in standard deviations of the feature over all nodes; only larger ones;
    - `exemplars`: ids of the nodes nearest the centre, `borderline`: of the least margin.

    A class without nodes has no cohesion and separation (NaN), and its lists are empty.
    """
    spread = class_spread(z, classes)
    sizes = np.bincount(classes, minlength=len(names))
    members = np.split(np.argsort(classes, kind="stable"), np.cumsum(sizes)[:-1])
    centre = dict(zip(spread.classes.tolist(), spread.centres, strict=True))
    distances = [_distances(z[nodes], centre.get(c)) for c, nodes in enumerate(members)]
    titles = _feature_titles(graph)
    return pd.DataFrame(
        {
            "class": pd.Series(list(names), dtype=object),
            "status": ["seen"] * n_seen + ["novel"] * (len(names) - n_seen),
            "size": sizes,
            "n_known": np.bincount(given[given >= 0], minlength=len(names)),
            "cohesion": _per_class(spread, np.linalg.norm(spread.centres, axis=1), len(names)),
            "separation": _per_class(spread, _separation(spread), len(names)),
            "nearest_known": pd.Series(_nearest_known(spread, names, n_seen), dtype=object),
            "top_features": [
                [titles(f) for f in top] for top in top_features(graph.features, classes, sizes)
            ],
            "exemplars": [
                _ids(graph, nodes, far) for nodes, far in zip(members, distances, strict=True)
            ],
            "borderline": [_ids(graph, nodes, margins[nodes]) for nodes in members],
        }
    )


def top_features(
    features: Features, classes: NDArray[np.int64], sizes: NDArray[np.int64]
) -> list[list[int]]:
    """Find the columns whose mean in a class exceeds that outside most, in standard deviations.

    One pass over the (N, F) features, dense or sparse; beyond them it takes (C, F).
    """
    n_nodes, n_classes = len(classes), len(sizes)
    sums, squares = _class_sums(features, classes, n_classes)
    total = sums.sum(axis=0)
    variance = squares / n_nodes - (total / n_nodes) ** 2
    # What rounding leaves of a constant column is no variance.
    scale = np.sqrt(np.where(variance > 1e-10 * squares / n_nodes, variance, np.inf))
    inside = np.maximum(sizes, 1)[:, None]
    outside = np.maximum(n_nodes - sizes, 1)[:, None]
    contrast = (sums / inside - (total - sums) / outside) / scale
    order = np.argsort(-contrast, axis=1, kind="stable")[:, :SHOWN]
    return [
        [int(column) for column in order[c] if contrast[c, column] > 0] if size else []
        for c, size in enumerate(sizes.tolist())
    ]


def _class_sums(
    features: Features, classes: NDArray[np.int64], n_classes: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Add up the features of each class, (C, F), and the squares of all, (F,)."""
    n_nodes, n_features = features.shape
    sums, squares = np.zeros((n_classes, n_features)), np.zeros(n_features)
    for start in range(0, n_nodes, _CHUNK):
        rows = slice(start, start + _CHUNK)
        part: Any = features[rows].astype(np.float64)
        of_class = classes[rows]
        cells = (np.ones(len(of_class)), (of_class, np.arange(len(of_class))))
        membership: Any = sp.csr_array(cells, shape=(n_classes, len(of_class)))
        product: Any = membership @ part
        sums += product if isinstance(product, np.ndarray) else product.toarray()
        squares += (part * part).sum(axis=0)
    return sums, squares


def _separation(spread: ClassSpread) -> NDArray[np.float64]:
    """Return the least rate of distance to widths to another class, (K,); NaN without another."""
    with np.errstate(divide="ignore", invalid="ignore"):
        rates = cdist(spread.centres, spread.centres) / (spread.std[:, None] + spread.std)
    np.fill_diagonal(rates, np.inf)
    least = rates.min(axis=1, initial=np.inf)
    return least if len(least) > 1 else np.full(len(least), np.nan)


def _nearest_known(spread: ClassSpread, names: Sequence[str], n_seen: int) -> list[str | None]:
    split = int(np.searchsorted(spread.classes, n_seen))
    nearest: list[str | None] = [None] * len(names)
    if split:
        distances = cdist(spread.centres[split:], spread.centres[:split])
        for c, known in zip(spread.classes[split:], distances.argmin(axis=1), strict=True):
            nearest[c] = names[spread.classes[known]]
    return nearest


def _per_class(
    spread: ClassSpread, values: NDArray[np.float64], n_classes: int
) -> NDArray[np.float64]:
    """Put the values of the classes that occur among those of all; NaN for the others."""
    filled = np.full(n_classes, np.nan)
    filled[spread.classes] = values
    return filled


def _distances(
    rows: NDArray[np.float32], centre: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    if centre is None:
        return np.empty(0)
    return cdist(rows, centre[None])[:, 0]


def _ids(graph: Graph, nodes: NDArray[np.int64], values: NDArray[Any]) -> list[Any]:
    """List the ids of the nodes with the least values, as Python's own numbers or texts."""
    chosen = nodes[np.argsort(values, kind="stable")[:SHOWN]]
    ids = chosen if graph.node_ids is None else graph.node_ids[chosen]
    found: list[Any] = ids.tolist()
    return found


def _feature_titles(graph: Graph) -> Any:
    names = graph.feature_names
    return (lambda f: f"feature {f}") if names is None else (lambda f: str(names[f]))
