from dataclasses import replace
from math import exp, log
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from openima.errors import InputError
from openima.graph.blocks import Block
from openima.methods import get_recipe
from openima.methods.base import Batch, Known, LossOutput, Views
from openima.methods.openima import OpenIMA, OpenIMAConfig, pseudo_labels
from openima.nn.encoder import Embedding
from openima.predict.clustering import Clusters, KMeansClustering
from openima.predict.predictors import ClusterPredictor, HeadPredictor
from openima.train.snapshot import Snapshot

N, DIM, N_CLASSES = 10, 5, 4
TRAIN = torch.tensor([3, 0, 7])
LABELS = torch.tensor([1, -1, -1, 0, -1, -1, -1, 0, -1, -1])
WITH_VAL = torch.tensor([1, 1, -1, 0, 0, -1, -1, 0, -1, -1])
KNOWN = Known(2, N_CLASSES, TRAIN, LABELS, WITH_VAL)
BATCH = torch.tensor([5, 3, 1, 8, 0])
PLAIN = OpenIMAConfig(eta=2.0, base_temperature=None)


class FixedClusters:
    """A clustering whose answer is known beforehand."""

    def __init__(self, labels: list[int], distances: list[float]) -> None:
        self.labels, self.distances = np.array(labels), np.array(distances, dtype=np.float32)

    def __call__(self, z: NDArray[np.float32], n_clusters: int, seed: int) -> Clusters:
        assert (n_clusters, seed) == (N_CLASSES, 0)
        return Clusters(self.labels, self.distances, z[:n_clusters])


CLUSTERS = [2, 2, 3, 0, 0, 1, 1, 0, 3, 3]
DISTANCES = [0.1, 0.9, 0.2, 0.3, 0.8, 0.4, 0.7, 0.5, 0.6, 1.0]


def snapshot(clusters: list[int] = CLUSTERS, distances: list[float] = DISTANCES) -> Snapshot:
    z = np.zeros((N, DIM), dtype=np.float32)
    return Snapshot(1, z, None, N_CLASSES, FixedClusters(clusters, distances), 0)


def two_views(seed: int = 0) -> Views:
    """The nodes 0, 1, 3, 5, 7, 8 (the batch and the training nodes) in two views, float64."""
    generator = torch.Generator().manual_seed(seed)
    g = torch.randn(2, 6, DIM, generator=generator, dtype=torch.float64)
    return Views(*(Embedding(one, F.normalize(one, dim=1)) for one in g))


TARGETS = torch.tensor([0, 1, 3, 5, 7, 8])
NO_EDGES = Block(torch.tensor([0]), torch.tensor([]), torch.tensor([]), 0)
STEP = Batch(
    BATCH, torch.searchsorted(TARGETS, BATCH), torch.searchsorted(TARGETS, TRAIN), NO_EDGES
)


def objective(config: OpenIMAConfig = PLAIN) -> OpenIMA:
    return OpenIMA(KNOWN, DIM, config, torch.Generator().manual_seed(1)).double()


def by_loops(rows: list[Tensor], ids: list[int], temperature: float) -> float:
    losses = []
    for i, z in enumerate(rows):
        others = [k for k in range(len(rows)) if k != i]
        positives = [j for j in others if ids[j] == ids[i]]
        total = sum(exp(float(z @ rows[k]) / temperature) for k in others)
        losses += [
            sum(log(total) - float(z @ rows[j]) / temperature for j in positives) / len(positives)
        ]
    return sum(losses) / len(losses)


def expected_terms(
    model: OpenIMA, views: Views, ids: list[int], config: OpenIMAConfig
) -> dict[str, float]:
    rows = [view.z[i] for view in views for i in STEP.rows]
    logits = [model.head(row).detach() for row in rows]
    cross_entropy = 0.0
    for view in views:
        for node, row in zip(TRAIN, STEP.train_rows, strict=True):
            of_node = model.head(view.z[row]).detach()
            right = of_node[LABELS[node]]
            cross_entropy += float(of_node.logsumexp(0) - right) / len(TRAIN)
    return {
        "embedding": by_loops(rows, ids * 2, config.temperature),
        "logit": by_loops([o / o.norm() for o in logits], ids * 2, config.temperature),
        "ce": config.eta * cross_entropy,
    }


def assert_terms(found: LossOutput, expected: dict[str, float]) -> None:
    assert found.parts == pytest.approx(expected, rel=1e-9)
    assert found.total.item() == pytest.approx(sum(expected.values()), rel=1e-9)


def own_ids(*others: int) -> list[int]:
    """Ids that differ from all classes and each other."""
    return [100 + i for i in others]


