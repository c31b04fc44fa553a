"""The silhouette coefficient: how much nearer nodes lie to their own cluster than to the next.

Exact, in blocks, without a matrix of all pairs. What makes it fast on one core: each pair of blocks
is one float32 matrix product that yields squared distances directly and stays in cache; each
pair is computed once and read by rows and by columns. What keeps it accurate: nodes are sorted
by cluster, and every block of rows is measured from its own centre, so that rounding is small
beside the width of a cluster even where clusters are tight and far from the origin. Where most
clusters are too small for blocks of their own, float64 does it, at twice the time.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from openima.checks import as_ids, as_matrix
from openima.errors import InputError

Floats: TypeAlias = NDArray[np.floating[Any]]

_BLOCK = 512  # rows; a pair of blocks takes 1 MB, about one core's second-level cache
_LARGE = 128  # nodes; a cluster of that size starts a block of its own
_MAX_SUMS = 1 << 25  # float64 values (256 MB) that sums per node and cluster may take


def silhouette(
    z: ArrayLike,
    clusters: ArrayLike,
    *,
    nodes: NDArray[np.int64] | None = None,
    max_exact: int | None = 20_000,
    sample_size: int = 10_000,
    seed: int = 0,
) -> float:
    """Mean silhouette of embeddings `z`, shape (n, d), Euclidean, under `clusters`, shape (n,).

    Of a node, with `a` its mean distance to the other nodes of its cluster and `b` the least
    mean distance to the nodes of another one, it is (b - a) / max(a, b): 1 is well inside, -1
    is misplaced. It is 0 for a node alone in its cluster (so 0 if every node is), and 0 if
    a = b = 0. With fewer than two clusters the result is -1.

    `nodes`, if given, are the rows that are meant; the others do not count. Of more than
    `max_exact`, `sample_size`, drawn with `seed`, stand for all; None is always exact. Cluster
    ids are any whole numbers.
    """
    matrix = as_matrix(z, "z")
    cluster = as_ids(clusters, "clusters", length=len(matrix), lowest=None)
    if sample_size < 1:
        raise InputError("sample_size must be at least 1", got=str(sample_size))
    n = len(matrix) if nodes is None else len(nodes)
    if max_exact is not None and n > max_exact:
        drawn = np.random.default_rng(seed).choice(n, min(sample_size, n), replace=False)
        nodes = drawn if nodes is None else nodes[drawn]
    if nodes is not None:  # only now, so that a sample of a large matrix is all that is copied
        matrix, cluster = matrix[nodes], cluster[nodes]
    _, cluster, sizes = np.unique(cluster, return_inverse=True, return_counts=True)
    if len(sizes) < 2:
        return -1.0
    by_cluster = np.argsort(cluster, kind="stable")
    x = _standardised(matrix[by_cluster]).astype(_precision(sizes), copy=False)
    return _mean_silhouette(x, cluster[by_cluster], sizes)


@dataclass(frozen=True, eq=False)
class _Block:
    """Consecutive nodes (sorted by cluster) and the clusters they are from.

    `member` is 1 where a node belongs to a cluster, shape (nodes, clusters of this block).
    """

    nodes: slice
    clusters: slice
    member: Floats


def _mean_silhouette(x: Floats, cluster: NDArray[np.intp], sizes: NDArray[np.intp]) -> float:
    """Mean silhouette of nodes sorted by `cluster` (0, 1, …); `sizes` counts each cluster."""
    blocks = _blocks(cluster, sizes, x.dtype)
    # Distance sums of shape (n, k) let each pair of blocks serve both. With clusters too many
    # for that, every row of blocks is computed in full, at twice the work.
    once = len(x) * len(sizes) <= _MAX_SUMS
    sums = np.zeros((len(x) if once else 0, len(sizes)))
    right = np.empty((len(x), x.shape[1] + 2), dtype=x.dtype)
    scratch = np.empty(_BLOCK * _BLOCK, dtype=x.dtype)
    total = 0.0
    for position, rows in enumerate(blocks):
        partners = blocks[position:] if once else blocks
        reach = slice(partners[0].nodes.start, None)
        _extend(x[reach], x[rows.nodes].mean(axis=0), out=right[reach])
        left = _as_left(right[rows.nodes])
        n_rows = len(rows.member)
        row_sums = sums[rows.nodes] if once else np.zeros((n_rows, len(sizes)))
        for columns in partners:
            distance = scratch[: n_rows * len(columns.member)].reshape(n_rows, -1)
            _distances(left, right[columns.nodes], out=distance)
            if columns is rows:
                np.fill_diagonal(distance, 0.0)
            row_sums[:, columns.clusters] += distance @ columns.member
            if once and columns is not rows:
                sums[columns.nodes, rows.clusters] += distance.T @ rows.member
        total += float(_scores(row_sums, cluster[rows.nodes], sizes).sum())
    return total / len(x)


def _precision(sizes: NDArray[np.intp]) -> type[np.floating[Any]]:
    """Choose float32 if nine nodes in ten are in large clusters, measured from centres nearby."""
    return np.float32 if sizes[sizes >= _LARGE].sum() >= 0.9 * sizes.sum() else np.float64


def _standardised(z: NDArray[Any]) -> NDArray[np.float64]:
    """Shift and scale, which leaves a silhouette as it is, into the range of float32."""
    centred: NDArray[np.float64] = z - z.mean(axis=0, dtype=np.float64)
    largest = np.abs(centred).max(initial=0.0)
    if largest > 0:
        centred /= largest
    return centred


def _blocks(
    cluster: NDArray[np.intp], sizes: NDArray[np.intp], dtype: np.dtype[Any]
) -> list[_Block]:
    """Cut the sorted nodes into blocks; a large cluster starts one, small ones share."""
    n = len(cluster)
    large = (np.cumsum(sizes) - sizes)[sizes >= _LARGE]
    cuts = np.unique(np.concatenate([np.arange(0, n, _BLOCK), large, [n]])).tolist()
    blocks = []
    for start, stop in pairwise(cuts):
        clusters = slice(int(cluster[start]), int(cluster[stop - 1]) + 1)
        of_block = np.arange(clusters.start, clusters.stop)
        member = (cluster[start:stop, None] == of_block).astype(dtype)
        blocks.append(_Block(slice(start, stop), clusters, member))
    return blocks


def _extend(x: Floats, origin: Floats, out: Floats) -> None:
    """Write the rows [y, 1, ‖y‖²] of y = x - origin to `out`, shape (n, d + 2)."""
    y = out[:, :-2]
    np.subtract(x, origin, out=y)
    out[:, -2] = 1.0
    np.einsum("ij,ij->i", y, y, out=out[:, -1])


def _as_left(right: Floats) -> Floats:
    """Turn rows [y, 1, ‖y‖²] into [-2y, ‖y‖², 1]: left @ right.T are squared distances."""
    return np.concatenate([-2 * right[:, :-2], right[:, :-3:-1]], axis=1)


def _distances(left: Floats, right: Floats, out: Floats) -> None:
    np.matmul(left, right.T, out=out)
    np.maximum(out, np.zeros(out.shape[1], out.dtype), out=out)  # three times as fast as with 0
    np.sqrt(out, out=out)


def _scores(
    sums: NDArray[np.float64], cluster: NDArray[np.intp], sizes: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Silhouettes of some nodes from their distance sums to every cluster, shape (nodes, k)."""
    node = np.arange(len(sums))
    own_size = sizes[cluster]
    own = sums[node, cluster] / np.maximum(own_size - 1, 1)
    means = sums / sizes
    means[node, cluster] = np.inf
    other = means.min(axis=1)
    widest = np.maximum(own, other)
    counted = (own_size > 1) & (widest > 0)
    scores = np.zeros(len(sums))
    np.divide(other - own, widest, out=scores, where=counted)
    return scores
