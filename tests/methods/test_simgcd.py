from collections.abc import Callable
from itertools import pairwise
from math import exp, log
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from openima.errors import InputError
from openima.graph.blocks import Block
from openima.graph.task import Task
from openima.methods import get_recipe
from openima.methods.base import Batch, Known, Recipe, Views
from openima.methods.simgcd import SimGCD, SimGCDConfig
from openima.nn.encoder import Embedding
from openima.train.batching import HalfLabelledBatches
from openima.train.trainer import Run

Tiny = Callable[..., Recipe]
DIM, N_CLASSES = 5, 4
LABELS = torch.tensor([1, -1, 0, 0, -1, -1, -1, 0, -1, -1])
KNOWN = Known(2, N_CLASSES, torch.tensor([3, 0, 7, 2]), LABELS, LABELS)
NODES = torch.tensor([5, 3, 8, 0, 7])
NO_ROWS = torch.tensor([], dtype=torch.int64)
NO_EDGES = Block(torch.tensor([0]), torch.tensor([]), torch.tensor([]), 0)
BATCH = Batch(NODES, torch.tensor([4, 0, 1, 3, 2]), NO_ROWS, NO_EDGES)
SMALL = SimGCDConfig(projector=(6, 3), supervised=0.3, entropy=4.0)


def two_views() -> Views:
    generator = torch.Generator().manual_seed(0)
    g = torch.randn(2, len(NODES), DIM, generator=generator, dtype=torch.float64)
    return Views(*(Embedding(one, F.normalize(one, dim=1)) for one in g))


def objective(config: SimGCDConfig = SMALL) -> SimGCD:
    return SimGCD(KNOWN, DIM, config, torch.Generator().manual_seed(1)).double()


def softmax(row: list[float], temperature: float) -> list[float]:
    powers = [exp(o / temperature) for o in row]
    return [power / sum(powers) for power in powers]


def contrast(rows: list[Tensor], ids: list[int], temperature: float) -> float:
    losses = []
    for i, z in enumerate(rows):
        others = [k for k in range(len(rows)) if k != i]
        log_total = log(sum(exp(float(z @ rows[k]) / temperature) for k in others))
        of_pairs = [
            log_total - float(z @ rows[j]) / temperature for j in others if ids[j] == ids[i]
        ]
        losses.append(sum(of_pairs) / len(of_pairs))
    return sum(losses) / len(losses)


def expected_terms(model: SimGCD, views: Views, teacher: float) -> dict[str, float]:
    """The five terms, one node and one view at a time; the batch's labels are - 0 - 1 0."""
    cosines, projected = [], []
    for view in views:
        rows = [view.g[i] for i in BATCH.rows]
        cosines.append(
            [[F.cosine_similarity(g, w, dim=0).item() for w in model.head.weight] for g in rows]
        )
        projected.append(list(model.projector(torch.stack(rows)).detach()))
    distill = 0.0
    for a, b in ((0, 1), (1, 0)):
        for own, other in zip(cosines[a], cosines[b], strict=True):
            pairs = zip(softmax(other, teacher), softmax(own, 0.1), strict=True)
            distill -= sum(t * log(p) for t, p in pairs) / len(NODES) / 2
    predicted = [softmax(row, 0.1) for view in cosines for row in view]
    mean = [sum(p[c] for p in predicted) / len(predicted) for c in range(N_CLASSES)]
    labelled = {1: 0, 3: 1, 4: 0}
    right = [softmax(view[i], 0.1)[c] for view in cosines for i, c in labelled.items()]
    of_labelled = [view[i] for view in projected for i in labelled]
    return {
        "distill": 0.7 * distill,
        "entropy": 0.7 * 4.0 * (log(N_CLASSES) + sum(p * log(p) for p in mean)),
        "infonce": 0.7 * contrast(projected[0] + projected[1], list(range(5)) * 2, 1.0),
        "ce": -0.3 * sum(log(p) for p in right) / len(right),
        "supcon": 0.3 * contrast(of_labelled, [0, 1, 0] * 2, 0.07),
    }