@pytest.mark.parametrize("temperature", [0.07, 0.7])
def test_every_term_equals_its_formula(temperature: float) -> None:
    config = replace(PLAIN, temperature=temperature)
    model, views = objective(config), two_views()
    model.on_epoch_start(2, snapshot())
    # Of the batch 5 3 1 8 0, nodes 3 and 0 are labelled 0 and 1; node 1 (distance 0.9) is too far
    # out; the clusters of 5 and 8 hold no labelled node.
    five, eight = (int(model.pseudo_labels[i]) for i in (5, 8))
    assert {five, eight} == {2, 3}
    ids = [five, 0, 101, eight, 1]
    assert_terms(model.loss(views, STEP), expected_terms(model, views, ids, config))


def test_pseudo_labels_join_labelled_nodes_and_yield_to_labels() -> None:
    model, views = objective(), two_views()
    model.pseudo_labels.copy_(torch.tensor([3, 1, 3, 2, 3, 1, -1, 3, -1, -1]))
    # Nodes 3 and 0 keep their labels 0 and 1; 5 and 1 join node 0 by their pseudo label.
    expected = expected_terms(model, views, [1, 0, 1, 100, 1], PLAIN)
    assert_terms(model.loss(views, STEP), expected)


def test_the_first_epoch_is_info_nce_alone() -> None:
    model, views = objective(), two_views()
    model.on_epoch_start(1, None)
    assert not model.wants_train_nodes
    step = Batch(BATCH, STEP.rows, torch.tensor([], dtype=torch.int64), NO_EDGES)
    expected = expected_terms(model, views, own_ids(0, 1, 2, 3, 4), PLAIN)["embedding"]
    assert_terms(model.loss(views, step), {"embedding": expected})
    model.on_epoch_start(2, snapshot())
    assert model.wants_train_nodes
    assert set(model.loss(views, STEP).parts) == {"embedding", "logit", "ce"}


def test_without_warm_up_all_terms_count_from_the_start() -> None:
    config = replace(PLAIN, warm_up=False)
    model, views = objective(config), two_views()
    model.on_epoch_start(1, None)
    assert model.wants_train_nodes
    ids = [100, 0, 102, 103, 1]
    assert_terms(model.loss(views, STEP), expected_terms(model, views, ids, config))


def test_pseudo_labels_are_replaced_every_epoch() -> None:
    model = objective()
    model.on_epoch_start(2, snapshot())
    assert model.pseudo_labels[2] >= 0
    assert model.pseudo_labels[1] == -1
    model.on_epoch_start(3, snapshot(distances=DISTANCES[::-1]))
    expected = pseudo_labels(snapshot(distances=DISTANCES[::-1]), WITH_VAL.numpy(), 0.75)
    assert model.pseudo_labels.tolist() == expected.tolist()
    assert model.pseudo_labels[0] == -1


@pytest.mark.parametrize(("align_on", "names"), [("train+val", (1, 0)), ("train", (0, 1))])
def test_align_on_says_whose_labels_name_the_clusters(
    align_on: Any, names: tuple[int, int]
) -> None:
    """Training labels alone make cluster 0 class 0; with those for validation it is class 1."""
    of_train = torch.tensor([0, 0, -1, -1, 1, -1, -1, -1, -1, -1])
    with_val = torch.tensor([0, 0, 1, 1, 1, 1, -1, 0, -1, -1])
    known = Known(2, N_CLASSES, torch.tensor([0, 1, 4]), of_train, with_val)
    config = replace(PLAIN, align_on=align_on, pseudo_share=1.0)
    model = OpenIMA(known, DIM, config, torch.Generator())
    model.on_epoch_start(2, snapshot([0, 0, 0, 0, 1, 0, 2, 1, 3, 3]))
    named = model.pseudo_labels.tolist()
    assert (named[0], named[4]) == names
    assert named[5] == named[0]
    assert {named[6], named[8]} == {2, 3}


@pytest.mark.parametrize("share", [0.1, 0.25, 0.5, 0.75, 1.0])
def test_the_nearest_share_of_all_nodes_is_labelled(share: float) -> None:
    found = pseudo_labels(snapshot(), WITH_VAL.numpy(), share)
    threshold = np.percentile(np.array(DISTANCES, dtype=np.float32), 100 * share)
    for node in range(N):
        assert (found[node] >= 0) == (np.float32(DISTANCES[node]) <= threshold)
    assert (found >= 0).sum() == max(int(share * (N - 1)) + 1, 1)


