"""What every registered recipe keeps to, whatever its method."""

from collections.abc import Callable, Iterator
from dataclasses import is_dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from sklearn.metrics import roc_auc_score

from openima.fitted import Fitted
from openima.graph.task import Task
from openima.methods import Recipe, get_recipe, recipes
from openima.methods.base import Objective
from openima.metrics import open_world_accuracy, silhouette
from openima.model_files import load_fitted, save_fitted
from openima.train.trainer import Run, TrainResult, train

Tiny = Callable[..., Recipe]
Settings = dict[str, object]
TIMES = ["seconds", "cpu_seconds", "cpu_seconds_steps"]
PROMISED = {"epoch", "sc", "val_acc", "all", "seen", "novel", *TIMES}
every_recipe = pytest.mark.parametrize("name", sorted(recipes()))

MARGIN = 0.4
"""By how much accuracy must exceed that of groups drawn at random."""


def fit(task: Task, recipe: Recipe, path: Path | None = None) -> TrainResult:
    return train(task, recipe, checkpoint=path, progress=False)


def of_seeds(task: Task, recipe: Recipe) -> Iterator[float]:
    """Accuracies of three runs: a small head that is drawn unluckily may keep classes merged."""
    for seed in range(3):
        result = fit(task, recipe.with_settings(seed=seed))
        yield float(result.history["all"].iloc[result.best])


@every_recipe
def test_is_described(name: str) -> None:
    recipe = get_recipe(name)
    assert recipe.title
    assert recipe.paper
    assert is_dataclass(recipe.config)
    assert hash(recipe.config) == hash(get_recipe(name).config)  # frozen, and compared by value
    for dataset in recipe.by_dataset:
        assert recipe.for_dataset(dataset).name == name


@every_recipe
def test_beats_chance_by_far(tiny_task: Task, tiny: Tiny, neighbours: Settings, name: str) -> None:
    rng = np.random.default_rng(0)
    assert tiny_task.truth is not None
    truth = tiny_task.truth[tiny_task.test]
    at_random = [
        open_world_accuracy(rng.integers(0, 4, len(truth)), truth, tiny_task.n_seen).all
        for _ in range(20)
    ]
    needed = np.mean(at_random) + MARGIN
    recipe = tiny(name, epochs=20, **neighbours)  # forty steps; detectors take a hundred and more
    assert any(found > needed for found in of_seeds(tiny_task, recipe))


@every_recipe
def test_learns(tiny_task: Task, tiny: Tiny, neighbours: Settings, name: str) -> None:
    """Test nodes of seen classes stand apart more clearly than where the encoder is untrained.

    That is the one thing that labels of seen classes give to every method. New classes need not:
    nothing pulls them apart in a detector. It has to tell new nodes from others instead.
    """
    recipe = tiny(name, epochs=10, **neighbours)
    before = Run(tiny_task, recipe).encoder.state_dict()["layers.0.weight"].clone()
    untrained = fit(tiny_task, recipe.with_settings(epochs=1, learning_rate=1e-30))
    assert torch.equal(untrained.encoder.state_dict()["layers.0.weight"], before)
    looks = untrained.snapshot, fit(tiny_task, recipe).snapshot
    assert tiny_task.truth is not None
    is_seen = tiny_task.truth[tiny_task.test] < tiny_task.n_seen
    nodes = tiny_task.test[is_seen]
    apart = [silhouette(look.z[nodes], tiny_task.truth[nodes]) for look in looks]
    assert apart[1] > 0.15 + apart[0]
    assert (looks[1].novelty is not None) == (recipe.kind == "detector")
    if looks[1].novelty is not None:
        assert roc_auc_score(~is_seen, looks[1].novelty[tiny_task.test]) > 0.8


@every_recipe
def test_history_and_result_have_the_promised_form(
    tiny_task: Task, tiny: Tiny, neighbours: Settings, name: str
) -> None:
    result = fit(tiny_task, tiny(name, **neighbours))
    history = result.history
    losses = [column for column in history.columns if column.startswith("loss_")]
    assert losses
    assert set(history.columns) >= PROMISED
    assert len(history) == len(result.groups) == 3
    assert np.isfinite(history.drop(columns=losses)).all().all()
    # A term is NaN in epochs that do without it: a warm-up has its own.
    assert not history[losses].isna().all(axis=1).any()
    assert not np.isinf(history[losses].to_numpy()).any()
    shares = history[["all", "seen", "novel", "val_acc"]].to_numpy()
    assert ((shares >= 0) & (shares <= 1)).all()
    assert history["sc"].between(-1, 1).all()
    assert result.groups.dtype == np.int32
    assert 0 <= result.groups.min() <= result.groups.max() < 4
    np.testing.assert_allclose(np.linalg.norm(result.snapshot.z, axis=1), 1.0, rtol=1e-5)
    if result.snapshot.logits is not None:
        assert result.snapshot.logits.shape in ((120, 4), (120, 2))  # all classes, or the seen
    assert set(result.classes().tolist()) <= {0, 1, 2, 3}


