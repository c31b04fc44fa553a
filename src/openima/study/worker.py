"""A worker: takes trials that nobody else works on, one after another, and writes their rows."""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import pandas as pd
import torch
from safetensors import SafetensorError
from threadpoolctl import threadpool_limits

from openima.errors import OpenimaError
from openima.graph.datasets import load_dataset
from openima.graph.task import LabelledGraph, Task
from openima.study.claims import STALE_AFTER, take
from openima.study.environment import (
    commit,
    forget_peak_memory,
    machine,
    peak_memory_mb,
    versions,
)
from openima.study.store import Results
from openima.study.trial import Trial, canonical
from openima.train.checkpoint import data_fingerprint
from openima.train.device import pick_device
from openima.train.evaluate import evaluate
from openima.train.trainer import Run, train


@dataclass(frozen=True)
class Options:
    """How to run trials; none of it decides on the rows but for `device` and `threads`.

    `save_every` is the time between checkpoints of a trial, `time_limit` the time after which no
    further trial is begun, `stale_after` the time after which a silent process counts as dead;
    all in seconds.
    """

    results: str
    data: str | None = None
    device: str = "auto"
    threads: int | None = None
    save_every: float = 60.0
    time_limit: float | None = None
    stale_after: float = STALE_AFTER


class Event(NamedTuple):
    """What a worker tells: which trial (its position) came how far."""

    kind: Literal["begun", "epoch", "done", "failed"]
    position: int
    epoch: int = 0
    text: str = ""


Tell = Callable[[Event], None]

_OF_THE_TRIAL = (
    *(RuntimeError, MemoryError, ArithmeticError, ValueError, LookupError),
    *(OSError, SafetensorError),  # a disk that is full, a file that is gone
)
"""Errors that make a trial fail and leave the others to be tried."""


def work(trials: Sequence[Trial], options: Options, tell: Tell) -> None:
    """Run all trials that have no rows and that no other process works on.

    Trials that train alike, and differ in how they predict, are trained once. The list is gone
    through until nothing is left to take, so that trials of a process that was killed meanwhile
    are taken over.
    """
    results, started = Results(options.results), time.monotonic()
    commit()  # of the code that runs: later another one may be checked out
    waiting = list(enumerate(trials))
    limit = math.inf if options.time_limit is None else options.time_limit
    took_one = True
    with ExitStack() as stack:
        if options.threads is not None:
            torch.set_num_threads(options.threads)
            stack.enter_context(threadpool_limits(options.threads))
        while took_one:
            took_one = False
            for position, trial in list(waiting):
                if time.monotonic() - started >= limit:
                    return
                if results.file_of(trial.id).exists() or results.error(trial.id) is not None:
                    waiting.remove((position, trial))
                else:
                    alike = {t: p for p, t in waiting if t.training == trial.training}
                    took_one |= _try(trial, alike, results, options, tell)


def _try(
    trial: Trial, alike: Mapping[Trial, int], results: Results, options: Options, tell: Tell
) -> bool:
    """Run a trial if it can be claimed, and with it those that train alike; say whether it was.

    `alike` has the positions of all of them, its own too.
    """
    with ExitStack() as claims:
        taken: list[Trial] = []
        for one in (trial, *(other for other in alike if other is not trial)):
            claim = take(results.running, one.id, options.stale_after)
            if claim is None:
                if one is trial:
                    return False
                continue
            claims.enter_context(claim)
            if not results.file_of(one.id).exists():
                taken.append(one)
            elif one is trial:  # finished by another between look and claim
                return False
        position, others = alike[trial], taken[1:]
        tell(Event("begun", position))
        try:
            found = run_alike(
                trial, others, options, on_epoch=lambda n: tell(Event("epoch", position, n))
            )
            for one, rows in found.items():
                results.write(one.id, rows)
        except OpenimaError as error:
            results.fail(trial.id, str(error))
            tell(Event("failed", position, text=str(error)))
        except _OF_THE_TRIAL as error:
            results.fail(trial.id, traceback.format_exc())
            tell(Event("failed", position, text=f"{type(error).__name__}: {error}"))
        else:
            for one, rows in found.items():
                results.clear(one.id)
                if one is not trial:
                    tell(Event("begun", alike[one]))
                    tell(Event("epoch", alike[one], len(rows)))
                tell(Event("done", alike[one], len(rows), _summary(rows)))
    return True