@pytest.mark.parametrize(("epoch", "teacher"), [(1, 0.07), (30, 0.04), (50, 0.04)])
def test_every_term_equals_its_formula(epoch: int, teacher: float) -> None:
    model, views = objective(), two_views()
    model.on_epoch_start(epoch, None)
    expected = expected_terms(model, views, teacher)
    found = model.loss(views, BATCH)
    assert found.parts == pytest.approx(expected, rel=1e-6)
    assert found.total.item() == pytest.approx(sum(expected.values()), rel=1e-6)


def test_a_batch_without_labels_has_no_terms_of_labels() -> None:
    model, views = objective(), two_views()
    model.on_epoch_start(1, None)
    batch = Batch(torch.tensor([5, 1, 8, 6, 9]), BATCH.rows, NO_ROWS, NO_EDGES)
    expected = expected_terms(model, views, 0.07)
    parts = model.loss(views, batch).parts
    assert parts == pytest.approx({k: expected[k] for k in ("distill", "entropy", "infonce")})


def test_the_push_for_equal_classes_is_least_where_they_are() -> None:
    """Views on each class's own direction give every class the same share."""
    model = objective()
    on_axes = Embedding(*[F.normalize(model.head.weight.detach(), dim=1)] * 2)
    one_class = Embedding(*[on_axes.z[:1].expand(N_CLASSES, DIM)] * 2)
    batch = Batch(torch.tensor([1, 4, 5, 6]), torch.arange(N_CLASSES), NO_ROWS, NO_EDGES)
    equal, collapsed = (
        model.loss(Views(view, view), batch).parts["entropy"] for view in (on_axes, one_class)
    )
    assert 0 <= equal < 0.5 * collapsed
    assert collapsed <= 0.7 * 4.0 * log(N_CLASSES)


def test_the_teachers_temperature_goes_down_a_line_and_stays() -> None:
    config = SimGCDConfig()
    temperatures = [config.teacher_at(epoch) for epoch in range(1, 51)]
    assert temperatures[0] == 0.07
    steps = [b - a for a, b in pairwise(temperatures)]
    assert steps[:29] == pytest.approx([-0.03 / 29] * 29)
    assert temperatures[29:] == pytest.approx([0.04] * 21)


@pytest.mark.parametrize("warm_up", [0, 1])
def test_without_warm_up_the_teacher_is_sharp_at_once(warm_up: int) -> None:
    assert SimGCDConfig(teacher_warm_up=warm_up).teacher_at(1) == 0.04


def test_training_follows_the_schedule(tiny_task: Task, tiny: Tiny) -> None:
    run, temperatures = Run(tiny_task, tiny("simgcd", teacher_warm_up=3, projector=(8,))), []
    for _ in range(4):
        for _ in run.one_epoch():
            pass
        assert isinstance(run.objective, SimGCD)
        temperatures.append(run.objective.teacher_temperature)
    assert temperatures == pytest.approx([0.07, 0.055, 0.04, 0.04])


def test_logits_are_those_that_probabilities_are_made_of() -> None:
    model, view = objective(), two_views().first
    cosines = model.head(view.z)
    torch.testing.assert_close(model.logits(view), 10 * cosines)
    assert cosines.abs().max() <= 1


def test_the_recipe_is_the_papers() -> None:
    recipe = get_recipe("simgcd")
    assert recipe.config == SimGCDConfig()
    assert recipe.config.projector == (2048, 2048, 256)
    assert (recipe.train.epochs, recipe.train.batch_size) == (50, 2048)
    assert recipe.train.batching == HalfLabelledBatches()
    assert recipe.kind == "end-to-end"
    large = recipe.for_dataset("ogbn-products")
    assert (large.train.epochs, large.config.teacher_warm_up) == (10, 3)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"supervised": 1.5}, "supervised is a share. Expected 0 to 1. Got 1.5"),
        ({"entropy": -1.0}, "entropy cannot be negative"),
        ({"teacher_warm_up": -1}, "teacher_warm_up cannot be negative"),
        ({"temperature": 0.0}, "temperature must be positive"),
        ({"teacher_temperature": -1.0}, "teacher_temperature must be positive"),
        ({"supcon_temperature": float("nan")}, "supcon_temperature must be positive"),
        ({"projector": ()}, "projector lists the widths of its layers"),
        ({"projector": (8, 0)}, "projector lists the widths of its layers"),
    ],
)
def test_settings_without_a_meaning_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        SimGCDConfig(**settings)
