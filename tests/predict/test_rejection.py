from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from openima.errors import InputError
from openima.predict.clustering import Clustering, GaussianMixtureClustering, KMeansClustering
from openima.predict.rejection import RULES, RejectThenCluster
from openima.train.snapshot import Snapshot

Rule: TypeAlias = Literal["mixture", "mean", "quantile", "midpoint"]

N_SEEN, N_NOVEL, N_VAL = 2, 3, 10


def look(novelty: ArrayLike, **changes: Any) -> Snapshot:
    """Make a snapshot whose first ten nodes are for validation, and whose last eight are known.

    Where a node is new, its embedding is one of three distant points, by its number.
    """
    scores = np.asarray(novelty, dtype=np.float32)
    n = len(scores)
    z = np.eye(N_NOVEL, dtype=np.float32)[np.arange(n) % N_NOVEL]
    logits = np.random.default_rng(0).standard_normal((n, N_SEEN)).astype(np.float32)
    snapshot = Snapshot(
        epoch=1,
        z=z,
        logits=logits,
        n_classes=N_SEEN + N_NOVEL,
        clustering=KMeansClustering(2),
        seed=0,
        novelty=scores,
        n_seen=N_SEEN,
        val=np.arange(N_VAL),
        test=np.arange(N_VAL, n - 8),
    )
    return replace(snapshot, **changes)


def two_heaps(n_low: int = 300, n_high: int = 150) -> NDArray[np.float64]:
    """Draw scores of seen and of new nodes; the known nodes at the end score low."""
    rng = np.random.default_rng(0)
    heaps = rng.normal(0.2, 0.05, n_low), rng.normal(0.8, 0.06, n_high), rng.normal(0.1, 0.01, 8)
    return np.concatenate(heaps)


def test_every_rule_is_a_setting() -> None:
    assert set(RULES) == set(get_args(Rule))
    assert RejectThenCluster().threshold == "mixture"


def test_two_heaps_are_parted_where_their_densities_cross() -> None:
    at = np.linspace(0.2, 0.8, 6001)
    low = 2 / 3 / 0.05 * np.exp(-0.5 * ((at - 0.2) / 0.05) ** 2)
    high = 1 / 3 / 0.06 * np.exp(-0.5 * ((at - 0.8) / 0.06) ** 2)
    threshold = RejectThenCluster("mixture").threshold_of(look(two_heaps()))
    assert threshold == pytest.approx(at[np.argmax(high > low)], abs=0.02)


def test_the_upper_heap_is_rejected_even_if_it_is_the_larger() -> None:
    scores = two_heaps(100, 400)
    groups = RejectThenCluster("mixture")(look(scores))
    np.testing.assert_array_equal(groups >= N_SEEN, scores > 0.5)


def test_the_other_rules_are_as_they_say() -> None:
    scores = two_heaps().astype(np.float32).astype(np.float64)
    snapshot, of_test = look(scores), np.sort(scores[N_VAL:-8])
    newest = of_test[-round(0.1 * len(of_test)) :]
    expected: dict[Rule, float] = {
        "mean": scores[:-8].mean(),
        "quantile": np.sort(scores[:N_VAL])[7] * 0.8 + np.sort(scores[:N_VAL])[8] * 0.2,
        "midpoint": (scores[:N_VAL].mean() + newest.mean()) / 2,
    }
    for rule, threshold in expected.items():
        found = RejectThenCluster(rule, kept=0.8).threshold_of(snapshot)
        assert found == pytest.approx(threshold, abs=1e-9)


@pytest.mark.parametrize("rule", get_args(Rule))
def test_only_val_and_test_nodes_decide_on_the_threshold(rule: Rule) -> None:
    scores = two_heaps()
    known = scores.copy()
    known[-8:] = 50.0
    predictor = RejectThenCluster(rule)
    assert predictor.threshold_of(look(scores)) == predictor.threshold_of(look(known))
    changed = scores.copy()
    changed[5:30] += 0.3
    assert predictor.threshold_of(look(scores)) != predictor.threshold_of(look(changed))


@pytest.mark.parametrize("rule", get_args(Rule))
def test_the_scale_of_scores_does_not_matter(rule: Rule) -> None:
    predictor = RejectThenCluster(rule)
    plain, scaled = predictor(look(two_heaps())), predictor(look(3.0 + 20.0 * two_heaps()))
    assert (plain == scaled).mean() > 0.99


