"""A graph for points that come without one: every point listens to those nearest to it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

from openima.errors import InputError


def knn_edges(points: ArrayLike, k: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """List the edges from the `k` nearest other points (Euclidean) of each of N points to it.

    `points` is a dense matrix, one row a point. The result is `(sources, targets)`, N·k each: edges
    `k * i` to `k * i + k - 1` arrive at point `i`, the nearest source first. A point is never
    its own neighbour, not even where others lie in the same place. Nearness is not mutual:
    build the graph with `directed=False` to have each link in both directions.
    """
    matrix = np.asarray(points)
    if matrix.ndim != 2 or matrix.dtype.kind not in "fiub":
        raise InputError(
            "points are a dense matrix of numbers, one row a point",
            got=f"type {matrix.dtype} and shape {matrix.shape}",
        )
    if matrix.dtype not in (np.float32, np.float64):  # what the fast search works on
        matrix = matrix.astype(np.float64)
    n_points = len(matrix)
    if not 1 <= k < n_points:
        raise InputError(
            f"a point among {n_points:,} cannot have {k:,} nearest neighbours",
            expected=f"k from 1 to {n_points - 1:,}" if n_points > 1 else "two points or more",
            remedy="choose another k, or give more points",
        )
    if not np.isfinite(matrix).all():
        row = int(np.flatnonzero(~np.isfinite(matrix).all(axis=1))[0])
        raise InputError(
            f"point {row:,} has a coordinate that is not a finite number",
            remedy="fill in or drop missing values first",
        )
    # Imported late: scikit-learn takes a second to load, and few graphs need this.
    search = NearestNeighbors(n_neighbors=k).fit(matrix)
    # One thread: which of two equally near points is taken would else depend on their number.
    with threadpool_limits(1):
        nearest = search.kneighbors(return_distance=False)  # of the fitted points, itself excluded
    return nearest.astype(np.int64, copy=False).reshape(-1), np.repeat(np.arange(n_points), k)
