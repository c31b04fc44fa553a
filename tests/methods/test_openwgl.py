from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sklearn.metrics import roc_auc_score

from openima.errors import InputError
from openima.graph.blocks import Block
from openima.graph.task import Task
from openima.losses.detection import uncertainty
from openima.losses.variational import divergence, reconstruction
from openima.methods import Recipe, get_recipe
from openima.methods.base import Batch, Known, Views
from openima.methods.openwgl import OpenWGL, OpenWGLConfig
from openima.nn.encoder import Embedding
from openima.nn.pairs import random_pairs
from openima.nn.variational import sample
from openima.train.trainer import Run, train

Tiny = Callable[..., Recipe]

DIM, N_SEEN = 5, 3
TRAIN = torch.tensor([3, 0, 7])
LABELS = torch.tensor([1, -1, -1, 0, -1, -1, -1, 2, -1, -1])
KNOWN = Known(N_SEEN, 5, TRAIN, LABELS, LABELS)
TARGETS = torch.tensor([0, 3, 5, 7, 8, 9])
NODES = torch.tensor([9, 5, 3, 8])
LINKS = [(0, 1), (1, 0), (2, 4), (5, 4), (3, 3), (6, 2)]  # source 6 is no target; 3 is a loop


def batch() -> Batch:
    """Targets are the first sources, under the same numbers."""
    pairs = sorted(LINKS, key=lambda pair: pair[1])
    counts = np.bincount([t for _, t in pairs], minlength=6)
    indptr = torch.tensor([0, *counts.cumsum()], dtype=torch.int32)
    sources = torch.tensor([s for s, _ in pairs], dtype=torch.int32)
    edges = Block(indptr, sources, torch.arange(6, dtype=torch.int32), 7)
    rows = torch.searchsorted(TARGETS, NODES), torch.searchsorted(TARGETS, TRAIN)
    return Batch(NODES, *rows, edges)


def one_view() -> Views:
    generator = torch.Generator().manual_seed(0)
    mean, log_sigma = torch.randn(2, 6, DIM, generator=generator, dtype=torch.float64)
    seen = Embedding(mean, F.normalize(mean, dim=1), log_sigma / 4)
    return Views(seen, seen)


def objective(**settings: Any) -> OpenWGL:
    generator = torch.Generator().manual_seed(1)
    return OpenWGL(KNOWN, DIM, OpenWGLConfig(**settings), generator).double()


def test_every_term_equals_its_formula() -> None:
    weights = {"divergence": 2.0, "reconstruction": 0.5, "uncertainty": 3.0}
    model, view = objective(**weights, unsure_below=0.9), one_view().first
    assert view.extra is not None
    model.generator = torch.Generator().manual_seed(4)
    found = model.loss(one_view(), batch())

    generator = torch.Generator().manual_seed(4)
    latent = sample(view.g, view.extra, generator)
    pairs = random_pairs(6, 4, generator)
    linked = [latent[s] @ latent[t] for s, t in LINKS if s < 6 and s != t]
    of_random = zip(pairs.sources.tolist(), pairs.targets.tolist(), strict=True)
    random = [latent[s] @ latent[t] for s, t in of_random]
    logits = model.head(latent)
    train_rows, unlabelled = [1, 0, 3], [5, 2, 4]  # nodes 3, 0, 7; nodes 9, 5, 8
    log_p = logits.log_softmax(1)
    expected = {
        "ce": -sum(log_p[i, c] for i, c in zip(train_rows, (0, 1, 2), strict=True)).item() / 3,
        "divergence": 2.0 * divergence(view.g[train_rows], view.extra[train_rows]).item(),
        "reconstruction": 0.5 * reconstruction(torch.stack(linked), torch.stack(random)).item(),
        "uncertainty": 3.0 * uncertainty(logits[unlabelled], 0.9).item(),
    }
    assert expected["uncertainty"] < 0.0
    assert found.parts == pytest.approx(expected, rel=1e-9)
    assert found.total.item() == pytest.approx(sum(expected.values()), rel=1e-9)


def test_steps_sample_with_the_generator_of_the_trainer(tiny_task: Task, tiny: Tiny) -> None:
    run = Run(tiny_task, tiny("openwgl", batch_size=None))
    for _ in run.one_epoch():
        assert isinstance(run.objective, OpenWGL)
        assert run.objective.generator is run.generator


