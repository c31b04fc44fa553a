"""Running a study: one process or many, a bar with the time left, what failed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from signal import Signals

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from openima.errors import InputError, OpenimaError
from openima.graph.datasets import find_dataset
from openima.study.claims import is_claimed, remove_void
from openima.study.store import Results
from openima.study.trial import Trial
from openima.study.worker import Event, Options, work

_SMALL = 2_000
"""Nodes to count for a data set whose size nobody has published."""

_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@dataclass
class Outcome:
    """How a run ended: counts of trials, why some have failed, by trial, and how processes died."""

    already: int = 0
    done: int = 0
    elsewhere: int = 0
    left: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    died: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        """Say it in a line, and a line for each failed trial and each process that died."""
        counts = {
            "run": self.done,
            "there already": self.already,
            "being run elsewhere": self.elsewhere,
            "left": self.left,
            "failed": len(self.failed),
        }
        said = [f"{n} {what}" for what, n in counts.items() if n]
        lines = [f"Trials: {', '.join(said) or 'none'}."]
        lines += [f"{trial}: {why}" for trial, why in self.failed.items()]
        lines += self.died
        return "\n".join(lines)


def run_study(
    title: str, trials: Sequence[Trial], options: Options, jobs: int = 1, shown: bool = True
) -> Outcome:
    """Run the trials that have no rows yet, in `jobs` processes; return how it ended.

    One job runs in this process. Trials that other processes work on, here or on other machines
    with the same folder, are left to them.
    """
    if jobs < 1:
        raise InputError("jobs counts processes", expected="at least 1", got=str(jobs))
    results = Results(options.results)
    finished = results.finished()
    _tidy(results, finished, options.stale_after)
    waiting = [trial for trial in trials if trial.id not in finished]
    for trial in waiting:  # what has failed before is tried again
        results.forgive(trial.id)
    outcome = Outcome(already=len(trials) - len(waiting))
    if waiting:
        with _Bar(title, waiting, shown) as bar:
            if jobs == 1:
                work(waiting, options, bar.tell)
            else:
                outcome.died = _in_processes(waiting, options, min(jobs, len(waiting)), bar)
        outcome.done, outcome.failed = bar.n_done, bar.failed
        for trial in waiting:
            if not results.file_of(trial.id).exists() and results.error(trial.id) is None:
                claimed = is_claimed(results.running, trial.id, options.stale_after)
                outcome.elsewhere += claimed
                outcome.left += not claimed
    return outcome


def _tidy(results: Results, finished: set[str], stale_after: float) -> None:
    """Remove what processes left that were killed when they had written the rows of a trial."""
    left = {path.name.partition(".")[0] for path in results.running.glob("*.*")}
    for trial in left & finished:
        results.clear(trial)
        remove_void(results.running, trial, stale_after)


def default_threads(jobs: int) -> int | None:
    """Share the cores between processes; one process alone takes what its libraries take."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return None if jobs == 1 else max(1, (cores or 1) // jobs)


class _Bar:
    """The progress of all trials; work is epochs times nodes, so the time left is to be trusted."""

    def __init__(self, title: str, trials: Sequence[Trial], shown: bool) -> None:
        self.n_done, self.failed = 0, dict[str, str]()
        self._trials, self._shown = trials, shown
        self._epochs_seen = dict.fromkeys(range(len(trials)), 0)
        self._console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[n_done]}/{task.fields[n_trials]} trials"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(elapsed_when_finished=False),
            console=self._console,
            disable=not (shown and self._console.is_terminal),
            speed_estimate_period=3600,
        )
        total = sum(_work_of(trial) * trial.recipe.train.epochs for trial in trials)
        self._bar = self._progress.add_task(title, total=total, n_done=0, n_trials=len(trials))

    def __enter__(self) -> _Bar:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def tell(self, event: Event) -> None:
        """Take note of what a worker tells."""
        trial = self._trials[event.position]
        if event.kind in ("epoch", "failed"):
            epochs = trial.recipe.train.epochs if event.kind == "failed" else event.epoch
            new = epochs - self._epochs_seen[event.position]
            self._epochs_seen[event.position] = epochs
            self._progress.advance(self._bar, new * _work_of(trial))
        if event.kind in ("done", "failed"):
            self.n_done += event.kind == "done"
            if event.kind == "failed":
                self.failed[str(trial)] = event.text
            n_over = self.n_done + len(self.failed)
            self._progress.update(self._bar, n_done=n_over)
            if self._shown:
                counted = f"{n_over}/{len(self._trials)}"
                outcome = event.text if event.kind == "done" else f"failed: {event.text}"
                self._console.print(
                    f"{counted}  {trial}  {outcome}", highlight=False, markup=False, soft_wrap=True
                )


def _work_of(trial: Trial) -> int:
    published = find_dataset(trial.dataset).published
    return published.nodes if published else _SMALL


def _in_processes(trials: Sequence[Trial], options: Options, jobs: int, bar: _Bar) -> list[str]:
    """Let processes do the work; one that dies is not waited for, its trial is another's.

    Return for each that died how it did.
    """
    context = get_context("spawn")
    if options.threads is None:
        options = replace(options, threads=default_threads(jobs))
    workers: dict[Connection, BaseProcess] = {}
    with _environment(dict.fromkeys(_THREADS, str(options.threads))):
        for _ in range(jobs):
            ours, theirs = context.Pipe(duplex=False)
            process = context.Process(target=_worker, args=(trials, options, theirs))
            process.start()
            theirs.close()
            workers[ours] = process
    at_work = list(workers)
    try:
        while at_work:
            ready = wait(at_work)
            at_work = [end for end in at_work if end not in ready or _heard(end, bar)]
    finally:
        for end, worker in workers.items():
            if end in at_work:  # we are interrupted
                worker.terminate()
            worker.join()
    return [_death(worker) for worker in workers.values() if worker.exitcode]


def _death(worker: BaseProcess) -> str:
    """Say how a process died; signals are negative exit codes."""
    code = worker.exitcode or 0
    if code > 0:
        return f"Process {worker.pid} ended with status {code}; its error is above."
    name = next((known.name for known in Signals if known == -code), f"signal {-code}")
    remedy = "run the study again, with fewer --jobs if memory ran out"
    return f"Process {worker.pid} was killed by {name}. Remedy: {remedy}."


def _heard(end: Connection, bar: _Bar) -> bool:
    """Pass on what a worker says; False if it has hung up."""
    try:
        bar.tell(Event(*end.recv()))
    except (EOFError, OSError):
        return False
    return True


def _worker(trials: Sequence[Trial], options: Options, end: Connection) -> None:
    """Work in a process of its own; stop when the process that started it is gone."""

    def tell(event: Event) -> None:
        try:
            end.send(tuple(event))
        except BrokenPipeError:
            raise SystemExit from None

    try:
        work(trials, options, tell)
    except KeyboardInterrupt:
        return
    except OpenimaError as error:
        raise SystemExit(str(error)) from None


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
