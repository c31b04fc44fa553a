from collections.abc import Callable
from dataclasses import replace
from math import exp, log
from typing import Any, cast

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from openima.errors import InputError
from openima.graph.blocks import Block
from openima.graph.task import Task
from openima.methods import get_recipe
from openima.methods.base import Batch, Known, Recipe, Step, Views
from openima.methods.orca import ORCA, ORCAConfig, uncertainty
from openima.nn.encoder import Embedding
from openima.predict.clustering import KMeansClustering
from openima.train.batching import EvenBatches
from openima.train.snapshot import Snapshot
from openima.train.trainer import Run, train

Tiny = Callable[..., Recipe]
DIM, N_CLASSES = 5, 4
TRAIN = torch.tensor([3, 0, 7, 2])
LABELS = torch.tensor([1, -1, 0, 0, -1, -1, -1, 0, -1, -1])
KNOWN = Known(2, N_CLASSES, TRAIN, LABELS, LABELS)
NODES = torch.tensor([5, 3, 1, 8, 0, 7])
TARGETS = torch.tensor([0, 1, 2, 3, 5, 7, 8])
NO_EDGES = Block(torch.tensor([0]), torch.tensor([]), torch.tensor([]), 0)
BATCH = Batch(
    NODES, torch.searchsorted(TARGETS, NODES), torch.searchsorted(TARGETS, TRAIN), NO_EDGES
)


def two_views() -> Views:
    generator = torch.Generator().manual_seed(0)
    g = torch.randn(2, len(TARGETS), DIM, generator=generator, dtype=torch.float64)
    return Views(*(Embedding(one, F.normalize(one, dim=1)) for one in g))


def objective(config: ORCAConfig | None = None, margin: float = 0.3) -> ORCA:
    generator = torch.Generator().manual_seed(1)
    model = ORCA(KNOWN, DIM, config or ORCAConfig(), generator).double()
    model.margin.fill_(margin)
    unused = cast(Any, None)
    model.before_step(Step(BATCH, unused, unused, unused, torch.Generator().manual_seed(3), 2))
    return model


def logits_of(model: ORCA, g: Tensor) -> list[float]:
    """Ten times the cosine to each class's direction."""
    return [10 * F.cosine_similarity(g, w, dim=0).item() for w in model.head.weight]


def softmax(row: list[float]) -> list[float]:
    powers = [exp(o) for o in row]
    return [power / sum(powers) for power in powers]


def expected_terms(model: ORCA, views: Views, trained_on: list[int]) -> dict[str, float]:
    row = {node: i for i, node in enumerate(TARGETS.tolist())}
    first, second = (
        {node: softmax(logits_of(model, view.g[i])) for node, i in row.items()} for view in views
    )
    nodes, pair = NODES.tolist(), 0.0
    for i, node in enumerate(nodes):
        if LABELS[node] >= 0:
            partner = nodes[int(model.partners[i])]
        else:
            z = views.first.z
            others = [other for other in nodes if other != node]
            partner = max(others, key=lambda other: float(z[row[node]] @ z[row[other]]))
        p, q = first[node], second[partner]
        pair -= log(sum(a * b for a, b in zip(p, q, strict=True))) / len(nodes)
    mean = [sum(first[node][c] for node in nodes) / len(nodes) for c in range(N_CLASSES)]
    cross_entropy = 0.0
    for node in trained_on:
        o = logits_of(model, views.first.g[row[node]])
        o[int(LABELS[node])] += 10 * model.margin.item()
        cross_entropy -= log(softmax(o)[int(LABELS[node])]) / len(trained_on)
    return {"pair": pair, "ce": cross_entropy, "entropy": sum(p * log(p) for p in mean)}


@pytest.mark.parametrize("margin", [0.0, 0.3, 0.5])
def test_every_term_equals_its_formula(margin: float) -> None:
    model, views = objective(margin=margin), two_views()
    assert model.wants_train_nodes
    expected = expected_terms(model, views, TRAIN.tolist())
    found = model.loss(views, BATCH)
    assert found.parts == pytest.approx(expected, rel=1e-6)
    assert found.total.item() == pytest.approx(sum(expected.values()), rel=1e-6)


def test_cross_entropy_may_be_over_the_batch_alone() -> None:
    model, views = objective(ORCAConfig(all_labelled=False)), two_views()
    assert not model.wants_train_nodes
    batch = replace(BATCH, train_rows=torch.tensor([], dtype=torch.int64))
    expected = expected_terms(model, views, [3, 0, 7])
    assert model.loss(views, batch).parts == pytest.approx(expected, rel=1e-6)


