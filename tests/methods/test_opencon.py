from collections.abc import Callable
from dataclasses import replace
from math import exp, log
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from openima.errors import InputError
from openima.graph.blocks import Block, Reach
from openima.graph.task import Task
from openima.methods import get_recipe
from openima.methods.base import Batch, Known, Recipe, Step, Views
from openima.methods.opencon import SCALE, OpenCon, OpenConConfig
from openima.nn.encoder import Embedding
from openima.nn.gat import EncoderConfig, GATEncoder
from openima.nn.rows import DenseRows
from openima.predict.predictors import ClusterPredictor, HeadPredictor
from openima.train.batching import EvenBatches
from openima.train.trainer import train

Tiny = Callable[..., Recipe]

N, DIM, N_CLASSES = 30, 5, 4
TRAIN = torch.tensor([3, 0, 7, 12, 21])
LABELS = torch.full((N,), -1).index_copy(0, TRAIN, torch.tensor([0, 1, 0, 1, 1]))
KNOWN = Known(2, N_CLASSES, TRAIN, LABELS, LABELS)
NO_EDGES = Block(torch.tensor([0]), torch.tensor([]), torch.tensor([]), 0)
NODES = torch.tensor([5, 3, 1, 8, 0, 9, 10, 11, 12, 13, 14, 2, 20, 29])
TARGETS = torch.unique(torch.cat([NODES, TRAIN]))
STEP = Batch(
    NODES, torch.searchsorted(TARGETS, NODES), torch.searchsorted(TARGETS, TRAIN), NO_EDGES
)


def two_views(seed: int = 0) -> Views:
    generator = torch.Generator().manual_seed(seed)
    g = torch.randn(2, len(TARGETS), DIM, generator=generator, dtype=torch.float64)
    return Views(*(Embedding(one, F.normalize(one, dim=1)) for one in g))


def objective(**settings: Any) -> OpenCon:
    config = OpenConConfig(**settings)
    return OpenCon(KNOWN, DIM, config, torch.Generator().manual_seed(1)).double()


def prepared(generator: torch.Generator) -> Step:
    reach = Reach(np.arange(0), (NO_EDGES, NO_EDGES))
    encoder = GATEncoder(2, EncoderConfig(hidden=2, heads=1), torch.Generator())
    return Step(STEP, encoder, DenseRows(torch.zeros(1, 0, 2)), reach, generator, 2)


def by_loops(rows: list[Tensor], ids: list[int], temperature: float) -> float:
    losses = []
    for i, row in enumerate(rows):
        others = [k for k in range(len(rows)) if k != i]
        total = sum(exp(float(row @ rows[k]) / temperature) for k in others)
        positives = [float(row @ rows[j]) / temperature for j in others if ids[j] == ids[i]]
        losses.append(log(total) - sum(positives) / len(positives))
    return sum(losses) / len(losses) if losses else 0.0


def of_nodes(model: OpenCon, views: Views, nodes: list[int]) -> list[list[Tensor]]:
    at = TARGETS.tolist()
    rows = [[model.projector(view.g[at.index(i)]).detach() for i in nodes] for view in views]
    return [[row / row.norm() for row in of_view] for of_view in rows]


def seen_score(scores: Tensor) -> float:
    return float(((scores - scores.mean()) / scores.std())[: KNOWN.n_seen].max())


def looked_at(model: OpenCon, views: Views, labelled: list[int]) -> tuple[list[int], list[int]]:
    """The pseudo labels of the batch's unlabelled nodes, and which of these look novel."""
    unlabelled = [i for i in NODES.tolist() if LABELS[i] < 0]
    scores = [10 * model.prototypes @ r for r in of_nodes(model, views, unlabelled)[0]]
    at_labelled = [10 * model.prototypes @ r for r in of_nodes(model, views, labelled)[0]]
    threshold = np.percentile([seen_score(s) for s in at_labelled], 30)
    novel = [k for k, s in enumerate(scores) if seen_score(s) < threshold]
    return [int(s.argmax()) for s in scores], novel


