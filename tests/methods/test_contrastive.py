from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from openima.errors import InputError
from openima.graph.blocks import Block
from openima.methods import get_recipe
from openima.methods.base import Batch, Known, Views
from openima.methods.contrastive import Contrastive, ContrastiveConfig
from openima.nn.encoder import Embedding

DIM = 5
TRAIN = torch.tensor([3, 0, 7, 1])
LABELS = torch.tensor([1, 0, -1, 0, -1, -1, -1, 0, -1, -1])
KNOWN = Known(2, 4, TRAIN, LABELS, LABELS)
TARGETS = torch.tensor([0, 1, 3, 5, 7, 8])
NODES = torch.tensor([5, 3, 8])
NO_EDGES = Block(torch.tensor([0]), torch.tensor([]), torch.tensor([]), 0)
STEP = Batch(
    NODES, torch.searchsorted(TARGETS, NODES), torch.searchsorted(TARGETS, TRAIN), NO_EDGES
)


def two_views() -> Views:
    generator = torch.Generator().manual_seed(0)
    g = torch.randn(2, len(TARGETS), DIM, generator=generator, dtype=torch.float64)
    return Views(*(Embedding(one, F.normalize(one, dim=1)) for one in g))


def objective(**settings: Any) -> Contrastive:
    config = ContrastiveConfig(**{"temperature": 0.3, "base_temperature": None, **settings})
    return Contrastive(KNOWN, DIM, config, torch.Generator().manual_seed(1)).double()


def by_loops(rows: list[Tensor], ids: list[int], temperature: float) -> float:
    losses = []
    for i, z in enumerate(rows):
        others = [k for k in range(len(rows)) if k != i]
        log_total = torch.stack([z @ rows[k] for k in others]).div(temperature).logsumexp(0)
        of_pairs = [log_total - z @ rows[j] / temperature for j in others if ids[j] == ids[i]]
        losses.append(torch.stack(of_pairs).mean())
    return float(torch.stack(losses).mean())


def expected_terms(model: Contrastive, views: Views) -> dict[str, float]:
    temperature, targets = model.config.temperature, TARGETS.tolist()
    batch = [view.z[targets.index(node)] for view in views for node in NODES.tolist()]
    train = [view.z[targets.index(node)] for view in views for node in TRAIN.tolist()]
    terms = {"infonce": by_loops(batch, [0, 1, 2] * 2, temperature)}
    if model.config.supcon:
        labels = LABELS[TRAIN].tolist() * 2
        terms["supcon"] = model.config.supcon * by_loops(train, labels, temperature)
    if model.head is not None:
        logits = [model.head(row).detach() for row in train]
        losses = [o.logsumexp(0) - o[c] for o, c in zip(logits, [0, 1, 0, 0] * 2, strict=True)]
        # The mean over the four training nodes, summed over both views.
        terms["ce"] = model.config.ce * float(torch.stack(losses).sum()) / len(TRAIN)
    return terms


@pytest.mark.parametrize(
    ("weights", "names"),
    [
        ({}, {"infonce"}),
        ({"supcon": 1.0}, {"infonce", "supcon"}),
        ({"supcon": 0.5, "ce": 2.0}, {"infonce", "supcon", "ce"}),
        ({"ce": 1.0}, {"infonce", "ce"}),
    ],
)
@pytest.mark.parametrize("temperature", [0.07, 0.7])
def test_every_term_equals_its_formula(
    weights: dict[str, float], names: set[str], temperature: float
) -> None:
    model, views = objective(temperature=temperature, **weights), two_views()
    for epoch in (1, 2):  # there is no warm-up
        model.on_epoch_start(epoch, None)
        found = model.loss(views, STEP)
        expected = expected_terms(model, views)
        assert set(expected) == names
        assert found.parts == pytest.approx(expected, rel=1e-9)
        assert found.total.item() == pytest.approx(sum(expected.values()), rel=1e-9)
    assert model.wants_train_nodes == (len(names) > 1)


@pytest.mark.parametrize("temperature", [0.07, 0.7])
def test_the_base_temperature_scales_contrasts_and_not_cross_entropy(temperature: float) -> None:
    views = two_views()
    weights = {"supcon": 1.0, "ce": 1.0, "temperature": temperature}
    plain = objective(**weights).loss(views, STEP).parts
    scaled = objective(**weights, base_temperature=0.07).loss(views, STEP).parts
    factor = temperature / 0.07
    expected = {name: plain[name] * (1.0 if name == "ce" else factor) for name in plain}
    assert scaled == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", ["infonce", "infonce-supcon", "infonce-supcon-ce"])
def test_the_three_baselines_have_their_terms(name: str) -> None:
    recipe = get_recipe(name)
    model = recipe.objective(KNOWN, DIM, recipe.config, torch.Generator().manual_seed(1)).double()
    views = two_views()
    assert list(model.loss(views, STEP).parts) == name.split("-")
    assert (model.logits(views.first) is not None) == name.endswith("-ce")


def test_logits_are_the_heads_and_there_are_none_without_cross_entropy() -> None:
    embedding = two_views().first
    model = objective(ce=1.0)
    assert model.head is not None
    expected = embedding.z @ model.head.weight.T + model.head.bias
    logits = model.logits(embedding)
    assert logits is not None
    torch.testing.assert_close(logits, expected)
    assert objective().logits(embedding) is None
    assert not list(objective().parameters())


def test_labels_of_the_batch_play_no_part_in_info_nce() -> None:
    others = Known(2, 4, TRAIN, LABELS.flip(0), LABELS.flip(0))
    model = Contrastive(others, DIM, objective().config, torch.Generator())
    views = two_views()
    assert model.loss(views, STEP).total == objective().loss(views, STEP).total


def test_one_labelled_node_a_class_and_a_batch_of_one_are_finite() -> None:
    known = Known(2, 4, TRAIN[:2], LABELS, LABELS)
    config = ContrastiveConfig(supcon=1.0, ce=1.0)
    model = Contrastive(known, DIM, config, torch.Generator().manual_seed(0)).double()
    views = two_views()
    for view in views:
        view.z.requires_grad_()
    step = Batch(NODES[:1], STEP.rows[:1], STEP.train_rows[:2], NO_EDGES)
    found = model.loss(views, step)
    gradients = torch.autograd.grad(found.total, [view.z for view in views])
    assert found.parts["infonce"] == pytest.approx(0.0, abs=1e-12)
    assert all(torch.isfinite(gradient).all() for gradient in gradients)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"temperature": -0.1}, "the temperature is too low.*at least 0.025"),
        ({"base_temperature": -1.0}, "base_temperature must be positive, or None"),
        ({"supcon": -1.0}, "a weight cannot be negative"),
        ({"ce": -1.0}, "a weight cannot be negative"),
    ],
)
def test_settings_without_a_meaning_are_refused(settings: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ContrastiveConfig(**settings)
