"""Embeddings as a map: which nodes to show, and where in the plane."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE
from threadpoolctl import threadpool_limits

MAX_NODES = 20_000
"""How many nodes a map shows at most, but for those that must be on it."""

_DIM = 30  # t-SNE looks for neighbours among this many principal components
_SLOW = 5_000  # from this many nodes on, coarser and fewer steps: half a minute for 20,000
_SPAN = 1e-12  # embeddings that differ by no more are the same


def sample(
    classes: NDArray[np.int64],
    *,
    limit: int = MAX_NODES,
    keep: NDArray[np.int64] | None = None,
    seed: int = 0,
) -> NDArray[np.int64]:
    """Choose nodes to show, ascending: all if they are at most `limit`.

    Else each class, ids from 0, shape (N,), gets its share of nine tenths of `limit` and an
    equal part of the rest, so that small classes are seen. Nodes of `keep` are always chosen,
    in place of others of their class, and beyond `limit` only if they alone exceed its part.
    """
    n = len(classes)
    if n <= limit:
        return np.arange(n)
    sizes = np.bincount(classes)
    part = max(1, limit // (10 * int(np.count_nonzero(sizes))))
    quota = np.minimum(sizes, part + (limit * 9 // 10) * sizes // n)
    rank = np.random.default_rng(seed).permutation(n)
    if keep is not None:
        keep = np.unique(keep)
        rank[keep] -= n
        np.maximum(quota, np.bincount(classes[keep], minlength=len(sizes)), out=quota)
    order = np.lexsort((rank, classes))
    place = np.arange(n) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return np.sort(order[place < quota[classes[order]]])


def layout(z: NDArray[np.floating], seed: int = 0) -> NDArray[np.float32]:
    """Lay out embeddings, shape (n, d), in the plane, shape (n, 2), within -1 to 1.

    t-SNE on the first principal components, from where they lie in the first two; principal
    components alone for fewer than five nodes. One thread: the same input gives the same bytes.
    """
    z = np.asarray(z, dtype=np.float64)
    z = z - z.mean(axis=0, keepdims=True) if len(z) else z
    if z.size == 0 or np.abs(z).max() <= _SPAN:
        return np.zeros((len(z), 2), dtype=np.float32)
    with threadpool_limits(1):
        low = PCA(min(_DIM, *z.shape), random_state=seed).fit_transform(z)
        low = np.pad(low, ((0, 0), (0, max(0, 2 - low.shape[1]))))
        flat = _tsne(low, seed) if len(low) >= 5 else low[:, :2]
    flat = flat - (flat.max(axis=0) + flat.min(axis=0)) / 2
    return np.asarray(flat / np.abs(flat).max(), dtype=np.float32)


def _tsne(low: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    n = len(low)
    flat = TSNE(
        perplexity=min(30.0, (n - 1) / 3),
        init="pca",
        angle=0.5 if n <= _SLOW else 0.8,
        max_iter=500 if n <= _SLOW else 400,
        random_state=seed,
        n_jobs=1,
    ).fit_transform(low)
    return np.asarray(flat, dtype=np.float64)
