from collections.abc import Callable
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import functional_call

from openima.errors import InputError
from openima.graph.blocks import Block, Reach
from openima.graph.task import Task
from openima.methods import get_recipe
from openima.methods.base import Batch, Known, Recipe, Step, Views
from openima.methods.bilevel import moved
from openima.methods.openldn import OpenLDN, OpenLDNConfig, most_confident
from openima.nn.encoder import Embedding, Encoder, Hidden
from openima.nn.rows import DenseRows, Rows
from openima.predict.predictors import HeadPredictor
from openima.train.batching import HalfLabelledBatches
from openima.train.snapshot import Snapshot
from openima.train.steps import prepared
from openima.train.trainer import Run, TrainResult, train

Tiny = Callable[..., Recipe]

N, DIM, N_CLASSES = 10, 5, 4
TRAIN = torch.tensor([3, 0, 7])
LABELS = torch.tensor([1, -1, -1, 0, -1, -1, -1, 0, -1, -1])
KNOWN = Known(2, N_CLASSES, TRAIN, LABELS, LABELS)
NO_EDGES = Block(torch.tensor([0]), torch.tensor([]), torch.tensor([]), 0)
NODES = torch.tensor([5, 3, 1, 8, 0])
ROWS = torch.tensor([4, 0, 2, 3, 1])
STEP = Batch(NODES, ROWS, ROWS[:0], NO_EDGES)


def two_views() -> Views:
    generator = torch.Generator().manual_seed(0)
    g = 3 * torch.randn(2, 5, DIM, generator=generator, dtype=torch.float64)
    return Views(*(Embedding(one, F.normalize(one, dim=1)) for one in g))


def objective(**settings: Any) -> OpenLDN:
    config = OpenLDNConfig(**{"simnet_hidden": 6, **settings})
    return OpenLDN(KNOWN, DIM, config, torch.Generator().manual_seed(1)).double()


def snapshot(logits: Tensor, epoch: int = 1) -> Snapshot:
    z = np.zeros((len(logits), DIM), dtype=np.float32)
    clustering = get_recipe("openldn").train.clustering
    return Snapshot(epoch, z, logits.float().numpy(), N_CLASSES, clustering, 0)


def on_joined_pairs(model: OpenLDN, g: Tensor) -> Tensor:
    net = model.simnet
    joined = torch.cat([g[:, None].expand(-1, len(g), -1), g.expand(len(g), -1, -1)], dim=2)
    similarity: Tensor = net.second(net.first(joined).relu())[..., 0].sigmoid()
    return similarity


def base_terms(model: OpenLDN, weak_g: Tensor, strong_g: Tensor, copies: int) -> dict[str, Tensor]:
    """The terms as the published code has them: labelled nodes are repeated `copies` times."""
    labelled = [1, 4]  # nodes 3 and 0 of the batch 5 3 1 8 0
    others = [0, 2, 3]
    rows = labelled * copies + others
    g = weak_g[rows]
    p = model.head(g).softmax(1)
    q = on_joined_pairs(model, g)
    n = len(rows)
    pairs = [(F.cosine_similarity(p[i], p[j], dim=0) - q[i, j]) ** 2 for i, j in np.ndindex(n, n)]
    mean = p.mean(0)
    log_p = model.head(weak_g).log_softmax(1)
    pseudo = weak_g.new_zeros(())
    for i in others:
        confidence, label = log_p[i].detach().exp().max(0)
        if confidence >= model.config.confidence:
            pseudo = pseudo - model.head(strong_g[i]).log_softmax(0)[label] / len(others)
    return {
        "pair": torch.stack(pairs).mean(),
        "entropy": (mean * mean.log()).sum(),
        "ce": -(log_p[1, 0] + log_p[4, 1]) / 2,
        "pseudo": pseudo,
    }


@pytest.mark.parametrize(("share", "copies"), [(None, 1), (0.4, 1), (2 / 3, 3)])
@pytest.mark.parametrize("confidence", [0.5, 0.9])
def test_the_base_terms_equal_their_formulas(
    share: float | None, copies: int, confidence: float
) -> None:
    """A share says what repeating does: 2 of 5 nodes weigh 0.4, three times repeated 6 of 9."""
    model = objective(labelled_share=share, confidence=confidence)
    model.on_epoch_start(1, None)
    views = two_views()
    weak, strong = (view.g[ROWS] for view in views)
    expected = {k: term.item() for k, term in base_terms(model, weak, strong, copies).items()}
    found = model.loss(views, STEP)
    assert expected["pseudo"] > 0
    assert found.parts == pytest.approx(expected, rel=1e-9)
    assert found.total.item() == pytest.approx(sum(expected.values()), rel=1e-9)
    assert 0 < -expected["entropy"] < log(N_CLASSES)


