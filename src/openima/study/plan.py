"""A study: a TOML file that says what to run, how to lay out the rows, what the paper found."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from openima.config import read_toml
from openima.errors import InputError
from openima.graph.task import PAPER_SEEDS
from openima.metrics.variance import SeenNovelVariance
from openima.study.combinations import combinations
from openima.study.select import refuse_rule
from openima.study.trial import Trial, canonical
from openima.study.values import (
    NAMES,
    NUMBER,
    PLAIN,
    TABLES,
    TEXT,
    WHOLE,
    Kind,
    refuse_mistakes,
    refuse_unknown,
)

METRICS = (
    *("all", "seen", "novel", "sc", "val_acc"),
    *(rate.name for rate in fields(SeenNovelVariance)),
    *("epoch", "seconds", "cpu_seconds", "cpu_seconds_steps"),
    *("peak_memory_mb", "peak_gpu_memory_mb"),
)
"""Numbers of a row that a table can show; besides these there are losses, `loss_…`."""

FIGURES = ("sensitivity", "rules")
"""Kinds of figures that `figures.py` draws."""

MEAN = "mean"
"""Stands in a table for the mean over all values of a column."""

_OWN = ("dataset", "method", "seed")
"""What a trial has of its own; other names are settings."""

_KINDS: Mapping[str, Kind] = {
    **dict.fromkeys(("title", "about", "notes", "average", "figure"), TEXT),
    **dict.fromkeys(("metrics", "rows", "rules"), NAMES),
    **dict.fromkeys(("paper", "trials"), TABLES),
    "place": WHOLE,
}


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
    values = read_toml(path)
    try:
        return _study(Path(path).stem, values)
    except InputError as error:
        raise InputError(str(error), where=str(path)) from None


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


def lines_of(study: Study) -> list[tuple[Any, ...]]:
    """Return the lines that the table will have, data sets together, methods in their order."""
    for name in study.rows:
        values = [] if name in _OWN else [trial.settings.get(name) for trial in study.trials]
        if not all(PLAIN.fits(value) for value in values):
            raise InputError(
                f"rows: {name!r} does not tell all trials apart",
                expected=f"{', '.join(_OWN)}, or a setting of all trials that is {PLAIN.said}",
            )
    lines = dict.fromkeys(_line_of(trial, study.rows) for trial in study.trials)
    places = [
        {value: place for place, value in enumerate(dict.fromkeys(column))}
        for column in zip(*lines, strict=True)
    ]
    return sorted(lines, key=lambda line: [p[v] for p, v in zip(places, line, strict=True)])


def _line_of(trial: Trial, names: Sequence[str]) -> tuple[Any, ...]:
    return tuple(getattr(trial, n) if n in _OWN else trial.settings[n] for n in names)


def _text_of(trial: Trial, name: str) -> str | None:
    if name in _OWN:
        return str(getattr(trial, name))
    return str(trial.settings[name]) if name in trial.settings else None


def _study(name: str, values: Mapping[str, Any]) -> Study:
    refuse_mistakes(values, _KINDS)
    for key in ("title", "about", "trials"):
        if not values.get(key):
            raise InputError(f"a study needs {key!r}", remedy="add it")
    made: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in values.items()
    }
    texts = {key: value.strip() for key, value in made.items() if isinstance(value, str)}
    trials = combinations(values["trials"])
    study = Study(name, **{**made, **texts, "trials": trials})
    for metric in study.metrics:
        if not metric.startswith("loss_"):
            refuse_unknown("metric", metric, METRICS)
    for rule in study.rules:
        refuse_rule(rule)
    for own in ("dataset", "method"):
        if own not in study.rows and len({getattr(trial, own) for trial in study.trials}) > 1:
            raise InputError(f"several {own}s would share a line", remedy=f"add {own!r} to rows")
    if study.figure is not None:
        refuse_unknown("figure", study.figure, FIGURES)
    if study.average is not None:
        refuse_unknown("average", study.average, study.rows)
    _refuse_misplaced(study)
    return study


def _refuse_misplaced(study: Study) -> None:
    """Refuse numbers of the paper that belong to no line of the table."""
    lines = [
        {**dict(zip(study.rows, line, strict=True)), "rule": rule}
        for line, rule in itertools.product(lines_of(study), study.rules)
    ]
    if study.average is not None:
        lines += [{**line, study.average: MEAN} for line in lines]
    places, numbers = (*study.rows, "rule"), dict.fromkeys(study.metrics, NUMBER)
    for entry in study.paper:
        refuse_mistakes(entry, {**dict.fromkeys(places, PLAIN), **numbers}, "[[paper]]")
        left = lines
        for name in (key for key in entry if key not in numbers):
            known = dict.fromkeys(canonical(line[name]) for line in left)
            left = [line for line in left if canonical(line[name]) == canonical(entry[name])]
            if not left:
                raise InputError(
                    f"[[paper]]: the table has no line of {name} {canonical(entry[name])}",
                    expected=f"one of {', '.join(known)}",
                    got=canonical(entry),
                )
