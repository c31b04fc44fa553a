from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import pytest
import torch
import torch.nn.functional as F
from sklearn.metrics import roc_auc_score

from openima.errors import InputError
from openima.graph.blocks import Block
from openima.graph.task import Task
from openima.methods import Recipe, get_recipe
from openima.methods.base import Batch, Known, Views
from openima.methods.oodgat import OODGAT, OODGATConfig
from openima.nn.encoder import Embedding
from openima.predict.rejection import RejectThenCluster
from openima.train.trainer import train

Tiny = Callable[..., Recipe]

DIM = 5
TRAIN = torch.tensor([3, 0, 7, 1])
LABELS = torch.tensor([1, 0, -1, 0, -1, -1, -1, 0, -1, -1])
KNOWN = Known(2, 4, TRAIN, LABELS, LABELS)
TARGETS = torch.tensor([0, 1, 3, 5, 7, 8, 9])
NODES = torch.tensor([9, 5, 3, 8])
NO_EDGES = Block(torch.tensor([0]), torch.tensor([]), torch.tensor([]), 0)
STEP = Batch(
    NODES, torch.searchsorted(TARGETS, NODES), torch.searchsorted(TARGETS, TRAIN), NO_EDGES
)
TABLE = {  # consistency, uniform, margin of methods.md 6.2, and whether counts are normalised
    "citeseer": (2.0, 0.05, 0.6, False),
    "photo": (3.0, 0.1, 0.4, True),
    "computers": (2.0, 0.05, 0.4, True),
    "cs": (4.0, 0.05, 0.6, True),
    "physics": (4.0, 0.05, 0.6, True),
    "another": (2.0, 0.05, 0.6, False),
}


def one_view() -> Views:
    generator = torch.Generator().manual_seed(0)
    g = torch.randn(len(TARGETS), DIM, generator=generator, dtype=torch.float64)
    scores = torch.randn(len(TARGETS), 2, generator=generator, dtype=torch.float64)
    seen = Embedding(g, F.normalize(g, dim=1), scores)
    return Views(seen, seen)


def objective(**settings: Any) -> OODGAT:
    generator = torch.Generator().manual_seed(1)
    return OODGAT(KNOWN, DIM, OODGATConfig(**settings), generator).double()


def sigmoid(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x))


def cosine(a: list[float], b: list[float]) -> float:
    dot = sum(x * y for x, y in zip(a, b, strict=True))
    return dot / math.sqrt(sum(x * x for x in a)) / math.sqrt(sum(y * y for y in b))


@pytest.mark.parametrize("epoch", [1, 50])
def test_every_term_equals_its_formula(epoch: int) -> None:
    model, view = objective(consistency=3.0, layers=0.5, uniform=0.7, margin=0.5), one_view().first
    assert view.extra is not None
    row_of = {node: row for row, node in enumerate(TARGETS.tolist())}
    p = model.head(view.g).softmax(1).tolist()
    ce = [-math.log(p[row_of[i]][int(LABELS[i])]) for i in TRAIN.tolist()]
    batch = [row_of[i] for i in NODES.tolist()]
    entropy = [-sum(x * math.log(x) for x in p[i]) for i in batch]
    mean = sum(entropy) / 4
    std = math.sqrt(sum((x - mean) ** 2 for x in entropy) / 4)
    unsure = [sigmoid((x - mean) / std) for x in entropy]
    first, second = ([float(view.extra[i, layer]) for i in batch] for layer in (0, 1))
    agreement = sum(cosine([sigmoid(x) for x in layer], unsure) for layer in (first, second))
    is_new = [sigmoid((x + y) / 2) >= 0.5 for x, y in zip(first, second, strict=True)]
    spread = [-sum(math.log(x) for x in p[i]) / 2 for i in batch]
    of_new = [x for x, new in zip(spread, is_new, strict=True) if new]
    assert 0 < len(of_new) < 4
    decay = 0.9 ** (epoch / 100)
    expected = {
        "ce": sum(ce) / 4,
        "consistency": -decay * 3.0 * agreement / 2,
        "layers": -decay * 0.5 * cosine(first, second),
        "uniform": decay * 0.7 * sum(of_new) / len(of_new),
    }
    model.on_epoch_start(epoch, None)
    found = model.loss(one_view(), STEP)
    assert found.parts == pytest.approx(expected, rel=1e-9)
    assert found.total.item() == pytest.approx(sum(expected.values()), rel=1e-9)


def test_it_sees_nodes_once_and_all_training_nodes() -> None:
    assert objective().n_views == 1
    assert objective().wants_train_nodes


def test_a_classifier_of_the_seen_classes_reads_raw_embeddings() -> None:
    model, view = objective(), one_view().first
    expected = view.g @ model.head.weight.T + model.head.bias
    torch.testing.assert_close(model.logits(view), expected)
    assert model.logits(view).shape == (len(TARGETS), 2)


def test_novelty_is_the_mean_score_or_the_entropy() -> None:
    view = one_view().first
    assert view.extra is not None
    torch.testing.assert_close(objective().novelty(view), torch.sigmoid(view.extra.mean(1)))
    model = objective(score="entropy")
    p = model.logits(view).softmax(1)
    torch.testing.assert_close(model.novelty(view), -(p * p.log()).sum(1))


@pytest.mark.parametrize("score", ["attention", "entropy"])
def test_new_nodes_score_higher_than_those_of_seen_classes(
    tiny_task: Task, tiny: Tiny, score: Literal["attention", "entropy"]
) -> None:
    recipe = tiny("oodgat", epochs=40, batch_size=None, score=score)
    novelty = train(tiny_task, recipe, progress=False).snapshot.novelty
    assert novelty is not None
    assert tiny_task.truth is not None
    is_new = tiny_task.truth[tiny_task.test] >= tiny_task.n_seen
    assert roc_auc_score(is_new, novelty[tiny_task.test]) > 0.8


def test_an_encoder_without_scores_is_refused() -> None:
    with pytest.raises(ValueError, match="needs an encoder that scores nodes"):
        objective().novelty(one_view().first._replace(extra=None))


@pytest.mark.parametrize("dataset", TABLE)
def test_settings_are_those_of_the_authors(dataset: str) -> None:
    recipe = get_recipe("oodgat").for_dataset(dataset)
    config = recipe.config
    found = (config.consistency, config.uniform, config.margin, recipe.encoder.normalise)
    assert found == TABLE[dataset]
    assert config.layers == 0.005
    assert (recipe.train.epochs, recipe.train.batch_size) == (100, None)
    assert (recipe.encoder.hidden, recipe.encoder.heads) == (128, 8)
    assert recipe.encoder.attention_dropout == 0.6
    assert recipe.predictor == RejectThenCluster()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"consistency": -1.0}, "consistency cannot be negative. Got -1.0"),
        ({"layers": float("nan")}, "layers cannot be negative"),
        ({"margin": 1.5}, "margin is a novelty. Expected 0 to 1. Got 1.5"),
        ({"score": "head"}, "unknown score. Expected 'attention' or 'entropy'. Got 'head'"),
    ],
)
def test_settings_without_a_meaning_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        OODGATConfig(**settings)