def test_kept_says_how_many_validation_nodes_are_not_rejected() -> None:
    scores = np.concatenate([np.linspace(0.0, 1.0, 10), two_heaps()])
    for kept in (0.5, 0.9):
        groups = RejectThenCluster("quantile", kept=kept)(look(scores))
        assert (groups[:N_VAL] < N_SEEN).sum() == round(10 * kept)


def test_kept_nodes_get_the_heads_class_and_rejected_ones_a_cluster() -> None:
    snapshot = look(two_heaps())
    assert snapshot.logits is not None
    groups = RejectThenCluster()(snapshot)
    rejected = np.flatnonzero(two_heaps() > 0.5)
    kept = np.flatnonzero(two_heaps() <= 0.5)
    np.testing.assert_array_equal(groups[kept], snapshot.logits.argmax(1)[kept])
    assert set(groups[rejected].tolist()) == {2, 3, 4}
    for rest in range(N_NOVEL):  # each point of the plane is one cluster
        assert len(set(groups[rejected[rejected % N_NOVEL == rest]].tolist())) == 1


@pytest.mark.parametrize("rule", get_args(Rule))
@pytest.mark.parametrize("clustering", [KMeansClustering(2), GaussianMixtureClustering()])
@pytest.mark.parametrize("n_new", [0, 1, 2, 3])
def test_few_rejected_nodes_make_fewer_clusters(
    rule: Rule, clustering: Clustering, n_new: int
) -> None:
    scores = np.zeros(200)
    scores[20 : 20 + n_new] = 1.0
    groups = RejectThenCluster(rule)(look(scores, clustering=clustering))
    new = groups[20 : 20 + n_new].tolist()
    assert sorted(new) == list(range(N_SEEN, N_SEEN + n_new))
    assert (np.delete(groups, range(20, 20 + n_new)) < N_SEEN).all()


@pytest.mark.parametrize("rule", get_args(Rule))
def test_without_novel_classes_nothing_is_rejected(rule: Rule) -> None:
    groups = RejectThenCluster(rule)(look(two_heaps(), n_classes=N_SEEN))
    assert set(groups.tolist()) == {0, 1}


@pytest.mark.parametrize("rule", get_args(Rule))
def test_without_validation_nodes_there_is_still_a_threshold(rule: Rule) -> None:
    scores = two_heaps()
    none = np.empty(0, dtype=np.int64)
    found = RejectThenCluster(rule).threshold_of(look(scores, val=none))
    assert 0.2 < found < 0.8
    if rule in ("quantile", "midpoint"):
        assert found == pytest.approx(scores[N_VAL:-8].mean(), abs=1e-6)


def test_a_heap_within_another_falls_back_to_the_mean() -> None:
    rng = np.random.default_rng(0)
    scores = np.concatenate([rng.normal(0.5, 0.001, 900), rng.normal(0.5, 0.2, 100)])
    snapshot = look(scores)
    mixture, mean = (RejectThenCluster(r).threshold_of(snapshot) for r in ("mixture", "mean"))
    assert abs(mixture - mean) < 0.05


@pytest.mark.parametrize("rule", get_args(Rule))
def test_equal_scores_reject_no_one(rule: Rule) -> None:
    assert (RejectThenCluster(rule)(look(np.full(50, 0.3))) < N_SEEN).all()


def test_the_seed_decides() -> None:
    first, again = (RejectThenCluster()(look(two_heaps())) for _ in range(2))
    assert first.tobytes() == again.tobytes()


@pytest.mark.parametrize("missing", ["logits", "novelty"])
def test_a_detector_has_a_head_and_a_score(missing: str) -> None:
    without: dict[str, Any] = {missing: None}
    with pytest.raises(ValueError, match="needs an objective with a head and a novelty score"):
        RejectThenCluster()(replace(look(two_heaps()), **without))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"threshold": "median"}, "unknown threshold. Expected one of mixture, mean, .*'median'"),
        ({"kept": 0.0}, "kept is a share. Expected between 0 and 1. Got 0.0"),
        ({"kept": 1.0}, "kept is a share"),
    ],
)
def test_settings_without_a_meaning_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        RejectThenCluster(**settings)