def test_a_steps_loss_takes_the_similarities_as_they_are() -> None:
    model = objective()
    model.on_epoch_start(1, None)
    torch.autograd.backward(model.loss(two_views(), STEP).total)
    assert all(parameter.grad is None for parameter in model.simnet.parameters())
    assert all(parameter.grad is not None for parameter in model.head.parameters())


def test_the_closed_world_knows_labels_and_pseudo_labels_alone() -> None:
    model = objective(base_epochs=1)
    logits = torch.zeros(N, N_CLASSES)
    logits[5, 3], logits[8, 2], logits[3, 3] = 2.0, 1.0, 5.0  # node 3 has a label
    logits[1, 0] = 9.0  # a seen class gives no pseudo label
    model.on_epoch_start(2, snapshot(logits))
    assert model.pseudo_labels.tolist() == [-1, -1, -1, -1, -1, 3, -1, -1, 2, -1]
    assert model.n_views == 1
    views = two_views()
    log_p = model.head(views.first.g[ROWS]).log_softmax(1)
    expected = {
        "ce": -(log_p[1, 0] + log_p[4, 1]).item() / 2,
        "novel": -(log_p[0, 3] + log_p[3, 2]).item() / 2,
    }
    found = model.loss(views, STEP)
    assert found.parts == pytest.approx(expected, rel=1e-9)
    assert found.total.item() == pytest.approx(sum(expected.values()), rel=1e-9)


def test_a_batch_without_pseudo_labels_and_without_labels_costs_nothing() -> None:
    model = objective(base_epochs=1)
    model.on_epoch_start(2, snapshot(F.one_hot(torch.zeros(N, dtype=torch.int64), N_CLASSES)))
    views = two_views()
    found = model.loss(views, Batch(NODES[[0, 2]], ROWS[[0, 2]], ROWS[:0], NO_EDGES))
    assert found.parts == {"ce": 0.0, "novel": 0.0}
    torch.autograd.backward(found.total)


@pytest.mark.parametrize("chosen", [[0, 2, 3], [1, 4], [2], [4]])
@pytest.mark.parametrize("share", [0.5, None])
def test_a_base_step_may_lack_nodes_of_one_kind(chosen: list[int], share: float | None) -> None:
    model = objective(labelled_share=share)
    model.on_epoch_start(1, None)
    found = model.loss(two_views(), Batch(NODES[chosen], ROWS[chosen], ROWS[:0], NO_EDGES))
    assert torch.isfinite(found.total)
    torch.autograd.backward(found.total)
    assert all(torch.isfinite(p.grad).all() for p in model.head.parameters() if p.grad is not None)


def test_consistency_may_be_added_to_the_closed_world() -> None:
    model = objective(base_epochs=1, uda=0.5)
    model.on_epoch_start(2, snapshot(torch.zeros(N, N_CLASSES)))
    assert model.n_views == 2
    views = two_views()
    weak, strong = (model.head(view.g[ROWS]).detach() for view in views)
    expected = 0.0
    for i in (0, 2, 3):
        if weak[i].softmax(0).max() >= 0.8:
            target = (weak[i] / 0.4).softmax(0)
            expected -= float(target @ strong[i].log_softmax(0)) / 3
    assert expected > 0
    assert model.loss(views, STEP).parts["uda"] == pytest.approx(0.5 * expected, rel=1e-9)


class Dense(Encoder):
    """A stand-in without a graph, which can be differentiated twice."""

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(2)
        shapes = ((7, 8), (8, DIM))
        drawn = (torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes)
        self.maps, self.layers = torch.nn.ParameterList(drawn), torch.nn.ModuleList()

    @property
    def dim(self) -> int:
        return DIM

    def first(self, x: Rows, block: Block, generator: torch.Generator | None) -> Hidden:
        del block
        rows = x.dropout(0.5, generator)
        assert isinstance(rows, DenseRows)
        return ((rows.pieces[0] @ self.maps[0]).tanh(),)

    def second(self, hidden: Hidden, block: Block, generator: torch.Generator | None) -> Embedding:
        del block, generator
        g = hidden[0] @ self.maps[1]
        return Embedding(g, F.normalize(g, dim=1))


def dense_step() -> Step:
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(1, 5, 7, generator=generator, dtype=torch.float64)
    reach = Reach(np.arange(5), (NO_EDGES, NO_EDGES))
    return Step(STEP, Dense(), DenseRows(x), reach, generator, 2)


