"""K-Means on points drawn from the mixture, to hold the closed form against."""

from __future__ import annotations

import numpy as np

from openima.metrics.accuracy import OpenWorldAccuracy, open_world_accuracy
from openima.predict.clustering import KMeansClustering


def simulate(
    gamma: float, alpha: float, *, dimension: int, n: int = 20_000, seed: int = 0
) -> OpenWorldAccuracy:
    """Draw `n` points of each class, cluster them, and compare with the classes.

    The axis between the means is a random direction, so that no coordinate gives it away.
    """
    rng = np.random.default_rng(seed)
    axis = rng.standard_normal(dimension)
    axis /= np.linalg.norm(axis)
    seen = rng.standard_normal((n, dimension))
    novel = alpha * (1 + gamma) * axis + gamma * rng.standard_normal((n, dimension))
    points = np.concatenate([seen, novel]).astype(np.float32)
    clusters = KMeansClustering(n_init=3)(points, 2, seed)
    return open_world_accuracy(clusters.labels, np.repeat([0, 1], n), n_seen=1)
