from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from openima.errors import InputError
from openima.graph.task import Task
from openima.methods.base import Recipe
from openima.train import steps
from openima.train.steps import steps_of
from openima.train.trainer import Run, TrainResult, train

Tiny = Callable[..., Recipe]
SAMPLED: dict[str, Any] = {"fan_outs": (4, 6), "epochs": 2}


def fit(task: Task, recipe: Recipe) -> TrainResult:
    return train(task, recipe, progress=False)


def in_the_foreground(items: Iterable[Any]) -> Any:
    yield from items


def test_sampled_steps_are_the_same_bytes_with_and_without_a_second_thread(
    tiny_task: Task, tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead = fit(tiny_task, tiny(**SAMPLED))
    monkeypatch.setattr(steps, "prefetched", in_the_foreground)
    plain = fit(tiny_task, tiny(**SAMPLED))
    assert ahead.snapshot.z.tobytes() == plain.snapshot.z.tobytes()
    assert ahead.groups.tobytes() == plain.groups.tobytes()


def test_only_sampled_steps_are_made_in_the_background(
    tiny_task: Task, tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[bool] = []

    def noted(items: Iterable[Any]) -> Any:
        used.append(True)
        return in_the_foreground(items)

    monkeypatch.setattr(steps, "prefetched", noted)
    fit(tiny_task, tiny(epochs=2))
    assert not used
    fit(tiny_task, tiny(**SAMPLED))
    assert len(used) == 2


def test_no_thread_outlives_an_epoch_that_fails(
    tiny_task: Task, tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Run, "_learn", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fit(tiny_task, tiny(**SAMPLED))
    assert not [t for t in threading.enumerate() if t.name.startswith("prefetch")]


def test_what_goes_wrong_in_the_background_reaches_the_user(
    tiny_task: Task, tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise InputError("the file of features is gone")

    monkeypatch.setattr("openima.nn.rows.FeatureStore.rows", broken)
    with pytest.raises(InputError, match="features is gone"):
        fit(tiny_task, tiny(**SAMPLED))


@dataclass(frozen=True)
class Case:
    sample: int | None
    n_rows: int


@pytest.mark.parametrize("case", [Case(None, 16), Case(5, 5), Case(500, 16)], ids=str)
def test_a_step_has_all_training_nodes_or_a_sample_drawn_anew(
    tiny_task: Task, tiny: Tiny, case: Case
) -> None:
    run = Run(tiny_task, tiny(ce_nodes=case.sample, warm_up=False, batch_size=50))
    known = set(tiny_task.train.tolist())
    assert len(known) == 16
    samples = []
    for step in steps_of(run):
        batch = step.batch
        assert len(batch.train_rows) == case.n_rows
        nodes = tiny_task.train if batch.train_nodes is None else batch.train_nodes.numpy()
        assert set(nodes.tolist()) <= known
        assert len(set(nodes.tolist())) == case.n_rows
        targets = np.union1d(batch.nodes.numpy(), nodes)
        assert targets[batch.train_rows.numpy()].tolist() == nodes.tolist()
        assert targets[batch.rows.numpy()].tolist() == batch.nodes.tolist()
        samples.append(tuple(nodes.tolist()))
    assert len(set(samples)) == (1 if case.sample is None else 3)


def test_the_same_seed_draws_the_same_steps(tiny_task: Task, tiny: Tiny) -> None:
    def drawn(seed: int) -> list[bytes]:
        run = Run(tiny_task, tiny(**SAMPLED, seed=seed))
        return [
            part.tobytes()
            for step in steps_of(run)
            for part in (step.reach.inputs, step.batch.nodes.numpy())
        ]

    assert drawn(3) == drawn(3) != drawn(4)