def test_the_similarity_network_learns_by_the_exact_gradient_after_a_step() -> None:
    """Differentiate twice, through two views and a third pass with the dropout of the first."""
    model, step = objective(inner_rate=0.02, labelled_share=0.4), dense_step()
    model.on_epoch_start(1, None)
    state = step.generator.get_state()
    theta = dict(step.encoder.named_parameters())
    of_head = dict(model.head.named_parameters())
    weak, strong = (view.g[ROWS] for view in step.views())
    state_after = step.generator.get_state()
    loss = torch.stack(list(base_terms(model, weak, strong, 1).values())).sum()
    moving = [*theta.values(), *of_head.values()]
    slopes = torch.autograd.grad(loss, moving, create_graph=True)
    stepped = [p - 0.02 * slope for p, slope in zip(moving, slopes, strict=True)]
    step.generator.set_state(state)
    arguments = (step.inputs, step.reach, step.generator)
    g = functional_call(
        step.encoder, dict(zip(theta, stepped[: len(theta)], strict=True)), arguments
    ).g
    logits = functional_call(
        model.head, dict(zip(of_head, stepped[len(theta) :], strict=True)), (g[ROWS],)
    )
    after = F.cross_entropy(logits[[1, 4]], torch.tensor([0, 1]))
    exact = torch.autograd.grad(after, list(model.simnet.parameters()))

    before = [p.detach().clone() for p in moving]
    step.generator.set_state(state)
    found = model.simnet_gradients(step)
    assert torch.equal(step.generator.get_state(), state_after)  # the next views are fresh
    assert all(torch.equal(p, old) for p, old in zip(moving, before, strict=True))
    for gradient, slope in zip(found, exact, strict=True):
        scale = float(slope.abs().max())
        assert scale > 0
        torch.testing.assert_close(gradient, slope, rtol=5e-3, atol=5e-3 * scale)


def test_through_graph_attention_it_equals_differences_of_the_loss_after_the_step(
    tiny_task: Task, tiny: Tiny
) -> None:
    """Along the gradient found, the loss after a long step changes as fast as the gradient says."""
    run = Run(tiny_task, tiny("openldn", inner_rate=1.0))
    run._begin_epoch()
    step, model = prepared(run, np.arange(tiny_task.graph.n_nodes)), run.objective
    assert isinstance(model, OpenLDN)
    labels, rows = run.known.labels[step.batch.nodes], step.batch.rows
    state = step.generator.get_state()
    gradient = model.simnet_gradients(step)
    length = torch.cat([part.flatten() for part in gradient]).norm().item()
    theta = [*step.encoder.parameters(), *model.head.parameters()]
    omega = list(model.simnet.parameters())

    def loss_after(way: float) -> float:
        with moved(omega, gradient, way / length):
            step.generator.set_state(state)
            views = step.views()
            terms = model._base_terms(views, step.batch, model.simnet(views.first.g[rows]))
            slopes = torch.autograd.grad(torch.stack(list(terms.values())).sum(), theta)
            with moved(theta, slopes, -1.0), torch.no_grad():
                step.generator.set_state(state)
                logits = model.head(step.views().first.g[rows])
                return F.cross_entropy(logits[labels >= 0], labels[labels >= 0]).item()

    slope = (loss_after(0.1) - loss_after(-0.1)) / 0.2
    assert slope == pytest.approx(length, rel=0.05)


def test_only_the_first_phase_trains_the_similarity_network(tiny_task: Task, tiny: Tiny) -> None:
    def simnet(**settings: Any) -> list[Tensor]:
        recipe = tiny("openldn", base_epochs=2, continue_from_base=True, **settings)
        model = train(tiny_task, recipe, progress=False).objective
        assert isinstance(model, OpenLDN)
        return list(model.simnet.parameters())

    one, two, three = (simnet(epochs=epochs) for epochs in (1, 2, 3))
    assert not any(torch.equal(a, b) for a, b in zip(one, two, strict=True))
    assert all(torch.equal(a, b) for a, b in zip(two, three, strict=True))


@pytest.mark.parametrize("continues", [False, True])
def test_the_closed_world_starts_anew_or_goes_on(
    tiny_task: Task, tiny: Tiny, continues: bool
) -> None:
    recipe = tiny("openldn", base_epochs=2, epochs=3, continue_from_base=continues)
    recipe = recipe.with_settings(learning_rate=1e-30)
    initial = Run(tiny_task, recipe).encoder.state_dict()
    result = train(tiny_task, recipe, progress=False)
    final = result.encoder.state_dict()
    same = [torch.equal(initial[name], final[name]) for name in initial if "bias" not in name]
    assert same == [continues] * len(same)
    assert (result.history["loss_pair"].isna().tolist()) == [False, False, True]
    assert (result.history["loss_novel"].isna().tolist()) == [True, True, False]


