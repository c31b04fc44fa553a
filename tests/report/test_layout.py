from __future__ import annotations

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from openima.report.layout import layout, sample


def test_all_nodes_are_shown_if_they_fit() -> None:
    assert sample(np.zeros(7, dtype=np.int64), limit=7).tolist() == list(range(7))


def test_a_sample_holds_every_class_and_the_kept_nodes() -> None:
    rng = np.random.default_rng(0)
    classes = np.repeat([0, 1, 3, 4], [5000, 900, 40, 1])
    rng.shuffle(classes)
    keep = np.array([5, 17, 17, 99])
    rows = sample(classes, limit=500, keep=keep)
    assert len(rows) <= 500
    assert (np.diff(rows) > 0).all()
    assert set(keep.tolist()) <= set(rows.tolist())
    shown = np.bincount(classes[rows])
    assert shown[0] > 350
    assert shown[1] > 65
    assert shown[3] > 12  # its share alone would be three
    assert shown[4] == 1
    np.testing.assert_array_equal(rows, sample(classes, limit=500, keep=keep))
    assert not np.array_equal(rows, sample(classes, limit=500, keep=keep, seed=1))


def test_more_classes_than_places_still_show_one_node_each() -> None:
    classes = np.arange(50).repeat(3)
    rows = sample(classes, limit=20)
    assert set(classes[rows].tolist()) == set(range(50))


def test_neighbours_stay_neighbours() -> None:
    rng = np.random.default_rng(0)
    classes = np.arange(300) % 6
    z = rng.normal(size=(6, 40))[classes] + 0.3 * rng.normal(size=(300, 40))
    flat = layout(z)
    assert flat.shape == (300, 2)
    assert flat.dtype == np.float32
    assert np.abs(flat).max() == 1
    near = NearestNeighbors(n_neighbors=6).fit(flat).kneighbors(return_distance=False)
    assert (classes[near] == classes[:, None]).mean() > 0.98
    assert layout(z).tobytes() == flat.tobytes()


@pytest.mark.parametrize(
    "z",
    [
        np.empty((0, 3)),
        np.ones((1, 3)),
        np.eye(2),
        np.eye(4)[:, :3],
        np.ones((30, 5)),
        np.arange(12.0)[:, None],
        np.repeat(np.eye(3), 20, axis=0),
    ],
    ids=["none", "one", "two", "four", "all the same", "one dimension", "many the same"],
)
def test_odd_embeddings_have_a_place(z: np.ndarray) -> None:
    flat = layout(z)
    assert flat.shape == (len(z), 2)
    assert np.isfinite(flat).all()
    assert (np.abs(flat) <= 1).all()
