"""Fixtures that several test modules share."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from openima.graph.synthetic import synthetic
from openima.graph.task import Task
from openima.methods import Recipe, get_recipe
from openima.predict.clustering import KMeansClustering

REPOSITORY = Path(__file__).resolve().parent.parent


def pytest_configure(config: pytest.Config) -> None:
    """Let doubtful names pass: most tests train for an epoch or two."""
    config.addinivalue_line("filterwarnings", "ignore:.*may be another class:UserWarning")


@pytest.fixture(scope="session")
def data_root() -> Path:
    """Find the folder of the real graphs; skip where they are absent."""
    root = Path(os.environ.get("OPENIMA_DATA", REPOSITORY.parent / "shared" / "data"))
    if not (root / "CiteSeer" / "raw").is_dir():
        pytest.skip(f"the real graphs are not in {root}; set OPENIMA_DATA to their folder")
    return root


@pytest.fixture(scope="session")
def tiny_task() -> Task:
    """Make a task that trains in a second: 120 nodes, two known and two hidden classes."""
    graph = synthetic(120, 4, n_features=16, homophily=0.9, feature_noise=0.4, seed=1)
    return graph.open_world_task(seed=0, per_class=8)


OF_SOME = {"projector": (64, 16), "base_epochs": 2}
"""Small settings that some methods have: three epochs go through both phases of OpenLDN."""


@pytest.fixture(scope="session")
def tiny() -> Callable[..., Recipe]:
    """Return a function that makes a recipe small and short: `tiny("openima", seed=3)`."""

    def make(name: str = "openima", **settings: object) -> Recipe:
        recipe = get_recipe(name)
        small: dict[str, object] = {"hidden": 16, "heads": 2, "epochs": 3, "batch_size": 64}
        small |= {"learning_rate": 1e-2, "clustering": KMeansClustering(n_init=2), "device": "cpu"}
        small |= {k: value for k, value in OF_SOME.items() if hasattr(recipe.config, k)}
        return recipe.with_settings(**{**small, **settings})

    return make


@pytest.fixture(scope="session", params=[None, 5], ids=["full", "sampled"])
def neighbours(request: pytest.FixtureRequest) -> dict[str, object]:
    """Make settings that take all neighbours of a node into account, or five drawn anew."""
    return {"fan_outs": (request.param, request.param)}


@pytest.fixture(scope="session")
def peak_bytes() -> Callable[[Callable[[], object]], int]:
    """Return a meter: the most memory that the tensors made by a call take at any one time."""

    def measure(work: Callable[[], object]) -> int:
        with torch.profiler.profile(profile_memory=True) as profile:
            work()
        assert profile.profiler is not None
        events: list[Any] = profile.profiler.kineto_results.events()
        changes = [(e.start_ns(), e.nbytes()) for e in events if e.name() == "[memory]"]
        now = peak = 0
        for _, change in sorted(changes, key=lambda at_and_change: at_and_change[0]):
            now += change
            peak = max(peak, now)
        return peak

    return measure
