"""A study: a TOML file that says what to run, how to lay out the rows, what the paper found."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from openima.config import read_toml
from openima.errors import InputError
from openima.graph.datasets import find_dataset
from openima.graph.task import PAPER_SEEDS
from openima.methods import get_recipe
from openima.study.select import refuse_rule
from openima.study.trial import Trial, canonical

_LISTS = ("metrics", "rows", "rules", "paper")
_TEXTS = ("title", "about", "average", "figure", "notes")
_BLOCK_KEYS = ("methods", "datasets", "seeds", "settings", "grid")


@dataclass(frozen=True, eq=False)
class Study:
    """One table or figure of the paper.

    `rows` are the columns that make a row of the table, settings among them; over all other
    settings and all epochs of a seed one row is chosen, by each of `rules`. `average` adds the
    mean over that column. `paper` holds the paper's numbers: each entry has some of `rows`, or
    `rule`, to say where, and metrics. `figure` is a kind that `figures.py` draws; `notes` is what
    there is to say about the results, `place` where the study comes on the page of results.
    """

    name: str
    title: str
    about: str
    trials: tuple[Trial, ...]
    metrics: tuple[str, ...] = ("all", "seen", "novel")
    rows: tuple[str, ...] = ("dataset", "method")
    rules: tuple[str, ...] = ("sc_and_acc",)
    average: str | None = None
    figure: str | None = None
    paper: tuple[Mapping[str, Any], ...] = ()
    notes: str = ""
    place: int = 99


def read_study(path: str | Path) -> Study:
    """Read a study file; whatever it does not know is an error."""
    where = str(path)
    values = read_toml(path)
    _refuse_unknown(values, (*_TEXTS, *_LISTS, "place", "trials"), where)
    for name in ("title", "about", "trials"):
        if not values.get(name):
            raise InputError(f"a study needs {name!r}", where=where, remedy="add it")
    blocks = [_block(block, where) for block in values["trials"]]
    texts: dict[str, Any] = {k: values[k].strip() for k in _TEXTS if k in values}
    lists: dict[str, Any] = {k: tuple(values[k]) for k in _LISTS if k in values}
    place = values.get("place", Study.place)
    study = Study(Path(path).stem, trials=_in_order(blocks), place=place, **texts, **lists)
    for rule in study.rules:
        refuse_rule(rule)
    return study


def narrowed(study: Study, only: Sequence[str] = (), seeds: int | None = None) -> tuple[Trial, ...]:
    """Return the trials that fit `only`, and of these those of the first `seeds` seeds.

    `only` are texts like "dataset=photo,method=openima"; a name given twice allows both values.
    """
    wanted: dict[str, set[str]] = {}
    for condition in ",".join(only).split(",") if only else ():
        name, equals, value = condition.partition("=")
        if not equals:
            raise InputError(
                "this does not say what to run",
                expected="name=value, such as dataset=photo",
                got=repr(condition),
            )
        wanted.setdefault(name.strip(), set()).add(value.strip())
    first = PAPER_SEEDS if seeds is None else PAPER_SEEDS[:seeds]
    trials = study.trials
    for name, values in wanted.items():
        known = {_text_of(trial, name) for trial in trials} - {None}
        missing = sorted(values - {value for value in known if value is not None})
        if missing:
            raise InputError(
                f"no trial has {name}={missing[0]}",
                where=study.name,
                expected=", ".join(sorted(str(v) for v in known)) or "a column or a setting",
            )
        trials = tuple(trial for trial in trials if _text_of(trial, name) in values)
    return tuple(trial for trial in trials if trial.seed in first)


def searched(study: Study) -> list[str]:
    """Name for each trial the settings in which the trials of its data set and method differ."""
    values: dict[tuple[str, str, str], set[str]] = {}
    for trial in study.trials:
        for name, value in trial.changes.items():
            values.setdefault((trial.dataset, trial.method, name), set()).add(canonical(value))
    return [
        ", ".join(
            f"{name} {canonical(value)}"
            for name, value in trial.changes.items()
            if len(values[trial.dataset, trial.method, name]) > 1
        )
        for trial in study.trials
    ]


def _text_of(trial: Trial, name: str) -> str | None:
    if name in ("dataset", "method", "seed"):
        return str(getattr(trial, name))
    return str(trial.settings[name]) if name in trial.settings else None


def _block(block: Mapping[str, Any], where: str) -> list[list[Trial]]:
    """Return the trials of a block by seed: every data set, method and point of the grid."""
    _refuse_unknown(block, _BLOCK_KEYS, where)
    for name in ("methods", "datasets"):
        if not block.get(name):
            raise InputError(f"trials need {name!r}", where=where, expected="a list of names")
    n_seeds = block.get("seeds", len(PAPER_SEEDS))
    if not isinstance(n_seeds, int) or not 1 <= n_seeds <= len(PAPER_SEEDS):
        raise InputError(
            "seeds counts the paper's seeds",
            where=where,
            expected=f"1 to {len(PAPER_SEEDS)}",
            got=repr(n_seeds),
        )
    datasets = [find_dataset(name).name for name in block["datasets"]]
    methods = [get_recipe(name).name for name in block["methods"]]
    points = [dict(block.get("settings", {})) | point for point in _grid(block.get("grid", {}))]
    return [
        [Trial(dataset, method, seed, point) for dataset, method, point in cells]
        for seed, cells in (
            (seed, itertools.product(datasets, methods, points)) for seed in PAPER_SEEDS[:n_seeds]
        )
    ]


def _grid(axes: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    for values in itertools.product(*axes.values()):
        yield dict(zip(axes, values, strict=True))


def _in_order(blocks: Sequence[list[list[Trial]]]) -> tuple[Trial, ...]:
    """Put the first seed of all blocks first, so that every table fills evenly; each trial once."""
    by_seed = itertools.chain.from_iterable(itertools.zip_longest(*blocks, fillvalue=[]))
    return tuple({trial.id: trial for trials in by_seed for trial in trials}.values())


def _refuse_unknown(values: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    unknown = sorted(set(values) - set(known))
    if unknown:
        raise InputError(
            f"unknown key {unknown[0]!r}", where=where, expected=f"one of {', '.join(known)}"
        )
