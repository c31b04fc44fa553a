"""A run can be used from any epoch that SC&ACC may choose, as it was then."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from openima.errors import InputError
from openima.graph.graph import Graph
from openima.graph.task import Task
from openima.methods import Recipe, get_recipe, recipes
from openima.metrics.selection import contenders
from openima.train import trainer
from openima.train.learned import Learned, look_at
from openima.train.trainer import Run, TrainResult, train

Tiny = Callable[..., Recipe]
LEAST: dict[str, Any] = {"hidden": 4, "heads": 1, "batch_size": 120}


def fit(task: Task, recipe: Recipe, path: Path | None = None) -> TrainResult:
    return train(task, recipe, checkpoint=path, progress=False)


def choose(row: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the epochs figures with which SC&ACC chooses that of `row`."""
    epochs = iter([0.9 if i == row else 0.5 + 0.01 * i for i in range(100)])

    def evaluate(*_: object) -> dict[str, float]:
        return {"sc": (figure := next(epochs)), "val_acc": figure}

    monkeypatch.setattr(trainer, "evaluate", evaluate)


@pytest.mark.parametrize("name", sorted(recipes()))
@pytest.mark.parametrize("row", [0, 1])
def test_the_chosen_epoch_is_as_if_training_had_ended_there(
    tiny_task: Task, tiny: Tiny, monkeypatch: pytest.MonkeyPatch, name: str, row: int
) -> None:
    short = fit(tiny_task, tiny(name, epochs=row + 1, **LEAST))
    choose(row, monkeypatch)
    long = fit(tiny_task, tiny(name, epochs=3, **LEAST))
    assert long.best == row
    chosen, at_the_end = long.chosen, short.snapshot
    assert chosen.snapshot.epoch == at_the_end.epoch == row + 1
    assert chosen.snapshot.z.tobytes() == at_the_end.z.tobytes()
    if at_the_end.logits is not None:
        assert chosen.snapshot.logits is not None
        assert chosen.snapshot.logits.tobytes() == at_the_end.logits.tobytes()
    state, expected = chosen.learned.state(), Learned(short.encoder, short.objective).state()
    assert list(state) == list(expected)
    assert all(state[k].numpy().tobytes() == expected[k].numpy().tobytes() for k in state)
    assert long.recipe.predictor(chosen.snapshot).tolist() == long.groups[row].tolist()


def test_the_last_epoch_is_there_already(tiny_task: Task, tiny: Tiny) -> None:
    result = fit(tiny_task, tiny(epochs=1, **LEAST))
    assert result.chosen.snapshot is result.snapshot
    assert result.chosen.learned.encoder is result.encoder


def test_an_interruption_does_not_change_what_is_chosen(
    tiny_task: Task, tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose(1, monkeypatch)
    straight = fit(tiny_task, tiny(epochs=4, **LEAST)).chosen
    choose(1, monkeypatch)
    path = tmp_path / "run.safetensors"
    for epochs in (1, 3):
        fit(tiny_task, tiny(epochs=epochs, **LEAST), path)
    resumed = fit(tiny_task, tiny(epochs=4, **LEAST), path)
    assert resumed.best == 1
    assert resumed.chosen.snapshot.z.tobytes() == straight.snapshot.z.tobytes()
    finished = fit(tiny_task, tiny(epochs=4, **LEAST), path)
    assert finished.chosen.snapshot.z.tobytes() == straight.snapshot.z.tobytes()
    assert finished.snapshot.epoch == 4


def test_only_epochs_that_may_yet_be_chosen_are_kept(
    tiny_task: Task, tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A good first epoch stays; later ones, each better than the one before, replace each other."""
    choose(0, monkeypatch)
    run = Run(tiny_task, tiny(**LEAST))
    kept = []
    for _ in range(4):
        list(run.one_epoch())
        kept.append(sorted(run.kept))
        rows = contenders([row["sc"] for row in run.rows], [row["val_acc"] for row in run.rows])
        assert set(run.kept) <= set(np.flatnonzero(rows)) | {len(run.rows) - 1}
    assert kept == [[], [0], [0], [0]]  # of the last epoch the weights are those in use


def test_a_graph_that_gives_no_finite_embeddings_is_refused(tiny_task: Task, tiny: Tiny) -> None:
    result = fit(tiny_task, tiny(epochs=1, **LEAST))
    huge = np.full((5, tiny_task.graph.n_features), 3e38, dtype=np.float32)
    graph = Graph.from_edges([], [], huge, directed=False, name="huge")
    with pytest.raises(InputError, match=r"huge: the embeddings are not finite"):
        look_at(result.chosen.learned, graph, get_recipe("openima"))


def test_a_look_at_sampled_neighbours_sees_the_same_ones_again(
    tiny_task: Task, tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose(0, monkeypatch)
    recipe = tiny(epochs=2, look_fan_out=2, **LEAST)
    result = fit(tiny_task, recipe)
    first = fit(tiny_task, recipe.with_settings(epochs=1))
    assert result.chosen.snapshot.z.tobytes() == first.snapshot.z.tobytes()
    exact = recipe.with_settings(look_fan_out=None)
    assert look_at(first.chosen.learned, tiny_task.graph, exact).z.tobytes() != (
        first.snapshot.z.tobytes()
    )
