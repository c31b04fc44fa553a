import numpy as np
import pytest

from openima.predict.clustering import Clusters, Embeddings
from openima.predict.predictors import ClusterPredictor, HeadPredictor, name_groups
from openima.train.snapshot import Snapshot


def by_sign(z: Embeddings, n_clusters: int, seed: int) -> Clusters:
    return Clusters((z[:, 0] > 0).astype(np.int64) + seed, np.abs(z[:, 0]), z[:n_clusters])


Z = np.array([[-1.0], [2.0], [-3.0]], dtype=np.float32)


def test_clusters_are_those_of_the_chosen_clustering_and_seed() -> None:
    look = Snapshot(1, Z, None, 2, by_sign, seed=0)
    assert ClusterPredictor()(look).tolist() == [0, 1, 0]
    assert ClusterPredictor()(Snapshot(1, Z, None, 2, by_sign, seed=1)).tolist() == [1, 2, 1]


def test_the_head_takes_its_largest_output() -> None:
    logits = np.array([[0.1, 0.2, -1], [5, 4, 3], [-3, -2, -1]], dtype=np.float32)
    assert HeadPredictor()(Snapshot(1, Z, logits, 3, by_sign, 0)).tolist() == [1, 0, 2]


def test_without_a_head_there_is_nothing_to_predict_from() -> None:
    with pytest.raises(ValueError, match="needs an objective with a head"):
        HeadPredictor()(Snapshot(1, Z, None, 2, by_sign, 0))


def test_groups_are_named_by_most_known_nodes() -> None:
    groups = np.array([3, 3, 3, 1, 1, 0, 2, 2])
    labels = np.array([1, 1, 0, 0, -1, -1, -1, -1])
    named = name_groups(groups, labels, 4)
    assert named[:5].tolist() == [1, 1, 1, 0, 0]
    assert {named[5], named[6]} == {2, 3}
    assert named[6] == named[7]


def test_names_of_groups_do_not_matter() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 5, 200)
    labels = np.where(truth < 3, truth, -1)
    for order in (np.arange(5), rng.permutation(5)):
        named = name_groups(order[truth], labels, 5)
        assert (named[truth < 3] == truth[truth < 3]).all()
        assert set(named[truth >= 3].tolist()) == {3, 4}


def test_every_group_has_a_class_of_its_own_without_any_label() -> None:
    groups = np.array([2, 0, 1, 1])
    named = name_groups(groups, np.full(4, -1), 3)
    assert sorted({int(c) for c in named}) == [0, 1, 2]
    assert named[2] == named[3]