def run_trial(
    trial: Trial, options: Options, on_epoch: Callable[[int], None] | None = None
) -> pd.DataFrame:
    """Train, or go on where a killed process was; return one row an epoch."""
    return run_alike(trial, (), options, on_epoch)[trial]


def run_alike(
    trial: Trial,
    others: Sequence[Trial],
    options: Options,
    on_epoch: Callable[[int], None] | None = None,
) -> dict[Trial, pd.DataFrame]:
    """Train once for a trial and for `others` that train alike; return the rows of each.

    Where the training goes on from a checkpoint, the others' rows of the epochs before are
    missing, and they are left to be run on their own.
    """
    device = pick_device(options.device)
    recipe = trial.recipe.with_settings(device=str(device))
    task = _task(trial.dataset, options.data, trial.seed, trial.per_class)
    forget_peak_memory(device)
    # Each kind of device has a checkpoint of its own: its random numbers are its own too.
    name = f"{trial.id}.{str(device).replace(':', '-')}.safetensors"
    checkpoint = Results(options.results).running / name
    theirs: dict[Trial, list[dict[str, float]]] = {other: [] for other in others}

    def after_epoch(run: Run) -> None:
        for other, rows in theirs.items():
            if run.snapshot is not None and len(rows) == run.epoch - 1:
                groups = other.recipe.predictor(run.snapshot)
                rows.append(run.rows[-1] | evaluate(task, run.snapshot, groups))
        if on_epoch is not None:
            on_epoch(run.epoch)

    result = train(
        task,
        recipe,
        checkpoint=checkpoint,
        save_every=options.save_every,
        progress=False,
        on_epoch=after_epoch,
    )
    data = data_fingerprint(task)[:12]
    where = {
        **peak_memory_mb(device),
        "device": str(device),
        "threads": torch.get_num_threads(),
        "machine": machine(str(device)),
        "versions": versions(),
        "commit": commit(),
        "finished": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }
    histories = {trial: result.history}
    for other, rows in theirs.items():
        if len(rows) == len(result.history):
            histories[other] = pd.DataFrame(rows)
    return {one: _told(one, data, history, where) for one, history in histories.items()}


def _told(trial: Trial, data: str, history: pd.DataFrame, where: Mapping[str, Any]) -> pd.DataFrame:
    """Say beside each epoch's numbers of which trial they are, and where they come from."""
    about = {
        "trial": trial.id,
        "dataset": trial.dataset,
        "method": trial.method,
        "seed": trial.seed,
        "per_class": trial.per_class,
        "settings": canonical(trial.settings),
        "code": trial.code,
        "data": data,
    }
    parts = [pd.DataFrame([constants] * len(history)) for constants in (about, where)]
    return pd.concat([parts[0], history, parts[1]], axis=1)


def _summary(rows: pd.DataFrame) -> str:
    last = rows.iloc[-1]
    shown = [f"{name} {last[name]:.3f}" for name in ("sc", "val_acc", "all") if name in rows]
    return "  ".join([*shown, f"{rows['seconds'].sum():.1f} s"])


@lru_cache(maxsize=8)
def _dataset(name: str, root: str | None) -> LabelledGraph:
    return load_dataset(name, root)


@lru_cache(maxsize=8)
def _task(name: str, root: str | None, seed: int, per_class: int) -> Task:
    return _dataset(name, root).open_world_task(seed, per_class)