@pytest.mark.parametrize("all_labelled", [True, False])
@pytest.mark.parametrize("temperature", [0.4, 0.6])
def test_every_term_equals_its_formula(all_labelled: bool, temperature: float) -> None:
    model = objective(all_labelled=all_labelled, simclr_temperature=temperature)
    assert model.wants_train_nodes == all_labelled
    model.on_epoch_start(26, None)
    views = two_views()
    unlabelled = [i for i in NODES.tolist() if LABELS[i] < 0]
    labelled = TRAIN.tolist() if all_labelled else [i for i in NODES.tolist() if LABELS[i] >= 0]
    likely, novel = looked_at(model, views, labelled)
    first, second = of_nodes(model, views, unlabelled)
    both_labelled = [row for view in of_nodes(model, views, labelled) for row in view]
    rows_novel = [first[k] for k in novel] + [second[k] for k in novel]
    scores = [10 * model.prototypes @ r for r in first]
    mean = torch.stack([s.softmax(0) for s in scores]).mean(0)
    expected = {
        "simclr": by_loops(first + second, list(range(len(first))) * 2, temperature),
        "supcon": 0.2 * by_loops(both_labelled, LABELS[labelled].tolist() * 2, 0.1),
        "semicon": 0.05 * by_loops(rows_novel, [likely[k] for k in novel] * 2, 0.7),
        "evenness": 0.05 * float((mean * (mean * N_CLASSES).log()).sum()),
    }
    # The step is one that tells the rules apart.
    assert 0 < len(novel) < len(unlabelled)
    assert len({likely[k] for k in novel}) > 1
    found = model.loss(views, STEP)
    assert found.parts == pytest.approx(expected, rel=1e-9)
    assert found.total.item() == pytest.approx(sum(expected.values()), rel=1e-9)


def test_nodes_that_look_novel_may_have_a_seen_pseudo_label_and_count_all_the_same() -> None:
    views, counted = two_views(), 0
    for seed in range(20):
        generator = torch.Generator().manual_seed(seed)
        model = OpenCon(KNOWN, DIM, OpenConConfig(), generator).double()
        likely, novel = looked_at(model, views, TRAIN.tolist())
        counted += sum(likely[k] < KNOWN.n_seen for k in novel)
    assert counted > 0


def test_the_weight_of_novel_looking_nodes_grows_over_the_first_half() -> None:
    model = objective()
    weights = []
    for epoch in (1, 2, 26, 51, 52, 100):
        model.on_epoch_start(epoch, None)
        weights.append(model.semicon)
    assert weights == pytest.approx([0.0, 0.002, 0.05, 0.1, 0.1, 0.1])
    at_once = objective(ramp_epochs=0)
    at_once.on_epoch_start(1, None)
    assert at_once.semicon == 0.1


@pytest.mark.parametrize("all_labelled", [True, False])
def test_prototypes_follow_labels_and_new_classes_one_by_one_in_random_order(
    all_labelled: bool,
) -> None:
    model, views = objective(all_labelled=all_labelled), two_views()
    labelled = TRAIN.tolist() if all_labelled else [i for i in NODES.tolist() if LABELS[i] >= 0]
    unlabelled = [i for i in NODES.tolist() if LABELS[i] < 0]
    likely, _ = looked_at(model, views, labelled)
    pulls = [
        (row, c)
        for row, c in zip(of_nodes(model, views, unlabelled)[0], likely, strict=True)
        if c >= KNOWN.n_seen
    ]
    assert 0 < len(pulls) < len(unlabelled)
    pulls += zip(of_nodes(model, views, labelled)[0], LABELS[labelled].tolist(), strict=True)
    before = model.prototypes.clone()
    order = torch.randperm(len(pulls), generator=torch.Generator().manual_seed(9))
    expected = before.clone()
    for k in order.tolist():
        row, c = pulls[k]
        pulled = 0.9 * expected[c] + 0.1 * row
        expected[c] = pulled / pulled.norm()

    model.before_step(prepared(torch.Generator().manual_seed(9)))
    model.loss(views, STEP)
    assert torch.equal(model.prototypes, before)  # they move after the step of the optimiser
    model.after_step()
    torch.testing.assert_close(model.prototypes, expected)
    moved = model.prototypes.clone()
    model.after_step()  # once a step
    assert torch.equal(model.prototypes, moved)


