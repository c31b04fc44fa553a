from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from openima.graph.task import Task
from openima.methods import Recipe
from openima.study.plan import read_study
from openima.train.trainer import train

REPOSITORY = Path(__file__).resolve().parent.parent
Tiny = Callable[..., Recipe]


@pytest.fixture(scope="module")
def bench() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(REPOSITORY))
        yield import_module("benchmarks.methods")


def test_the_methods_are_those_of_the_main_comparison(bench: Any) -> None:
    compared = {trial.method for trial in read_study(REPOSITORY / "studies/overall.toml").trials}
    assert {part.method for part in bench.PARTS} == compared
    assert len(compared) == 12
    for method in compared:
        assert sum(part.share for part in bench.PARTS if part.method == method) == 1.0


def test_the_timed_epoch_is_one_of_its_phase(tiny_task: Task, tiny: Tiny, bench: Any) -> None:
    phases = [part for part in bench.PARTS if part.phase]
    assert [part.phase for part in phases] == ["first phase", "closed world"]
    for part, term in zip(phases, ("loss_pair", "loss_novel"), strict=True):
        recipe = bench.shortened(tiny(part.method), part)
        last = train(tiny_task, recipe, progress=False).history.iloc[-1]
        known = last.reindex(["loss_pair", "loss_novel"]).dropna()
        assert known.index.tolist() == [term]


def test_a_run_costs_its_epochs(tiny_task: Task, tiny: Tiny, bench: Any) -> None:
    part = next(part for part in bench.PARTS if part.phase)
    found = bench.costs(tiny_task, tiny("openldn", epochs=100), part)
    assert 0 < found["steps"] < found["epoch"]
    assert (found["n_steps"], found["n_epochs"]) == (2, 50)
    slower = {**found, "epoch": 6.0, "peak_mb": 2000.0}
    faster = {**found, "epoch": 3.0, "peak_mb": 1000.0}
    (row,) = bench.rows_of({part: [slower, faster]})
    assert row[0] == "openldn, first phase"
    assert row[1] == "3.00"
    assert row[3:] == ["2", "50", "2.5", "2,000"]
