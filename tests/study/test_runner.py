"""Processes that are killed and processes that share a folder, as a user has them."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from openima.errors import InputError
from openima.study.plan import Study, read_study
from openima.study.runner import default_threads, run_study
from openima.study.store import Results
from openima.study.worker import Options

MakeStudy = Callable[..., Study]
WriteStudy = Callable[..., Path]
COSTS = ["seconds", "cpu_seconds", "cpu_seconds_steps", "finished"]
COSTS += ["peak_memory_mb", "peak_gpu_memory_mb"]
LONG = '{ hidden = 8, heads = 2, epochs = 12, clustering = { kind = "kmeans", n_init = 1 } }'


def quiet(folder: Path, study: Study, jobs: int = 1) -> str:
    options = Options(str(folder), device="cpu", threads=1)
    return str(run_study(study.title, study.trials, options, jobs, shown=False))


def command(study: Path, folder: Path, *more: str) -> list[str]:
    program = "from openima.cli import app; app()"
    arguments = ["study", "run", str(study), "--results", str(folder), "--device", "cpu", *more]
    return [sys.executable, "-c", program, *arguments, "--threads", "1", "--save-every", "0"]


def rows_of(study: Path, folder: Path) -> pd.DataFrame:
    return Results(folder).load(read_study(study).trials).drop(columns=COSTS)


def wait_for(what: Callable[[], bool], seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not what() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert what()


def test_only_what_is_missing_is_run(make_study: MakeStudy, tmp_path: Path) -> None:
    study = make_study('methods = ["infonce"]\nseeds = 3')
    some = Study(study.name, study.title, study.about, study.trials[:1])
    assert quiet(tmp_path, some) == "Trials: 1 run."
    results = Results(tmp_path)
    results.pack("packed", results.load(some.trials))
    results.file_of(some.trials[0].id).unlink()
    assert quiet(tmp_path, study) == "Trials: 2 run, 1 there already."
    assert quiet(tmp_path, study) == "Trials: 3 there already."


def test_what_failed_is_told_and_tried_again(make_study: MakeStudy, tmp_path: Path) -> None:
    study = make_study('methods = ["infonce"]\nseeds = 1\ngrid = { learning_rate = [1e30] }')
    told = quiet(tmp_path, study)
    assert told.startswith("Trials: 1 failed.\ndigits  infonce")
    assert "lower the learning rate" in told
    assert quiet(tmp_path, study) == told


def test_two_jobs_make_the_rows_of_one(make_study: MakeStudy, tmp_path: Path) -> None:
    study = make_study('methods = ["infonce", "openima"]\nseeds = 2')
    assert quiet(tmp_path / "one", study) == "Trials: 4 run."
    assert quiet(tmp_path / "two", study, jobs=2) == "Trials: 4 run."
    one, two = (Results(tmp_path / name).load(study.trials) for name in ("one", "two"))
    pd.testing.assert_frame_equal(
        one.drop(columns=COSTS), two.drop(columns=COSTS), check_exact=True
    )
    with pytest.raises(InputError, match="jobs counts processes"):
        quiet(tmp_path, study, jobs=0)


def test_a_killed_study_goes_on_to_the_rows_of_an_uninterrupted_one(
    write_study: WriteStudy, tmp_path: Path
) -> None:
    study = write_study('methods = ["openima", "infonce"]\nseeds = 1', small=LONG)
    trials = read_study(study).trials
    killed = Results(tmp_path / "killed")
    process = subprocess.Popen(command(study, killed.folder), stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: any(killed.running.glob("*.safetensors")))
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert process.returncode == -signal.SIGKILL
    assert killed.finished() == set()
    assert any(killed.running.glob("*.lock"))
    again = subprocess.run(
        command(study, killed.folder), capture_output=True, text=True, check=True
    )
    assert again.stdout == "Trials: 2 run.\n"
    assert list(killed.running.iterdir()) == []
    subprocess.run(command(study, tmp_path / "whole"), capture_output=True, check=True)
    whole = rows_of(study, tmp_path / "whole")
    assert len(whole) == 12 * len(trials)
    pd.testing.assert_frame_equal(rows_of(study, killed.folder), whole, check_exact=True)


def test_two_processes_with_one_folder_do_each_trial_once(
    write_study: WriteStudy, tmp_path: Path
) -> None:
    study = write_study('methods = ["openima", "infonce"]\nseeds = 4')
    folder = tmp_path / "results"
    both = [
        subprocess.Popen(
            command(study, folder), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    printed = [process.communicate(timeout=240) for process in both]
    lines = [line.split("  ", 2)[2] for _, log in printed for line in log.splitlines()]
    trials = [" ".join(line.split("  sc ")[0].split()) for line in lines]
    assert len(trials) == len(set(trials)) == 8, printed
    assert len(Results(folder).finished()) == 8


@pytest.mark.slow
def test_workers_end_when_the_process_that_started_them_is_killed(
    write_study: WriteStudy, tmp_path: Path
) -> None:
    study = write_study('methods = ["openima"]\nseeds = 4', small=LONG.replace("12", "4000"))
    folder = tmp_path / "results"
    process = subprocess.Popen(command(study, folder, "--jobs", "2"), stderr=subprocess.DEVNULL)
    running = Results(folder).running
    try:
        wait_for(lambda: len(list(running.glob("*.safetensors"))) == 2)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    wait_for(lambda: not list(running.glob("*.lock")))


def test_cores_are_shared_between_processes() -> None:
    assert default_threads(1) is None
    assert default_threads(10_000) == 1
    assert (default_threads(2) or 0) * 2 <= max(2, os.cpu_count() or 1)
