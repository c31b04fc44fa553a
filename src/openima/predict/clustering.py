"""Clusterings of the embeddings, behind one small protocol."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import normalize

Embeddings = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Clusters:
    """A clustering of n rows: `labels` (n,), `distances` (n,) to the own centre, `centres`."""

    labels: NDArray[np.int64]
    distances: NDArray[np.float32]
    centres: Embeddings


class Clustering(Protocol):
    """Anything that puts rows into `n_clusters` groups; the same seed gives the same groups."""

    def __call__(self, z: Embeddings, n_clusters: int, seed: int) -> Clusters:
        """Group the rows of `z`."""
        ...


@dataclass(frozen=True)
class KMeansClustering:
    """Lloyd's K-Means from k-means++ starts, the best of `n_init`."""

    n_init: int = 10

    def __call__(self, z: Embeddings, n_clusters: int, seed: int) -> Clusters:
        """Group the rows of `z`; the centres are the means of their clusters."""
        model = KMeans(n_clusters, n_init=self.n_init, random_state=_seed(seed)).fit(z)
        return _around_centres(z, model.labels_, model.cluster_centers_)


@dataclass(frozen=True)
class MiniBatchKMeansClustering:
    """K-Means on batches, for graphs whose embeddings are many; settings of the paper's code."""

    batch_size: int = 2_048_000
    n_init: int = 10
    max_no_improvement: int = 10

    def __call__(self, z: Embeddings, n_clusters: int, seed: int) -> Clusters:
        """Group the rows of `z` by their nearest centre."""
        model = MiniBatchKMeans(
            n_clusters,
            batch_size=min(self.batch_size, len(z)),
            n_init=self.n_init,
            max_no_improvement=self.max_no_improvement,
            random_state=_seed(seed),
        ).fit(z)
        return _around_centres(z, model.labels_, model.cluster_centers_)


@dataclass(frozen=True)
class SphericalKMeansClustering:
    """K-Means by direction: rows are scaled to unit length and so are the centres."""

    n_init: int = 10
    max_iter: int = 100

    def __call__(self, z: Embeddings, n_clusters: int, seed: int) -> Clusters:
        """Group the rows of `z` by the largest cosine to a centre; distances are 1 - cosine."""
        unit = normalize(z)
        starts = np.random.default_rng(seed).integers(2**31, size=self.n_init)
        fits = [self._fit(unit, n_clusters, int(start)) for start in starts]
        return min(fits, key=lambda fit: float(fit.distances.sum(dtype=np.float64)))

    def _fit(self, unit: Embeddings, n_clusters: int, seed: int) -> Clusters:
        centres = KMeans(n_clusters, n_init=1, max_iter=1, random_state=seed).fit(unit)
        directions = normalize(centres.cluster_centers_)
        labels = np.full(len(unit), -1)
        for _ in range(self.max_iter):
            cosine = unit @ directions.T
            previous, labels = labels, cosine.argmax(1)
            if np.array_equal(previous, labels):
                break
            members = (np.ones(len(unit), dtype=unit.dtype), labels, np.arange(len(unit) + 1))
            sums = sp.csr_array(members, shape=(len(unit), n_clusters)).T @ unit
            filled = np.bincount(labels, minlength=n_clusters) > 0
            directions[filled] = normalize(sums[filled])
        return Clusters(labels, 1.0 - cosine.max(1), directions)


@dataclass(frozen=True)
class GaussianMixtureClustering:
    """A mixture of Gaussians, so that clusters may differ in size and spread."""

    covariance: str = "diag"
    n_init: int = 1
    regularisation: float = 1e-6

    def __call__(self, z: Embeddings, n_clusters: int, seed: int) -> Clusters:
        """Group the rows of `z` by the likeliest component; distances are to its mean."""
        model = GaussianMixture(
            n_clusters,
            covariance_type=self.covariance,
            n_init=self.n_init,
            reg_covar=self.regularisation,
            random_state=_seed(seed),
        )
        labels = model.fit_predict(z.astype(np.float64))
        return _around_centres(z, labels, model.means_)


def _around_centres(z: Embeddings, labels: NDArray[np.int32], centres: Embeddings) -> Clusters:
    centres = centres.astype(np.float32)
    distances = np.linalg.norm(z - centres[labels], axis=1)
    return Clusters(labels.astype(np.int64), distances.astype(np.float32), centres)


def _seed(seed: int) -> int:
    return seed % 2**32  # what scikit-learn accepts