@every_recipe
def test_the_same_seed_gives_the_same_bytes_and_another_does_not(
    tiny_task: Task, tiny: Tiny, neighbours: Settings, name: str
) -> None:
    once, again, other = (fit(tiny_task, tiny(name, seed=seed, **neighbours)) for seed in (5, 5, 6))
    assert once.snapshot.z.tobytes() == again.snapshot.z.tobytes()
    assert once.groups.tobytes() == again.groups.tobytes()
    assert once.snapshot.z.tobytes() != other.snapshot.z.tobytes()


@every_recipe
def test_goes_on_from_a_checkpoint_to_the_same_bytes(
    tiny_task: Task, tiny: Tiny, tmp_path: Path, neighbours: Settings, name: str
) -> None:
    path = tmp_path / "run.safetensors"
    fit(tiny_task, tiny(name, epochs=2, **neighbours), path)
    resumed, straight = (fit(tiny_task, tiny(name, **neighbours), where) for where in (path, None))
    assert resumed.snapshot.z.tobytes() == straight.snapshot.z.tobytes()
    assert resumed.groups.tobytes() == straight.groups.tobytes()
    pd.testing.assert_frame_equal(
        resumed.history.drop(columns=TIMES), straight.history.drop(columns=TIMES), check_exact=True
    )


@every_recipe
def test_what_is_saved_and_loaded_says_the_same_of_any_graph(
    tiny_task: Task, tiny: Tiny, tmp_path: Path, neighbours: Settings, name: str
) -> None:
    fitted = Fitted.of(fit(tiny_task, tiny(name, **neighbours)), {})
    save_fitted(tmp_path / "model", fitted, {}, force=False)
    loaded, _ = load_fitted(tmp_path / "model", None)
    graph = tiny_task.graph
    other = replace(graph, features=0.5 * np.asarray(graph.features))

    def said(of: Fitted) -> list[bytes]:
        look = of.model.look(other)
        parts = [*look, of.model.probabilities(look), *vars(of.model.answer(look)).values()]
        parts += [*of.look, *vars(of.answer).values()]
        return [b"" if part is None else part.tobytes() for part in parts]

    assert said(loaded) == said(fitted)


@every_recipe
def test_trains_on_sampled_neighbours_and_sparse_features(
    tiny_task: Task, tiny: Tiny, name: str
) -> None:
    assert tiny_task.truth is not None
    rng = np.random.default_rng(0)
    words = tiny_task.truth[:, None] * 50 + rng.integers(0, 50, (120, 5))
    features = np.zeros((120, 200), dtype=np.float32)
    np.put_along_axis(features, words, 1.0, axis=1)
    task = replace(tiny_task, graph=replace(tiny_task.graph, features=sp.csr_array(features)))
    recipe = tiny(name, fan_outs=(5, 5), batch_size=50, epochs=6)
    assert any(found > 0.6 for found in of_seeds(task, recipe))


@every_recipe
def test_trains_without_truth(tiny_task: Task, tiny: Tiny, name: str) -> None:
    history = fit(replace(tiny_task, truth=None), tiny(name)).history
    assert not {"all", "seen", "novel", "separation"} & set(history.columns)
    assert {"sc", "val_acc"} <= set(history.columns)


@every_recipe
def test_a_batch_may_hold_one_node_and_no_labelled_one(
    tiny_task: Task, tiny: Tiny, name: str
) -> None:
    """119 and 1: the last batch of an epoch is a single node, mostly an unlabelled one."""
    result = fit(tiny_task, tiny(name, batch_size=119))
    assert np.isfinite(result.snapshot.z).all()


@every_recipe
def test_its_weights_come_from_the_given_generator_alone(
    tiny_task: Task, tiny: Tiny, name: str
) -> None:
    def objective() -> Objective:
        return Run(tiny_task, tiny(name)).objective

    torch.manual_seed(0)
    first = objective().state_dict()
    torch.manual_seed(1)
    second = objective().state_dict()
    assert all(torch.equal(first[key], second[key]) for key in first)
