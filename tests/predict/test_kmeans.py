from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from openima.predict import kmeans as module
from openima.predict.kmeans import Points, improved, kmeans

Rows = NDArray[np.float32]


def blobs(n: int = 600, d: int = 8, k: int = 5, spread: float = 0.7, seed: int = 0) -> Rows:
    """Draw overlapping groups, so that starts end in different places."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((k, d))
    return (centres[rng.integers(k, size=n)] + spread * rng.standard_normal((n, d))).astype("f4")


def rounds_by_hand(x: Rows, centres: NDArray[np.float64]) -> NDArray[np.float64]:
    """Move centres to the means of their rows, a row at a time, until nothing moves."""
    while True:
        sums, counts = np.zeros_like(centres), np.zeros(len(centres))
        for row in x.astype(np.float64):
            nearest = np.argmin([((row - c) ** 2).sum() for c in centres])
            sums[nearest] += row
            counts[nearest] += 1
        moved = sums / counts[:, None]
        if np.allclose(moved, centres, rtol=0, atol=1e-12):
            return moved
        centres = moved


@pytest.mark.parametrize("at_once", [1 << 19, 3000])  # in one chunk and in several
def test_rounds_are_those_of_a_loop_over_rows(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_AT_ONCE", at_once)
    monkeypatch.setattr(module, "TOLERANCE", 0.0)
    x = blobs()
    points = Points(x)
    starts = torch.from_numpy(np.stack([x[:5], x[5:10]])) - points.mean
    found = improved(points, starts)
    expected = [rounds_by_hand(x, x[first : first + 5].astype(np.float64)) for first in (0, 5)]
    spreads = [((x[:, None] - c) ** 2).sum(2).min(1).sum() for c in expected]
    best = int(np.argmin(spreads))
    np.testing.assert_allclose(found.centres, expected[best], atol=1e-5)
    assert found.inertia == pytest.approx(spreads[best], rel=1e-5)


def test_from_the_same_centres_it_ends_where_scikit_learn_does() -> None:
    x = blobs(n=2000, d=16, k=9)
    for first in range(0, 90, 9):
        points = Points(x)
        own = improved(points, (torch.from_numpy(x[first : first + 9]) - points.mean)[None])
        model = KMeans(9, init=x[first : first + 9], n_init=1).fit(x)
        assert own.inertia == pytest.approx(model.inertia_, rel=1e-3)
        assert (own.labels == model.labels_).mean() > 0.99


def test_ten_starts_are_as_good_as_scikit_learns() -> None:
    ours, theirs = [], []
    for seed in range(10):
        x = blobs(n=400, k=12, seed=seed)
        ours.append(kmeans(x, 12, 10, np.random.default_rng(seed)).inertia)
        theirs.append(KMeans(12, n_init=10, random_state=seed).fit(x).inertia_)
    assert np.mean(ours) < 1.005 * np.mean(theirs)


def test_first_centres_are_far_apart() -> None:
    """With k-means++ nearly every start has a row of each of nine distant groups."""
    rng = np.random.default_rng(0)
    x = (100.0 * np.eye(9)[np.repeat(np.arange(9), 50)] + rng.standard_normal((450, 9))).astype(
        "f4"
    )
    starts = module._starts(Points(x), 9, 40, np.random.default_rng(1)) + Points(x).mean
    found = [len(set(of_start.argmax(1).tolist())) for of_start in starts]
    assert np.mean(np.array(found) == 9) > 0.95


def test_starts_one_after_the_other_are_as_good(monkeypatch: pytest.MonkeyPatch) -> None:
    x = blobs()
    at_once = kmeans(x, 5, 10, np.random.default_rng(3))
    monkeypatch.setattr(module, "_DISTANCES", 1)
    apart = kmeans(x, 5, 10, np.random.default_rng(3))
    assert apart.inertia == pytest.approx(at_once.inertia, rel=1e-3)


@pytest.mark.parametrize("offset", [0.0, 100.0])
def test_near_rows_far_from_zero_are_told_apart(offset: float) -> None:
    truth = np.repeat([0, 1], 50)
    x = (np.stack([0.01 * truth, np.zeros(100)], 1) + offset).astype("f4")
    labels = kmeans(x, 2, 3, np.random.default_rng(0)).labels
    assert len(set(zip(truth.tolist(), labels.tolist(), strict=True))) == 2


def test_rows_as_near_to_two_centres_belong_to_one() -> None:
    x = np.array([[-1.0], [0.0], [1.0]], dtype="f4")
    points = Points(x)
    found = improved(points, torch.tensor([[[-1.0], [1.0]]]))
    assert np.bincount(found.labels).sum() == 3
    assert found.inertia == pytest.approx(0.5)
    same = improved(Points(np.ones((4, 2), dtype="f4")), torch.zeros(2, 3, 2))
    assert same.inertia == 0.0
    assert len(set(same.labels.tolist())) == 1


def test_a_centre_without_rows_moves_to_the_farthest_row() -> None:
    x = np.array([[0.0], [0.1], [0.2], [9.0], [9.1], [30.0]], dtype="f4")
    points = Points(x)
    starts = torch.tensor([[[0.1], [9.0], [1e4]]]) - points.mean
    found = improved(points, starts)
    assert sorted(np.bincount(found.labels).tolist()) == [1, 2, 3]


def test_as_many_groups_as_rows_and_one_group() -> None:
    x = blobs(n=12)
    assert sorted(kmeans(x, 12, 2, np.random.default_rng(0)).labels.tolist()) == list(range(12))
    whole = kmeans(x, 1, 2, np.random.default_rng(0))
    np.testing.assert_allclose(whole.centres[0], x.mean(0), atol=1e-5)
    assert whole.inertia == pytest.approx(float(((x - x.mean(0)) ** 2).sum()), rel=1e-5)


def test_products_are_not_rounded_where_training_rounds_them() -> None:
    x = blobs(n=500)
    plain = kmeans(x, 5, 3, np.random.default_rng(0))
    torch.set_float32_matmul_precision("medium")
    try:
        rounded = kmeans(x, 5, 3, np.random.default_rng(0))
    finally:
        torch.set_float32_matmul_precision("highest")
    assert rounded.centres.tobytes() == plain.centres.tobytes()
