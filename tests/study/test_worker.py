import json
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from openima.errors import InputError
from openima.graph.datasets import load_dataset
from openima.graph.task import Task
from openima.methods import Recipe
from openima.study import environment, worker
from openima.study.claims import take
from openima.study.plan import METRICS, Study
from openima.study.store import Results
from openima.study.trial import Trial
from openima.study.worker import Event, Options, run_alike, run_trial, work
from openima.train.trainer import TrainResult, train

MakeStudy = Callable[..., Study]
COSTS = ["seconds", "cpu_seconds", "cpu_seconds_steps"]


@pytest.fixture
def study(make_study: MakeStudy) -> Study:
    return make_study('methods = ["infonce"]\nseeds = 2')


def options(folder: Path) -> Options:
    return Options(str(folder), device="cpu", save_every=0.0)


def test_rows_are_those_of_training_and_say_where_they_come_from(
    study: Study, tmp_path: Path
) -> None:
    trial = study.trials[0]
    epochs: list[int] = []
    rows = run_trial(trial, options(tmp_path), epochs.append)
    task = load_dataset("digits").open_world_task(trial.seed)
    expected = train(task, trial.recipe, progress=False).history
    pd.testing.assert_frame_equal(
        rows[expected.columns].drop(columns=COSTS), expected.drop(columns=COSTS), check_exact=True
    )
    assert epochs == [1, 2, 3]
    once = rows.drop(columns=expected.columns).drop_duplicates()
    assert len(once) == 1
    about = once.iloc[0]
    assert (about["trial"], about["method"], about["code"]) == (trial.id, "infonce", trial.code)
    assert json.loads(about["settings"])["hidden"] == 8
    assert json.loads(about["versions"])["torch"]
    assert 50 < about["peak_memory_mb"] < 50_000
    numbers = set(rows.select_dtypes("number").columns) - {"seed", "per_class", "threads"}
    assert {name for name in numbers if not name.startswith("loss_")} == set(METRICS)
    assert platform.node() not in " ".join(str(value) for value in about)


def test_a_finished_trial_leaves_its_rows_alone(study: Study, tmp_path: Path) -> None:
    told: list[Event] = []
    work(study.trials, options(tmp_path), told.append)
    results = Results(tmp_path)
    assert results.finished() == {trial.id for trial in study.trials}
    assert list(results.running.iterdir()) == []
    kinds = [(event.kind, event.position) for event in told]
    one = [("begun", 0), *[("epoch", 0)] * 3, ("done", 0)]
    assert kinds == one + [(kind, 1) for kind, _ in one]
    again: list[Event] = []
    work(study.trials, options(tmp_path), again.append)
    assert again == []


