"""Processes that are killed and processes that share a folder, as a user has them."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from multiprocessing import Pipe
from pathlib import Path

import pandas as pd
import pytest

from openima.errors import InputError
from openima.study.claims import Holder
from openima.study.plan import Study, read_study
from openima.study.runner import _worker, default_threads, run_study
from openima.study.store import Results
from openima.study.worker import Options

MakeStudy = Callable[..., Study]
WriteStudy = Callable[..., Path]
COSTS = ["seconds", "cpu_seconds", "cpu_seconds_steps", "finished"]
COSTS += ["peak_memory_mb", "peak_gpu_memory_mb", "commit"]  # someone may commit meanwhile
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


def test_processes_that_are_killed_are_told(write_study: WriteStudy, tmp_path: Path) -> None:
    study = write_study('methods = ["openima"]\nseeds = 2', small=LONG.replace("12", "4000"))
    folder = tmp_path / "results"
    process = subprocess.Popen(
        command(study, folder, "--jobs", "2"), stdout=subprocess.PIPE, text=True
    )
    running = Results(folder).running
    try:
        wait_for(lambda: len(list(running.glob("*.safetensors"))) == 2)
        pids = [json.loads(path.read_text())["pid"] for path in running.glob("*.lock")]
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        printed, _ = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 1
    lines = printed.splitlines()
    assert lines[0] == "Trials: 2 left."
    assert sorted(lines[1:]) == sorted(
        f"Process {pid} was killed by SIGKILL. Remedy: run the study again, with fewer --jobs if "
        "memory ran out."
        for pid in pids
    )


def test_a_process_that_fails_is_told(make_study: MakeStudy, tmp_path: Path) -> None:
    study = make_study('methods = ["infonce"]\nseeds = 2')
    wrong = Options(str(tmp_path), device="cpu", threads=0)
    outcome = run_study(study.title, study.trials, wrong, jobs=2, shown=False)
    assert outcome.left == 2
    ends = [text.partition(" ended ")[2] for text in outcome.died]
    assert ends == ["with status 1; its error is above."] * 2


def test_a_process_stops_when_nobody_listens(make_study: MakeStudy, tmp_path: Path) -> None:
    study = make_study('methods = ["infonce"]\nseeds = 1')
    ours, theirs = Pipe(duplex=False)
    ours.close()
    with pytest.raises(SystemExit) as stopped:
        _worker(study.trials, Options(str(tmp_path), device="cpu"), theirs)
    assert not stopped.value.code
    assert list(Results(tmp_path).running.iterdir()) == []
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit, match="file: results are kept in a folder"):
        _worker(study.trials, Options(str(tmp_path / "file")), theirs)


def test_a_folder_that_cannot_be_written_to_is_told(make_study: MakeStudy, tmp_path: Path) -> None:
    study = make_study('methods = ["infonce"]\nseeds = 1')
    (tmp_path / "running").touch()  # where a folder should be
    with pytest.raises(InputError, match="this cannot be written"):
        quiet(tmp_path, study)


def test_what_a_killed_process_left_of_a_finished_trial_is_removed(
    make_study: MakeStudy, tmp_path: Path
) -> None:
    study = make_study('methods = ["infonce"]\nseeds = 2')
    assert quiet(tmp_path, study) == "Trials: 2 run."
    running, (first, second) = Results(tmp_path).running, study.trials
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    dead, alive = (
        json.dumps({"host": Holder.me().host, "pid": pid}) for pid in (ended.pid, os.getpid())
    )
    (running / f"{first.id}.0.lock").write_text(dead)
    (running / f"{first.id}.cpu.safetensors").touch()
    (running / f"{second.id}.0.lock").write_text(alive)
    (running / "unfinished.0.lock").write_text(dead)
    assert quiet(tmp_path, study) == "Trials: 2 there already."
    left = sorted(path.name for path in running.iterdir())
    assert left == sorted([f"{second.id}.0.lock", "unfinished.0.lock"])


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
