"""What the trainer shows an objective, step by step, by an objective that remembers it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from openima.graph.task import Task
from openima.methods.base import Batch, Known, LossOutput, Objective, Recipe, Views
from openima.nn.encoder import Embedding
from openima.train.snapshot import Snapshot
from openima.train.trainer import TrainResult, train

Tiny = Callable[..., Recipe]


def fit(task: Task, recipe: Recipe) -> TrainResult:
    return train(task, recipe, progress=False)


@dataclass(frozen=True)
class RecorderConfig:
    """Settings of the objective below."""

    wants_train: bool = True


class Recorder(Objective):
    """Learns next to nothing, and remembers what the trainer showed it."""

    def __init__(
        self, known: Known, dim: int, config: RecorderConfig, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.config, self.drawn_with = config, (known, dim, generator)
        self.starts: list[tuple[int, Snapshot | None]] = []
        self.steps: list[tuple[Views, Batch]] = []

    @property
    def wants_train_nodes(self) -> bool:
        return self.config.wants_train

    def on_epoch_start(self, epoch: int, snapshot: Snapshot | None) -> None:
        self.starts.append((epoch, snapshot))

    def loss(self, views: Views, batch: Batch) -> LossOutput:
        self.steps.append((views, batch))
        number = float(len(self.steps))
        return LossOutput(views.first.z.sum() * 1e-6, {"number": number, "size": len(batch.nodes)})

    def logits(self, embedding: Embedding) -> Tensor:
        return embedding.g[:, :1]


def recorder(tiny: Tiny, **settings: Any) -> Recipe:
    base = tiny()
    train_config = replace(base.train, **settings)
    return replace(base, objective=Recorder, config=RecorderConfig(), train=train_config)


def recorded(result: TrainResult) -> Recorder:
    assert isinstance(result.objective, Recorder)
    return result.objective


def test_an_epoch_visits_every_node_once_in_an_order_of_its_own(
    tiny_task: Task, tiny: Tiny
) -> None:
    steps = recorded(fit(tiny_task, recorder(tiny, batch_size=50, epochs=2))).steps
    assert [len(batch.nodes) for _, batch in steps] == [50, 50, 20] * 2
    nodes = torch.cat([batch.nodes for _, batch in steps]).view(2, 120)
    assert nodes.sort(dim=1).values.tolist() == [list(range(120))] * 2
    assert nodes[0].tolist() != nodes[1].tolist()


def test_rows_of_the_views_are_those_of_batch_and_train_nodes(tiny_task: Task, tiny: Tiny) -> None:
    """Without dropout and with a learning rate of almost 0, views are embeddings of all nodes."""
    recipe = recorder(tiny, batch_size=50, epochs=1, learning_rate=1e-30)
    encoder = replace(recipe.encoder, feature_dropout=0.0, attention_dropout=0.0)
    result = fit(tiny_task, replace(recipe, encoder=encoder))
    z = torch.from_numpy(result.snapshot.z)
    train_nodes = torch.from_numpy(tiny_task.train)
    for views, batch in recorded(result).steps:
        for view in views:
            torch.testing.assert_close(view.z[batch.rows], z[batch.nodes])
            torch.testing.assert_close(view.z[batch.train_rows], z[train_nodes])
            assert len(view.z) == len(np.union1d(batch.nodes.numpy(), tiny_task.train))


def test_the_two_views_differ_by_dropout(tiny_task: Task, tiny: Tiny) -> None:
    for views, _ in recorded(fit(tiny_task, recorder(tiny))).steps:
        assert views.first.z.shape == views.second.z.shape
        assert not torch.equal(views.first.z, views.second.z)
        torch.testing.assert_close(views.first.z.norm(dim=1), torch.ones(len(views.first.z)))


def test_train_nodes_are_embedded_only_where_wanted(tiny_task: Task, tiny: Tiny) -> None:
    recipe = replace(recorder(tiny), config=RecorderConfig(wants_train=False))
    for views, batch in recorded(fit(tiny_task, recipe)).steps:
        assert len(batch.train_rows) == 0
        assert len(views.first.z) == len(batch.nodes)


def test_an_epoch_starts_with_the_snapshot_of_the_one_before(tiny_task: Task, tiny: Tiny) -> None:
    result = fit(tiny_task, recorder(tiny, epochs=3))
    starts = recorded(result).starts
    assert [epoch for epoch, _ in starts] == [1, 2, 3]
    assert starts[0][1] is None
    assert [look.epoch for _, look in starts if look is not None] == [1, 2]
    last = starts[2][1]
    assert last is not None
    assert last.clusters.labels.tolist() == result.groups[1].tolist()


def test_losses_of_an_epoch_are_means_over_its_steps(tiny_task: Task, tiny: Tiny) -> None:
    history = fit(tiny_task, recorder(tiny, batch_size=50, epochs=2)).history
    assert history["loss_number"].tolist() == pytest.approx([2.0, 5.0])
    assert history["loss_size"].tolist() == pytest.approx([40.0, 40.0])


def test_the_objective_is_made_for_the_task(tiny_task: Task, tiny: Tiny) -> None:
    recipe = recorder(tiny, epochs=1)
    known, dim, generator = recorded(fit(tiny_task, recipe)).drawn_with
    assert dim == recipe.encoder.hidden
    assert known.n_classes == 4
    assert known.train.tolist() == tiny_task.train.tolist()
    assert generator.initial_seed() == recipe.train.seed