def test_predictions_see_the_same_noise_each_time_and_little_of_it() -> None:
    view = one_view().first
    model = objective(samples=100)
    once, again = model.logits(view), model.logits(view)
    assert torch.equal(once, again)
    of_mean = model.head(view.g)
    few, many = (
        (objective(samples=n).logits(view) - of_mean).abs().mean().item() for n in (1, 10_000)
    )
    assert few > (once - of_mean).abs().mean().item() > many > 0.0
    assert few == pytest.approx(100 * many)
    torch.testing.assert_close(model.novelty(view), 1.0 - once.softmax(1).amax(1))


def test_the_noise_is_saved_with_the_weights() -> None:
    view = one_view().first
    generator = torch.Generator().manual_seed(2)
    other = OpenWGL(KNOWN, DIM, OpenWGLConfig(), generator).double()
    assert not torch.equal(other.logits(view), objective().logits(view))
    other.load_state_dict(objective().state_dict())
    assert torch.equal(other.logits(view), objective().logits(view))


def test_new_nodes_score_higher_than_those_of_seen_classes(tiny_task: Task, tiny: Tiny) -> None:
    recipe = tiny("openwgl", epochs=40, batch_size=None)
    novelty = train(tiny_task, recipe, progress=False).snapshot.novelty
    assert novelty is not None
    assert tiny_task.truth is not None
    is_new = tiny_task.truth[tiny_task.test] >= tiny_task.n_seen
    assert roc_auc_score(is_new, novelty[tiny_task.test]) > 0.9


@pytest.mark.parametrize(("unsure_below", "is_on"), [(0.5, False), (0.75, True)])
def test_two_seen_classes_stay_finite(
    tiny_task: Task, tiny: Tiny, unsure_below: float, is_on: bool
) -> None:
    assert tiny_task.n_seen == 2
    history = train(tiny_task, tiny("openwgl", unsure_below=unsure_below), progress=False).history
    assert np.isfinite(history["loss_uncertainty"]).all()
    assert bool((history["loss_uncertainty"] < 0).all()) == is_on


@pytest.mark.parametrize("nodes", [[9], [3], [3, 7]])
def test_batches_without_links_or_unlabelled_nodes_have_finite_gradients(nodes: list[int]) -> None:
    whole = batch()
    none = Block(
        torch.zeros(7, dtype=torch.int32), whole.edges.sources[:0], whole.edges.self_rows, 7
    )
    chosen = torch.tensor(nodes)
    rows = torch.searchsorted(TARGETS, chosen)
    part = replace(whole, nodes=chosen, rows=rows, edges=none)
    model = objective()
    total, parts = model.loss(one_view(), part)
    assert parts["reconstruction"] == 0.0
    for gradient in torch.autograd.grad(total, list(model.parameters())):
        assert gradient.isfinite().all()


def test_an_encoder_without_a_spread_is_refused() -> None:
    with pytest.raises(ValueError, match="needs a variational encoder"):
        objective().logits(one_view().first._replace(extra=None))


@pytest.mark.parametrize("dataset", ["citeseer", "photo", "computers", "cs", "physics", "another"])
def test_settings_are_those_of_the_authors(dataset: str) -> None:
    recipe = get_recipe("openwgl").for_dataset(dataset)
    config = recipe.config
    assert (config.divergence, config.reconstruction, config.uncertainty) == (1.0, 1.0, 1.0)
    assert config.samples == 100
    assert config.unsure_below == (0.75 if dataset == "physics" else 0.5)
    assert recipe.encoder.normalise == (dataset not in ("citeseer", "another"))
    assert (recipe.train.epochs, recipe.train.batch_size) == (100, None)
    assert (recipe.encoder.hidden, recipe.encoder.heads) == (128, 8)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"divergence": -1.0}, "divergence cannot be negative. Got -1.0"),
        ({"uncertainty": float("nan")}, "uncertainty cannot be negative"),
        ({"unsure_below": 0.0}, "unsure_below is a probability. Expected up to 1. Got 0.0"),
        ({"samples": 0}, "samples must be at least 1. Got 0"),
    ],
)
def test_settings_without_a_meaning_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        OpenWGLConfig(**settings)