def test_clusters_are_named_by_the_best_matching_and_left_over_ones_get_novel_ids() -> None:
    found = pseudo_labels(snapshot(), WITH_VAL.numpy(), 1.0)
    clusters = np.array(CLUSTERS)
    names = {int(cluster): set(found[clusters == cluster].tolist()) for cluster in range(4)}
    assert names[0] == {0}  # nodes 3, 4, 7
    assert names[2] == {1}  # nodes 0, 1
    assert sorted(names[1] | names[3]) == [2, 3]
    assert all(len(ids) == 1 for ids in names.values())


def test_a_known_class_may_be_left_without_a_cluster() -> None:
    """All labelled nodes are in cluster 2; the other clusters share the ids that are left."""
    found = pseudo_labels(snapshot([2, 2, 0, 2, 2, 1, 3, 2, 3, 3]), WITH_VAL.numpy(), 1.0)
    assert found[0] == 0  # three nodes of class 0 against two of class 1
    assert {int(found[2]), int(found[5]), int(found[6])} == {1, 2, 3}


SWITCHES = {
    "openima": {"embedding", "logit", "ce"},
    "openima-no-embedding": {"logit", "ce"},
    "openima-no-logit": {"embedding", "ce"},
    "openima-no-ce": {"embedding", "logit"},
    "openima-only-ce": {"ce"},
    "openima-no-pseudo": {"embedding", "logit", "ce"},
}


@pytest.mark.parametrize("name", SWITCHES)
def test_each_ablation_switches_off_its_term_and_no_other(name: str) -> None:
    config = replace(get_recipe(name).config, base_temperature=None)
    model, views = objective(config), two_views()
    model.on_epoch_start(1, None)
    contrasts = name != "openima-only-ce"
    first = model.loss(views, STEP)
    assert set(first.parts) == ({"embedding"} if contrasts else {"ce"})
    assert model.wants_train_nodes == (not contrasts)
    model.on_epoch_start(2, snapshot())
    labelled = name != "openima-no-pseudo"
    assert bool((model.pseudo_labels >= 0).any()) == labelled
    pseudo = [int(model.pseudo_labels[i]) for i in (5, 8)] if labelled else own_ids(0, 3)
    ids = [pseudo[0], 0, 101, pseudo[1], 1]
    terms = expected_terms(model, views, ids, config)
    assert_terms(
        model.loss(views, STEP), {term: terms[term] for term in terms if term in SWITCHES[name]}
    )
    assert model.wants_train_nodes == ("ce" in SWITCHES[name])


@pytest.mark.parametrize("temperature", [0.07, 0.7])
def test_the_base_temperature_scales_contrasts_and_not_cross_entropy(temperature: float) -> None:
    views = two_views()
    plain = objective(replace(PLAIN, temperature=temperature)).loss(views, STEP)
    scaled = objective(replace(PLAIN, temperature=temperature, base_temperature=0.07)).loss(
        views, STEP
    )
    factor = temperature / 0.07
    assert scaled.parts["embedding"] == pytest.approx(factor * plain.parts["embedding"])
    assert scaled.parts["logit"] == pytest.approx(factor * plain.parts["logit"])
    assert scaled.parts["ce"] == pytest.approx(plain.parts["ce"])


def test_eta_weighs_cross_entropy_alone() -> None:
    views = two_views()
    one, three = (objective(replace(PLAIN, eta=eta)).loss(views, STEP) for eta in (1.0, 3.0))
    assert three.parts["ce"] == pytest.approx(3 * one.parts["ce"])
    assert three.parts["embedding"] == one.parts["embedding"]
    assert three.total.item() == pytest.approx(one.total.item() + 2 * one.parts["ce"])


def test_cross_entropy_of_both_views_is_summed_or_averaged() -> None:
    views = two_views()
    summed, mean = (
        objective(replace(PLAIN, ce_views=how)).loss(views, STEP).parts for how in ("sum", "mean")
    )
    assert mean["ce"] == pytest.approx(summed["ce"] / 2)
    assert {**mean, "ce": 0} == {**summed, "ce": 0}


def test_cross_entropy_is_over_all_train_nodes_whatever_the_batch() -> None:
    model, views = objective(), two_views()
    unlabelled = torch.tensor([5, 8])
    step = Batch(unlabelled, torch.searchsorted(TARGETS, unlabelled), STEP.train_rows, NO_EDGES)
    found = model.loss(views, step)
    assert found.parts["ce"] == model.loss(views, STEP).parts["ce"]
    assert torch.isfinite(found.total)


@pytest.mark.parametrize("nodes", [[5], [0], [5, 8], [0, 3]])
def test_small_batches_have_finite_gradients(nodes: list[int]) -> None:
    views = two_views()
    for view in views:
        view.z.requires_grad_()
    model, batch = objective(), torch.tensor(nodes)
    step = Batch(batch, torch.searchsorted(TARGETS, batch), STEP.train_rows, NO_EDGES)
    gradients = torch.autograd.grad(
        model.loss(views, step).total, [views.first.z, views.second.z, *model.parameters()]
    )
    assert all(torch.isfinite(gradient).all() for gradient in gradients)