@pytest.mark.parametrize("continues", [False, True])
@pytest.mark.parametrize("stop", [1, 2, 3])
def test_a_run_goes_on_across_the_phases_to_the_same_bytes(
    tiny_task: Task, tiny: Tiny, tmp_path: Path, stop: int, continues: bool
) -> None:
    def fit(epochs: int, path: Path | None = None) -> TrainResult:
        settings = {"base_epochs": 2, "refresh": 3, "continue_from_base": continues}
        recipe = tiny("openldn", epochs=epochs, **settings)
        return train(tiny_task, recipe, checkpoint=path, progress=False)

    fit(stop, tmp_path / "run")
    resumed, straight = fit(4, tmp_path / "run"), fit(4)
    assert resumed.snapshot.z.tobytes() == straight.snapshot.z.tobytes()
    assert resumed.groups.tobytes() == straight.groups.tobytes()
    state, other = resumed.objective.state_dict(), straight.objective.state_dict()
    assert all(torch.equal(state[name], other[name]) for name in state)


def test_pseudo_labels_are_refreshed_every_few_epochs() -> None:
    model = objective(base_epochs=3, refresh=2, n_pseudo=1)
    seen = []
    for epoch in range(1, 9):
        logits = torch.zeros(N, N_CLASSES)
        logits[[1, 2, 4, 5, 6, 8, 9][epoch - 2], 2] = 1.0  # another node each time
        model.on_epoch_start(epoch, snapshot(logits, epoch - 1) if epoch > 1 else None)
        seen.append(torch.nonzero(model.pseudo_labels >= 0).flatten().tolist())
    # Epochs 4, 6 and 8 look at what the epochs 3, 5 and 7 found.
    assert seen == [[], [], [], [4], [4], [6], [6], [9]]


def test_it_is_fresh_only_where_the_second_phase_begins() -> None:
    fresh, going_on = objective(base_epochs=3), objective(base_epochs=3, continue_from_base=True)
    assert [epoch for epoch in range(1, 20) if fresh.starts_anew(epoch)] == [4]
    assert not any(going_on.starts_anew(epoch) for epoch in range(1, 20))


def test_the_most_confident_of_each_new_class_are_labelled() -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(60, 5)).astype(np.float32)
    logits[7] = logits[8]  # a tie
    among = rng.random(60) < 0.7
    p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    expected = np.full(60, -1)
    for c in (2, 3, 4):
        own = [i for i in range(60) if among[i] and max(p[i]) == p[i, c]]
        for i in sorted(own, key=lambda i: -p[i, c])[:4]:
            expected[i] = c
    found = most_confident(logits, among, 2, 4)
    assert found.tolist() == expected.tolist()
    assert [(found == c).sum() for c in range(5)] == [0, 0, 4, 4, 4]


def test_as_many_nodes_a_new_class_as_labels_a_seen_class() -> None:
    logits = torch.eye(N_CLASSES)[torch.tensor([2, 2, 2, 2, 3, 3, 3, 3, 3, 2])]
    model = objective(base_epochs=1)  # three labelled nodes of two classes: two each
    model.on_epoch_start(2, snapshot(logits))
    assert [(model.pseudo_labels == c).sum().item() for c in range(4)] == [0, 0, 2, 2]


def test_the_recipe_is_that_of_the_notes() -> None:
    recipe = get_recipe("openldn")
    config = recipe.config
    assert (recipe.train.epochs, recipe.train.batch_size) == (100, 2048)
    assert recipe.train.batching == HalfLabelledBatches()
    assert recipe.predictor == HeadPredictor()
    assert (config.base_epochs, config.refresh, config.confidence) == (50, 10, 0.5)
    assert (config.simnet_rate, config.inner_rate, config.simnet_hidden) == (1e-4, 1e-3, 100)
    model = OpenLDN(KNOWN, DIM, config, torch.Generator())
    (group,) = model.optimisers["simnet"].param_groups
    assert group["lr"] == 1e-4
    assert {id(p) for p in group["params"]} == {id(p) for p in model.simnet.parameters()}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"base_epochs": 0}, "base_epochs must be at least 1"),
        ({"refresh": 0}, "refresh must be at least 1"),
        ({"n_pseudo": 0}, "n_pseudo must be at least 1"),
        ({"simnet_hidden": 0}, "simnet_hidden must be at least 1"),
        ({"simnet_rate": 0.0}, "simnet_rate must be positive"),
        ({"inner_rate": float("nan")}, "inner_rate must be positive"),
        ({"labelled_share": 1.0}, "labelled_share is a share"),
        ({"confidence": -0.1}, "confidence is a share"),
        ({"uda": -1.0}, "uda cannot be negative"),
    ],
)
def test_settings_without_a_meaning_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        OpenLDNConfig(**settings)
