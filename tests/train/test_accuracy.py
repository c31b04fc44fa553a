"""Whether what is trained finds the classes: on a made graph, and on two real ones."""

import time
from pathlib import Path

import pytest

from openima.graph.datasets import load_dataset
from openima.graph.synthetic import synthetic
from openima.graph.task import PAPER_SEEDS
from openima.methods import get_recipe
from openima.train.trainer import train


def test_hidden_classes_that_stand_apart_are_found_in_under_a_minute() -> None:
    graph = synthetic(2000, 8, n_features=64, homophily=0.9, feature_noise=0.5, seed=0)
    task = graph.open_world_task(seed=0)
    assert (task.n_seen, task.n_novel) == (4, 4)
    start = time.perf_counter()
    result = train(task, get_recipe("openima").with_settings(seed=0), progress=False)
    assert time.perf_counter() - start < 60
    assert len(result.history) == 20
    best = result.history.iloc[result.best]
    assert best["all"] >= 0.95
    assert best["novel"] >= 0.95
    assert best["sc"] > 0.1 + result.history["sc"].iloc[0]
    assert task.truth is not None
    seen = task.truth < task.n_seen
    assert (result.classes()[seen] == task.truth[seen]).mean() >= 0.95


@pytest.mark.slow
@pytest.mark.parametrize(("dataset", "least"), [("citeseer", 0.65), ("photo", 0.79)])
def test_real_graphs_reach_the_accuracy_of_the_specification(
    data_root: Path, dataset: str, least: float
) -> None:
    seed = PAPER_SEEDS[0]
    task = load_dataset(dataset, root=data_root).open_world_task(seed)
    recipe = get_recipe("openima").for_dataset(dataset).with_settings(seed=seed)
    result = train(task, recipe, progress=False)
    assert len(result.history) == 20
    assert result.history["all"].iloc[result.best] >= least