def test_equal_embeddings_have_finite_gradients() -> None:
    z = torch.full((6, DIM), DIM**-0.5).requires_grad_()
    model = objective().float()
    views = Views(Embedding(z, z), Embedding(z, z))
    gradients = torch.autograd.grad(model.loss(views, STEP).total, [z, *model.parameters()])
    assert all(torch.isfinite(gradient).all() for gradient in gradients)


def test_the_head_classifies_unit_embeddings_with_a_bias() -> None:
    model, embedding = objective(), two_views().first
    logits = model.logits(embedding)
    weight, bias = model.head.weight, model.head.bias
    assert weight.shape == (N_CLASSES, DIM)
    torch.testing.assert_close(logits, embedding.z @ weight.T + bias)


def test_pseudo_labels_are_saved_with_the_weights() -> None:
    model, other = objective(), objective()
    model.on_epoch_start(2, snapshot())
    other.load_state_dict(model.state_dict())
    assert other.pseudo_labels.tolist() == model.pseudo_labels.tolist()


def test_clusters_of_a_snapshot_are_made_once() -> None:
    z = np.random.default_rng(0).standard_normal((30, DIM)).astype(np.float32)
    look = Snapshot(1, z, None, 3, KMeansClustering(1), 5)
    assert look.clusters is look.clusters
    expected = KMeansClustering(1)(z, 3, 5)
    assert look.clusters.labels.tolist() == expected.labels.tolist()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"pseudo_share": 1.5}, "pseudo_share is a share. Expected 0 to 1. Got 1.5"),
        ({"pseudo_share": float("nan")}, "pseudo_share is a share"),
        ({"temperature": 0.0}, "the temperature is too low.*at least 0.025"),
        ({"base_temperature": 0.0}, "base_temperature must be positive, or None"),
        ({"eta": -1.0}, "eta cannot be negative"),
        ({"ce_views": "both"}, "unknown ce_views. Expected 'sum' or 'mean'. Got 'both'"),
        ({"align_on": "test"}, "unknown align_on. Expected 'train\\+val' or 'train'. Got 'test'"),
        (
            {"use_embedding": False, "use_logit": False, "use_ce": False},
            "all terms of the loss are switched off",
        ),
    ],
)
def test_settings_without_a_meaning_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        OpenIMAConfig(**settings)


def test_the_term_for_large_graphs_compares_each_node_with_the_one_most_like_it() -> None:
    config = replace(PLAIN, use_pair=True)
    model, views = objective(config), two_views()
    model.on_epoch_start(2, None)
    first, second = (view.z[STEP.rows] for view in views)
    agreement = 0.0
    for i, z in enumerate(first):
        others = [k for k in range(len(first)) if k != i]
        nearest = max(others, key=lambda k: float(z @ first[k]))
        here, there = (model.head(row).detach().softmax(0) for row in (z, second[nearest]))
        agreement -= log(float(here @ there)) / len(first)
    ids = [100, 0, 102, 103, 1]
    expected = {**expected_terms(model, views, ids, config), "pair": agreement}
    assert_terms(model.loss(views, STEP), expected)
    model.on_epoch_start(1, None)
    assert set(model.loss(views, STEP).parts) == {"embedding"}


def test_cross_entropy_may_be_over_a_sample_of_the_training_nodes() -> None:
    config = replace(PLAIN, ce_nodes=1, use_embedding=False, use_logit=False)
    model, views = objective(config), two_views()
    model.on_epoch_start(2, None)
    assert model.train_sample == 1
    for node, row in zip(TRAIN, STEP.train_rows, strict=True):
        step = replace(STEP, train_rows=row[None], train_nodes=node[None])
        by_hand = sum(
            F.cross_entropy(model.head(view.z[row]), LABELS[node]).item() for view in views
        )
        assert model.loss(views, step).parts == {"ce": pytest.approx(config.eta * by_hand)}


def test_the_recipes_for_large_graphs_sample_and_differ_by_how_they_predict() -> None:
    large, two_stage = (get_recipe(f"openima-large{end}") for end in ("", "-two-stage"))
    for recipe in (large, two_stage):
        assert recipe.train.fan_outs == (10, 20)
        assert recipe.train.batch_size == 4096
        assert recipe.config.use_pair
        assert recipe.for_dataset("ogbn-products").train.epochs == 10
    assert (large.predictor, two_stage.predictor) == (HeadPredictor(), ClusterPredictor())
