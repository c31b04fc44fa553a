import math

import numpy as np
import pytest
from numpy.typing import NDArray

from openima.predict import membership
from openima.predict.membership import Membership


def cloud(n: int = 30) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.float32]]:
    """Points, their groups and the centres of these."""
    rng = np.random.default_rng(0)
    groups = np.arange(n) % 3
    z = (rng.standard_normal((3, 4))[groups] + 0.3 * rng.standard_normal((n, 4))).astype(np.float32)
    centres = np.stack([z[groups == g].mean(axis=0) for g in range(3)])
    return z, groups, centres


@pytest.mark.parametrize("chunk", [7, 1 << 16])
def test_clusters_score_by_squared_distance_over_its_mean(
    chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(membership, "CHUNK", chunk)
    z, groups, centres = cloud()
    found = Membership.by_clusters(z, groups, centres)
    own = [math.dist(row, centres[g]) ** 2 for row, g in zip(z, groups, strict=True)]
    assert found.temperature == pytest.approx(sum(own) / len(own), rel=1e-6)
    scores = found.scores(z, None, None)
    for i, row in enumerate(z):
        weights = [math.exp(-(math.dist(row, c) ** 2) / found.temperature) for c in centres]
        np.testing.assert_allclose(np.exp(scores[i]), np.divide(weights, sum(weights)), rtol=1e-5)
    nearest = [min(range(3), key=lambda g: math.dist(row, centres[g])) for row in z]
    assert found.groups(scores, None).tolist() == nearest


def test_nodes_on_their_centres_are_certain() -> None:
    centres = np.eye(3, dtype=np.float32)
    found = Membership.by_clusters(centres[[0, 1, 2, 2]], np.array([0, 1, 2, 2]), centres)
    np.testing.assert_array_equal(np.exp(found.scores(centres, None, None)), np.eye(3))


def test_a_group_without_nodes_gets_none() -> None:
    centres = np.eye(3, dtype=np.float32)
    found = Membership.by_clusters(centres[[0, 1]] + np.float32(0.1), np.array([0, 1]), centres)
    scores = found.scores(centres, None, None)
    assert np.isneginf(scores[:, 2]).all()
    assert np.exp(scores).sum(axis=1) == pytest.approx(1.0)


def test_a_head_gives_the_softmax_of_its_outputs() -> None:
    logits = np.array([[1.0, -2.0], [0.0, 3.0]], dtype=np.float32)
    z = np.zeros((2, 4), np.float32)
    scores = Membership().scores(z, logits, None)
    np.testing.assert_allclose(np.exp(scores), np.exp(logits) / np.exp(logits).sum(1)[:, None])
    assert Membership().groups(scores, None).tolist() == [0, 1]
    with pytest.raises(ValueError, match="outputs of a head"):
        Membership().scores(z, None, None)


def test_a_detector_decides_by_its_threshold_and_shares_the_rest() -> None:
    """Two seen groups by the head, three new ones by their centres, one of them empty."""
    rng = np.random.default_rng(1)
    z = rng.standard_normal((20, 4)).astype(np.float32)
    logits = rng.standard_normal((20, 2)).astype(np.float32)
    novelty = rng.random(20).astype(np.float32)
    new = novelty > 0.6
    groups = np.where(new, 2 + np.arange(20) % 2, logits.argmax(axis=1))
    found = Membership.by_rejection(z, groups, novelty, n_seen=2, n_groups=5, threshold=0.6)
    assert found.centres is not None
    for g in (2, 3):
        np.testing.assert_allclose(found.centres[g - 2], z[groups == g].mean(axis=0), rtol=1e-5)
    scores = found.scores(z, logits, novelty)
    p_new = 1 / (1 + np.exp(-(novelty - 0.6) / novelty.std()))
    np.testing.assert_allclose(np.exp(scores[:, 2:]).sum(axis=1), p_new, rtol=1e-5)
    np.testing.assert_allclose(
        np.exp(scores[:, :2]) / (1 - p_new)[:, None],
        np.exp(logits) / np.exp(logits).sum(1)[:, None],
        rtol=1e-5,
    )
    decided = found.groups(scores, novelty)
    assert ((decided >= 2) == new).all()
    assert (decided[~new] == logits[~new].argmax(axis=1)).all()
    assert set(decided[new]) <= {2, 3}


def test_a_detector_that_rejected_nobody_can_reject_others() -> None:
    z, logits = np.eye(2, dtype=np.float32), np.eye(2, dtype=np.float32)
    novelty = np.zeros(2, dtype=np.float32)
    found = Membership.by_rejection(
        z, np.array([0, 1]), novelty, n_seen=2, n_groups=4, threshold=0.5
    )
    scores = found.scores(z, logits, novelty + 1)
    assert np.exp(scores).sum(axis=1) == pytest.approx(1.0)
    assert found.groups(scores, novelty + 1).tolist() == [2, 2]