def test_labelled_nodes_get_partners_of_their_label() -> None:
    seen = set()
    for _ in range(5):
        partners = objective().partners
        assert [int(partners[i]) for i in (1, 4, 5)] == [
            5,
            4,
            1,
        ]  # 3 and 7 share a label; 0 is alone
        seen.add(tuple(partners.tolist()))
    assert len(seen) == 1  # the step's generator decides


def test_no_gradient_chooses_partners() -> None:
    """The loss is smooth in the embeddings: partners are found outside the graph."""
    model, g = objective(), torch.randn(2, 7, DIM, dtype=torch.float64)

    def total(g: Tensor) -> Tensor:
        return model.loss(Views(*(Embedding(x, F.normalize(x, dim=1)) for x in g)), BATCH).total

    assert torch.autograd.gradcheck(total, g.requires_grad_())


def snapshot_with(logits: np.ndarray[Any, np.dtype[np.float32]], **parts: Any) -> Snapshot:
    z = np.zeros((len(logits), DIM), dtype=np.float32)
    return Snapshot(1, z, logits, N_CLASSES, KMeansClustering(), 0, n_seen=2, **parts)


def test_uncertainty_is_over_validation_and_test_nodes() -> None:
    logits = np.random.default_rng(0).normal(size=(6, N_CLASSES)).astype(np.float32)
    parts = {"val": np.array([4]), "test": np.array([0, 5])}
    largest = [max(softmax(logits[i].tolist())) for i in (4, 0, 5)]
    found = uncertainty(snapshot_with(logits, **parts))
    assert found == pytest.approx(1 - sum(largest) / 3, rel=1e-5)


def test_the_margin_falls_as_confidence_rises_and_is_capped() -> None:
    model, margins = objective(), []
    logits = np.random.default_rng(0).normal(size=(10, N_CLASSES)).astype(np.float32)
    for epoch, confidence in enumerate((0.0, 1.0, 3.0, 10.0, 100.0), start=1):
        look = snapshot_with(confidence * logits, test=np.arange(10))
        model.on_epoch_start(epoch, look)
        assert model.margin.item() == pytest.approx(min(uncertainty(look), 0.5))
        margins.append(model.margin.item())
    assert margins[0] == 0.5  # four classes, no idea: 0.75, capped
    assert margins == sorted(margins, reverse=True)
    assert len(set(margins[1:])) == 4
    assert margins[-1] < 0.01


def margins_over_epochs(task: Task, recipe: Recipe) -> list[float]:
    run, margins = Run(task, recipe), []
    for _ in range(recipe.train.epochs):
        for _ in run.one_epoch():
            pass
        assert isinstance(run.objective, ORCA)
        margins.append(run.objective.margin.item())
    return margins


def test_in_training_the_margin_falls_over_epochs(tiny_task: Task, tiny: Tiny) -> None:
    margins = margins_over_epochs(tiny_task, tiny("orca", epochs=8, seed=3))
    assert 0.3 < margins[0] <= 0.5  # from a look at the untrained head
    assert max(margins[-2:]) < 0.2 * margins[0]


def test_the_margin_of_an_epoch_is_the_uncertainty_after_the_one_before(
    tiny_task: Task, tiny: Tiny
) -> None:
    after = [
        uncertainty(train(tiny_task, tiny("orca", epochs=n), progress=False).snapshot)
        for n in (1, 2)
    ]
    margins = margins_over_epochs(tiny_task, tiny("orca"))
    assert margins[1:] == pytest.approx([min(u, 0.5) for u in after])


def test_zero_margin_is_a_recipe_that_needs_no_first_look(tiny_task: Task, tiny: Tiny) -> None:
    orca, zero = get_recipe("orca"), get_recipe("orca-zm")
    assert zero.config == replace(orca.config, largest_margin=0.0)
    assert (orca.train, orca.predictor) == (zero.train, zero.predictor)
    assert margins_over_epochs(tiny_task, tiny("orca-zm")) == [0.0] * 3
    first_looks = [objective(recipe.config).wants_first_look for recipe in (orca, zero)]
    assert first_looks == [True, False]


def test_the_recipe_is_the_papers() -> None:
    recipe = get_recipe("orca")
    train_config = recipe.train
    assert (train_config.epochs, train_config.batch_size) == (50, 2048)
    assert train_config.batching == EvenBatches()
    assert recipe.kind == "end-to-end"
    large = recipe.for_dataset("ogbn-products").train
    assert (large.epochs, large.batch_size, large.fan_outs) == (10, 4096, (10, 20))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"scale": 0.0}, "scale must be positive"),
        ({"largest_margin": 1.5}, "largest_margin caps an uncertainty. Expected 0 to 1. Got 1.5"),
        ({"largest_margin": float("nan")}, "largest_margin"),
    ],
)
def test_settings_without_a_meaning_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ORCAConfig(**settings)
