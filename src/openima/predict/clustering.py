"""Clusterings of the embeddings, behind one small protocol."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import normalize

from openima.errors import InputError
from openima.predict.kmeans import kmeans

Embeddings = NDArray[np.float32]

_ROWS = 1 << 16  # whose distances are measured in one go


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

    def __post_init__(self) -> None:
        """Refuse counts below one."""
        _refuse_below_one(n_init=self.n_init)

    def __call__(self, z: Embeddings, n_clusters: int, seed: int) -> Clusters:
        """Group the rows of `z`; the centres are the means of their clusters."""
        _refuse_more_than_rows(n_clusters, z)
        fit = kmeans(z, n_clusters, self.n_init, np.random.default_rng(seed))
        return _around_centres(z, fit.labels, fit.centres)


@dataclass(frozen=True)
class MiniBatchKMeansClustering:
    """K-Means on batches, for graphs whose embeddings are many; settings of the paper's code."""

    batch_size: int = 2_048_000
    n_init: int = 10
    max_no_improvement: int = 10

    def __post_init__(self) -> None:
        """Refuse counts below one."""
        _refuse_below_one(
            batch_size=self.batch_size,
            n_init=self.n_init,
            max_no_improvement=self.max_no_improvement,
        )

    def __call__(self, z: Embeddings, n_clusters: int, seed: int) -> Clusters:
        """Group the rows of `z` by their nearest centre."""
        model = MiniBatchKMeans(
            n_clusters,
            batch_size=min(self.batch_size, len(z)),
            n_init=self.n_init,
            max_no_improvement=self.max_no_improvement,
            random_state=_seed(seed),
        )
        model = _fitted(model, z)
        return _around_centres(z, model.labels_, model.cluster_centers_)


@dataclass(frozen=True)
class SphericalKMeansClustering:
    """K-Means by direction: rows are scaled to unit length and so are the centres."""

    n_init: int = 10
    max_iter: int = 100

    def __post_init__(self) -> None:
        """Refuse counts below one."""
        _refuse_below_one(n_init=self.n_init, max_iter=self.max_iter)

    def __call__(self, z: Embeddings, n_clusters: int, seed: int) -> Clusters:
        """Group the rows of `z` by the largest cosine to a centre; distances are 1 - cosine."""
        unit = normalize(z)
        starts = np.random.default_rng(seed).integers(2**31, size=self.n_init)
        fits = [self._fit(unit, n_clusters, int(start)) for start in starts]
        return min(fits, key=lambda fit: float(fit.distances.sum(dtype=np.float64)))

    def _fit(self, unit: Embeddings, n_clusters: int, seed: int) -> Clusters:
        start = _fitted(KMeans(n_clusters, n_init=1, max_iter=1, random_state=seed), unit)
        directions = normalize(start.cluster_centers_)
        labels = np.full(len(unit), -1)
        for _ in range(self.max_iter):
            previous, labels = labels, (unit @ directions.T).argmax(1)
            if np.array_equal(previous, labels):
                break
            members = (np.ones(len(unit), dtype=unit.dtype), labels, np.arange(len(unit) + 1))
            sums = sp.csr_array(members, shape=(len(unit), n_clusters)).T @ unit
            filled = np.bincount(labels, minlength=n_clusters) > 0
            directions[filled] = normalize(sums[filled])
        cosine = np.einsum("ij,ij->i", unit, directions[labels])
        return Clusters(labels, np.maximum(1.0 - cosine, 0.0), directions)


@dataclass(frozen=True)
class GaussianMixtureClustering:
    """A mixture of Gaussians, so that clusters may differ in size and spread."""

    covariance: Literal["full", "tied", "diag", "spherical"] = "diag"
    n_init: int = 1
    regularisation: float = 1e-6

    def __post_init__(self) -> None:
        """Refuse settings without a meaning."""
        _refuse_below_one(n_init=self.n_init)
        if self.covariance not in ("full", "tied", "diag", "spherical"):
            raise InputError(
                "unknown covariance",
                expected="full, tied, diag or spherical",
                got=repr(self.covariance),
            )
        if not self.regularisation > 0:
            raise InputError("regularisation must be positive", got=str(self.regularisation))

    def __call__(self, z: Embeddings, n_clusters: int, seed: int) -> Clusters:
        """Group the rows of `z` by the likeliest component; distances are to its mean."""
        model = GaussianMixture(
            n_clusters,
            covariance_type=self.covariance,
            n_init=self.n_init,
            reg_covar=self.regularisation,
            random_state=_seed(seed),
        )
        rows = z.astype(np.float64)
        labels = _fitted(model, rows).predict(rows)
        return _around_centres(z, labels, model.means_)


def _fitted(model: Any, z: NDArray[Any]) -> Any:
    """Fit a model of scikit-learn to the rows of `z`.

    Fewer distinct rows than clusters leave some clusters empty, and a mixture may stop early;
    both are groups that can be used, so what scikit-learn warns of is not passed on.
    """
    wanted = model.get_params().get("n_clusters") or model.get_params()["n_components"]
    _refuse_more_than_rows(wanted, z)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(z)


def _refuse_more_than_rows(n_clusters: int, z: NDArray[Any]) -> None:
    if n_clusters > len(z):
        raise InputError(
            f"{len(z):,} rows cannot be put into {n_clusters:,} clusters",
            expected="at most as many classes as nodes",
            remedy="lower n_novel",
        )


def _refuse_below_one(**counts: int) -> None:
    for name, count in counts.items():
        if count < 1:
            raise InputError(f"{name} must be at least 1", got=str(count))


def _around_centres(
    z: Embeddings, labels: NDArray[np.integer[Any]], centres: Embeddings
) -> Clusters:
    centres = centres.astype(np.float32)
    distances = np.empty(len(z), dtype=np.float32)
    for start in range(0, len(z), _ROWS):
        rows = slice(start, start + _ROWS)
        distances[rows] = np.linalg.norm(z[rows] - centres[labels[rows]], axis=1)
    return Clusters(labels.astype(np.int64), distances, centres)


def _seed(seed: int) -> int:
    return seed % 2**32  # what scikit-learn accepts


CLUSTERINGS: dict[str, type[Clustering]] = {
    "kmeans": KMeansClustering,
    "mini-batch-kmeans": MiniBatchKMeansClustering,
    "spherical-kmeans": SphericalKMeansClustering,
    "gaussian-mixture": GaussianMixtureClustering,
}
"""Every clustering, by the name that settings know it by."""