def test_prototypes_have_no_gradient_and_are_kept_with_the_weights() -> None:
    model = objective()
    assert "prototypes" in model.state_dict()
    assert not model.prototypes.requires_grad
    assert not any(parameter is model.prototypes for parameter in model.parameters())
    torch.testing.assert_close(model.prototypes.norm(dim=1), torch.ones(N_CLASSES).double())


def test_prototypes_stay_unit_length_through_training(tiny_task: Task, tiny: Tiny) -> None:
    result = train(tiny_task, tiny("opencon"), progress=False)
    prototypes = result.objective.state_dict()["prototypes"]
    torch.testing.assert_close(prototypes.norm(dim=1), torch.ones(4))
    assert set(result.history.columns) >= {"loss_simclr", "loss_supcon", "loss_semicon"}


def test_logits_are_ten_times_the_cosines_to_the_prototypes() -> None:
    model, embedding = objective(), two_views().first
    projected = model.projector(embedding.g)
    expected = F.cosine_similarity(projected[:, None], model.prototypes, dim=2)
    torch.testing.assert_close(model.logits(embedding), SCALE * expected)


@pytest.mark.parametrize("all_labelled", [True, False])
@pytest.mark.parametrize("nodes", [[5], [3], [3, 0], []])
def test_a_batch_may_lack_nodes_of_either_kind(nodes: list[int], all_labelled: bool) -> None:
    model, views = objective(all_labelled=all_labelled), two_views()
    for view in views:
        view.g.requires_grad_()
    model.on_epoch_start(60, None)
    model.before_step(prepared(torch.Generator().manual_seed(0)))
    of_batch = torch.tensor(nodes, dtype=torch.int64)
    found = model.loss(
        views, replace(STEP, nodes=of_batch, rows=torch.searchsorted(TARGETS, of_batch))
    )
    slopes = torch.autograd.grad(found.total, [view.g for view in views], allow_unused=True)
    assert torch.isfinite(found.total)
    assert all(torch.isfinite(slope).all() for slope in slopes if slope is not None)
    model.after_step()
    assert torch.isfinite(model.prototypes).all()


def test_two_stages_train_alike_and_predict_by_clusters(tiny_task: Task, tiny: Tiny) -> None:
    head, clusters = (
        train(tiny_task, tiny(name), progress=False) for name in ("opencon", "opencon-two-stage")
    )
    assert head.snapshot.z.tobytes() == clusters.snapshot.z.tobytes()
    assert head.snapshot.logits is not None
    assert head.groups[-1].tolist() == head.snapshot.logits.argmax(1).tolist()
    assert clusters.groups[-1].tolist() == clusters.snapshot.clusters.labels.tolist()


def test_the_recipes_are_those_of_the_notes() -> None:
    recipe = get_recipe("opencon")
    config = recipe.config
    assert (recipe.train.epochs, recipe.train.batch_size) == (100, 2048)
    assert recipe.train.batching == EvenBatches()
    assert recipe.predictor == HeadPredictor()
    temperatures = [
        getattr(config, f"{name}_temperature") for name in ("simclr", "supcon", "semicon")
    ]
    assert temperatures == [0.4, 0.1, 0.7]
    assert (config.simclr, config.supcon, config.semicon, config.evenness) == (1, 0.2, 0.1, 0.05)
    assert (config.id_share, config.momentum, config.ramp_epochs) == (0.7, 0.9, 50)
    products = recipe.for_dataset("ogbn-products")
    assert (products.train.epochs, products.train.batch_size) == (10, 4096)
    assert products.config.ramp_epochs == 5
    assert products.train.fan_outs == recipe.for_dataset("ogbn-arxiv").train.fan_outs == (10, 20)
    assert get_recipe("opencon-two-stage").predictor == ClusterPredictor()
    assert get_recipe("opencon-two-stage").config == config


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"semicon": -0.1}, "semicon cannot be negative"),
        ({"ramp_epochs": -1}, "ramp_epochs cannot be negative"),
        ({"simclr_temperature": 0.0}, "simclr_temperature must be positive"),
        ({"id_share": 1.5}, "id_share is a share"),
        ({"momentum": float("nan")}, "momentum is a share"),
    ],
)
def test_settings_without_a_meaning_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        OpenConConfig(**settings)
