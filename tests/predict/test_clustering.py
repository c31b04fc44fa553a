from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from openima.errors import InputError
from openima.metrics import validation_accuracy
from openima.predict.clustering import (
    Clustering,
    Clusters,
    Embeddings,
    GaussianMixtureClustering,
    KMeansClustering,
    MiniBatchKMeansClustering,
    SphericalKMeansClustering,
)

ALL: list[Clustering] = [
    KMeansClustering(),
    KMeansClustering(n_init=1),
    MiniBatchKMeansClustering(),
    MiniBatchKMeansClustering(batch_size=64),
    SphericalKMeansClustering(),
    GaussianMixtureClustering(),
    GaussianMixtureClustering("full", n_init=3),
    GaussianMixtureClustering("tied"),
    GaussianMixtureClustering("spherical"),
]
every = pytest.mark.parametrize("clustering", ALL, ids=str)
Labels = NDArray[np.int64]


def three_directions(n: int = 150, seed: int = 0) -> tuple[Embeddings, Labels]:
    """Unit rows around three directions at right angles."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, n)
    rows = np.eye(8)[labels] + 0.1 * rng.standard_normal((n, 8))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32), labels


@every
def test_well_separated_groups_are_found(clustering: Clustering) -> None:
    z, labels = three_directions()
    found = clustering(z, 3, seed=0)
    assert validation_accuracy(found.labels, labels) == 1.0
    assert found.labels.dtype == np.int64
    assert found.distances.dtype == found.centres.dtype == np.float32
    assert (found.labels.shape, found.distances.shape, found.centres.shape) == (
        (150,),
        (150,),
        (3, 8),
    )


@every
@pytest.mark.parametrize("seed", [0, 7, 2406525885, 2**40 + 7])
def test_the_same_seed_gives_the_same_bytes(clustering: Clustering, seed: int) -> None:
    z = np.random.default_rng(1).standard_normal((90, 4)).astype(np.float32)
    once, again = clustering(z, 5, seed), clustering(z.copy(), 5, seed)
    for name in ("labels", "distances", "centres"):
        assert getattr(once, name).tobytes() == getattr(again, name).tobytes()


@every
def test_another_seed_starts_elsewhere(clustering: Clustering) -> None:
    z = np.random.default_rng(1).standard_normal((90, 4)).astype(np.float32)
    assert len({clustering(z, 5, seed).labels.tobytes() for seed in range(8)}) > 1


def to_centres(z: Embeddings, found: Clusters) -> NDArray[np.float64]:
    own = found.centres[found.labels].astype(np.float64)
    distances: NDArray[np.float64] = np.sqrt(((z.astype(np.float64) - own) ** 2).sum(1))
    return distances


@every
def test_distances_are_to_the_own_centre(clustering: Clustering) -> None:
    z = np.random.default_rng(1).standard_normal((200, 4)).astype(np.float32)
    found = clustering(z, 6, seed=3)
    if isinstance(clustering, SphericalKMeansClustering):
        unit = z / np.linalg.norm(z, axis=1, keepdims=True)
        expected = 1.0 - (unit * found.centres[found.labels]).sum(1)
        np.testing.assert_allclose(np.linalg.norm(found.centres, axis=1), 1.0, rtol=1e-6)
    else:
        expected = to_centres(z, found)
    np.testing.assert_allclose(found.distances, expected, atol=1e-5)


def test_ten_starts_of_k_means_are_better_than_one() -> None:
    z = np.random.default_rng(2).standard_normal((300, 8)).astype(np.float32)
    one, ten = ((KMeansClustering(n)(z, 7, 0).distances ** 2).sum() for n in (1, 10))
    assert ten < one


def test_the_paper_seeds_beyond_32_bits_are_folded_for_scikit_learn() -> None:
    z = np.random.default_rng(2).standard_normal((300, 8)).astype(np.float32)
    folded, plain = (MiniBatchKMeansClustering()(z, 7, seed) for seed in (2**32 + 5, 5))
    assert folded.labels.tolist() == plain.labels.tolist()


def test_centres_of_k_means_are_means() -> None:
    z = np.random.default_rng(2).standard_normal((300, 8)).astype(np.float32)
    found = KMeansClustering()(z, 4, 0)
    means = [z[found.labels == c].mean(0) for c in range(4)]
    np.testing.assert_allclose(found.centres, means, atol=1e-4)


def test_spherical_k_means_looks_at_directions_alone() -> None:
    z, labels = three_directions()
    lengths = np.random.default_rng(3).lognormal(0.0, 2.0, (len(z), 1)).astype(np.float32)
    stretched = SphericalKMeansClustering()(z * lengths, 3, 0)
    assert validation_accuracy(stretched.labels, labels) == 1.0
    assert validation_accuracy(KMeansClustering()(z * lengths, 3, 0).labels, labels) < 0.9
    assert stretched.labels.tolist() == SphericalKMeansClustering()(z, 3, 0).labels.tolist()


def test_spherical_k_means_stops_where_nothing_improves() -> None:
    z = np.random.default_rng(1).standard_normal((200, 4)).astype(np.float32)
    found = SphericalKMeansClustering()(z, 5, 0)
    unit = z / np.linalg.norm(z, axis=1, keepdims=True)
    assert found.labels.tolist() == (unit @ found.centres.T).argmax(1).tolist()
    sums = np.stack([unit[found.labels == c].sum(0) for c in range(5)])
    directions = sums / np.linalg.norm(sums, axis=1, keepdims=True)
    np.testing.assert_allclose(found.centres, directions, atol=1e-5)


def test_spherical_k_means_takes_the_best_of_its_starts() -> None:
    z = np.random.default_rng(1).standard_normal((200, 4)).astype(np.float32)
    one, ten = (SphericalKMeansClustering(n_init=n)(z, 9, 0).distances.sum() for n in (1, 10))
    assert ten < one


def test_distances_fit_centres_also_where_the_rounds_run_out() -> None:
    z = np.random.default_rng(1).standard_normal((200, 4)).astype(np.float32)
    found = SphericalKMeansClustering(n_init=1, max_iter=1)(z, 5, 0)
    unit = z / np.linalg.norm(z, axis=1, keepdims=True)
    expected = 1.0 - (unit * found.centres[found.labels]).sum(1)
    np.testing.assert_allclose(found.distances, expected, atol=1e-5)


def test_a_mixture_finds_groups_of_different_spread() -> None:
    """A small dense group inside the reach of a wide one, which K-Means splits."""
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], [600, 100])
    spread = np.where(labels == 0, 3.0, 0.2)[:, None]
    rows = rng.standard_normal((700, 3)) * spread + labels[:, None] * 3.0
    z = rows.astype(np.float32)
    k_means = validation_accuracy(KMeansClustering()(z, 2, 0).labels, labels)
    mixture = validation_accuracy(GaussianMixtureClustering()(z, 2, 0).labels, labels)
    assert mixture > 0.95
    assert k_means < 0.9


@pytest.mark.parametrize(
    ("plain", "changed"),
    [
        (KMeansClustering(), KMeansClustering(n_init=1)),
        (MiniBatchKMeansClustering(), MiniBatchKMeansClustering(batch_size=32)),
        (MiniBatchKMeansClustering(), MiniBatchKMeansClustering(n_init=1)),
        (
            MiniBatchKMeansClustering(batch_size=32),
            MiniBatchKMeansClustering(batch_size=32, max_no_improvement=1),
        ),
        (SphericalKMeansClustering(), SphericalKMeansClustering(n_init=1)),
        (SphericalKMeansClustering(), SphericalKMeansClustering(max_iter=1)),
        (GaussianMixtureClustering(), GaussianMixtureClustering("full")),
        (GaussianMixtureClustering(), GaussianMixtureClustering("tied")),
        (GaussianMixtureClustering(), GaussianMixtureClustering("spherical")),
        (GaussianMixtureClustering(), GaussianMixtureClustering(n_init=5)),
        (GaussianMixtureClustering(), GaussianMixtureClustering(regularisation=0.5)),
    ],
    ids=str,
)
def test_every_setting_does_something(plain: Clustering, changed: Clustering) -> None:
    z = np.random.default_rng(1).standard_normal((300, 4)).astype(np.float32)
    before, after = ([how(z, 6, s).centres.tobytes() for s in range(4)] for how in (plain, changed))
    assert before != after


@every
def test_equal_rows_are_no_trouble(clustering: Clustering) -> None:
    """A collapsed encoder must end in poor figures, not in a warning or an error."""
    for z in (np.zeros((40, 4), np.float32), np.full((40, 4), 0.5, np.float32)):
        found = clustering(z, 3, seed=0)
        assert found.labels.shape == (40,)
        assert set(found.labels.tolist()) <= {0, 1, 2}
        assert np.isfinite(found.distances).all()


@every
def test_as_many_clusters_as_rows_are_the_most(clustering: Clustering) -> None:
    z = np.eye(4, dtype=np.float32)
    assert set(clustering(z, 4, 0).labels.tolist()) <= {0, 1, 2, 3}
    with pytest.raises(InputError, match=r"4 rows cannot be put into 5 clusters.*lower n_novel"):
        clustering(z, 5, 0)


@every
def test_one_cluster_holds_all(clustering: Clustering) -> None:
    z, _ = three_directions()
    assert set(clustering(z, 1, 0).labels.tolist()) == {0}


@pytest.mark.parametrize(
    ("make", "settings", "message"),
    [
        (KMeansClustering, {"n_init": 0}, "n_init must be at least 1. Got 0"),
        (MiniBatchKMeansClustering, {"batch_size": 0}, "batch_size must be at least 1"),
        (MiniBatchKMeansClustering, {"max_no_improvement": -1}, "max_no_improvement must be"),
        (SphericalKMeansClustering, {"max_iter": 0}, "max_iter must be at least 1"),
        (GaussianMixtureClustering, {"n_init": 0}, "n_init must be at least 1"),
        (GaussianMixtureClustering, {"covariance": "round"}, "unknown covariance.*Got 'round'"),
        (GaussianMixtureClustering, {"regularisation": 0.0}, "regularisation must be positive"),
    ],
)
def test_settings_without_a_meaning_are_refused(
    make: Callable[..., Clustering], settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        make(**settings)