def test_trials_that_train_alike_are_trained_once_and_have_the_rows_of_their_own(
    make_study: MakeStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = make_study(
        'methods = ["opencon", "opencon-two-stage"]\nseeds = 1',
        'methods = ["openwgl"]\nseeds = 1\ngrid = { threshold = ["mixture", "quantile"] }',
    )
    apart = [run_trial(trial, options(tmp_path / "apart")) for trial in study.trials]
    trained: list[str] = []
    usual = train

    def counted(task: Task, recipe: Recipe, **how: Any) -> TrainResult:
        trained.append(recipe.name)
        return usual(task, recipe, **how)

    monkeypatch.setattr(worker, "train", counted)
    told: list[Event] = []
    work(study.trials, options(tmp_path), told.append)
    assert trained == ["opencon", "openwgl"]
    assert [event.position for event in told if event.kind == "done"] == [0, 1, 2, 3]
    results = Results(tmp_path)
    assert list(results.running.iterdir()) == []
    for trial, expected in zip(study.trials, apart, strict=True):
        found = pd.read_parquet(results.file_of(trial.id))
        differing = [*COSTS, "finished", "peak_memory_mb"]
        pd.testing.assert_frame_equal(
            found.drop(columns=differing), expected.drop(columns=differing), check_exact=True
        )


def test_after_a_restart_those_that_train_alike_run_on_their_own(
    make_study: MakeStudy, tmp_path: Path
) -> None:
    one, other = make_study('methods = ["opencon", "opencon-two-stage"]\nseeds = 1').trials

    def stop(epoch: int) -> None:
        if epoch == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_alike(one, [other], options(tmp_path), on_epoch=stop)
    assert list(run_alike(one, [other], options(tmp_path))) == [one]


def test_a_trial_that_fails_does_not_stop_the_others(
    make_study: MakeStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    methods = ["infonce", "openima", "openima-only-ce", "openima-no-ce"]
    study = make_study(f"methods = {methods}\nseeds = 1")
    usual = train

    def fails(task: Task, recipe: Recipe, **how: Any) -> TrainResult:
        if recipe.name == "infonce":
            raise InputError("the loss became nan")
        if recipe.name == "openima":
            raise RuntimeError("out of memory")
        if recipe.name == "openima-only-ce":
            raise OSError("the disk is full")
        return usual(task, recipe, **how)

    monkeypatch.setattr(worker, "train", fails)
    told: list[Event] = []
    work(study.trials, options(tmp_path), told.append)
    ends = [(e.position, e.kind, e.text) for e in told if e.kind in ("failed", "done")]
    assert ends[:3] == [
        (0, "failed", "the loss became nan."),
        (1, "failed", "RuntimeError: out of memory"),
        (2, "failed", "OSError: the disk is full"),
    ]
    assert ends[3][:2] == (3, "done")
    error = Results(tmp_path).error(study.trials[1].id)
    assert error is not None
    assert "Traceback" in error


def test_a_trial_that_another_process_works_on_is_left_to_it(study: Study, tmp_path: Path) -> None:
    results = Results(tmp_path)
    claim = take(results.running, study.trials[0].id)
    assert claim is not None
    with claim:
        work(study.trials, options(tmp_path), print)
        assert results.finished() == {study.trials[1].id}
    work(study.trials, options(tmp_path), print)
    assert len(results.finished()) == 2


def test_no_trial_is_begun_after_the_time_limit(study: Study, tmp_path: Path) -> None:
    for seconds in (0.0, 1e-9):
        limited = Options(str(tmp_path), device="cpu", time_limit=seconds)
        work(study.trials, limited, print)
        assert Results(tmp_path).finished() == set()


def test_rows_name_the_commit_at_which_work_began(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = ["a" * 12]

    def git(_: Path, command: str, *__: str) -> str:
        return head[0] if command == "rev-parse" else ""

    def check_out(_: Event) -> None:
        head[0] = "b" * 12

    monkeypatch.setattr(environment, "_git", git)
    environment.commit.cache_clear()
    try:
        work(study.trials[:1], options(tmp_path), check_out)
    finally:
        environment.commit.cache_clear()
    rows = pd.read_parquet(Results(tmp_path).file_of(study.trials[0].id))
    assert set(rows["commit"]) == {"a" * 12}


def test_an_interrupted_trial_goes_on_and_is_given_back(study: Study, tmp_path: Path) -> None:
    trial: Trial = study.trials[0]
    whole = run_trial(trial, options(tmp_path / "whole"))

    def interrupt(event: Event) -> None:
        if event.epoch == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work([trial], options(tmp_path), interrupt)
    results = Results(tmp_path)
    left = [path.name for path in results.running.iterdir()]
    assert left == [f"{trial.id}.cpu.safetensors"]
    told: list[Event] = []
    work([trial], options(tmp_path), told.append)
    assert [event.epoch for event in told if event.kind == "epoch"] == [3]
    costs = [*COSTS, "peak_memory_mb", "peak_gpu_memory_mb", "finished"]
    resumed = pd.read_parquet(results.file_of(trial.id))
    pd.testing.assert_frame_equal(
        resumed.drop(columns=costs),
        whole.drop(columns=costs),
        check_exact=True,
        check_dtype=False,
    )
