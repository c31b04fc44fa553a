"""From rows to tables: mean and standard error over seeds, beside the paper's number."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from openima.errors import InputError
from openima.study.plan import MEAN, Study, lines_of
from openima.study.select import chosen_rows
from openima.study.trial import canonical

PERCENT = ("all", "seen", "novel", "val_acc")
"""Metrics that are shares, shown in percent as in the paper."""


def one_version(rows: pd.DataFrame, mix: bool = False) -> tuple[pd.DataFrame, list[str]]:
    """Keep rows of one version of the code for each data set and method, and say what is left out.

    The version with the most trials is kept, of equals the one that ran last. `mix` takes for
    each trial the version that ran last.
    """
    notes: list[str] = []
    if not len(rows):
        return rows, notes
    kept = []
    for cell, part in rows.groupby(["dataset", "method"], sort=False):
        versions = part.groupby("code").agg(
            trials=("position", "nunique"), finished=("finished", "max")
        )
        order = versions.sort_values(["trials", "finished"]).index[::-1]
        if mix:
            last = part.groupby("position")["finished"].transform("max")
            kept.append(part[part["finished"] == last])
        else:
            kept.append(part[part["code"] == order[0]])
        if len(order) > 1:
            used = ", ".join(f"{code} ({versions['trials'][code]} trials)" for code in order)
            way = "mixed" if mix else "only the first is used"
            notes.append(
                f"{cell[0]} {cell[1]}: rows of several versions of the code: {used}; {way}"
            )
    found = pd.concat(kept).sort_values(["position", "epoch"], kind="stable", ignore_index=True)
    return found, notes + _notes_on_data(found)


def _notes_on_data(rows: pd.DataFrame) -> list[str]:
    return [
        f"{part['dataset'].iloc[0]}, seed {part['seed'].iloc[0]}: trials ran on different data"
        for _, part in rows.groupby(["dataset", "seed", "per_class"])
        if part["data"].nunique() > 1
    ]


def with_settings(study: Study, rows: pd.DataFrame) -> pd.DataFrame:
    """Add the settings that make a row of the study's table as columns."""
    names = [name for name in study.rows if name not in rows.columns]
    for name in names:
        values = [trial.settings.get(name) for trial in study.trials]
        rows = rows.assign(**{name: [values[position] for position in rows["position"]]})
    return rows


def summarise(study: Study, rows: pd.DataFrame, weight: float = 0.5) -> pd.DataFrame:
    """Return one row a line of the table: keys, seeds, and of each metric what is known.

    Of a metric `m` there are `m` (mean), `m_se` (standard error, NaN for one seed), `m_paper` and
    `m_difference`; shares are in percent. Lines without a row are there too, with no seeds.
    """
    keys = [*study.rows, "rule"]
    rows = with_settings(study, rows)
    for metric in study.metrics:
        if len(rows) and metric not in rows:
            raise InputError(
                f"no row has a number {metric!r}",
                where=study.name,
                remedy="correct its metrics, or run the study again if its rows are older",
            )
    groups = list(dict.fromkeys([*study.rows, "dataset", "method", "seed"]))
    found: dict[str, pd.DataFrame] = {}
    for rule in study.rules:
        chosen = chosen_rows(rows, groups, rule, weight)
        found |= {canonical([*key, rule]): part for key, part in _groups(chosen, study.rows)}
    lines = []
    for line, rule in itertools.product(lines_of(study), study.rules):
        place = dict(zip(study.rows, line, strict=True)) | {"rule": rule}
        numbers = _numbers(found.get(canonical([*line, rule])), study.metrics)
        lines.append(place | numbers)
    table = pd.DataFrame(lines)
    if study.average is not None:
        table = pd.concat([table, _averages(table, study, keys)], ignore_index=True)
    for metric in study.metrics:
        places = (dict(zip(keys, line, strict=True)) for line in table[keys].to_numpy().tolist())
        table[f"{metric}_paper"] = [_from_paper(study, place, metric) for place in places]
    if study.average is not None:
        _average_paper(table, study, keys)
    for metric in study.metrics:
        table[f"{metric}_difference"] = table[metric] - table[f"{metric}_paper"]
    return table


def _groups(rows: pd.DataFrame, keys: Sequence[str]) -> list[tuple[tuple[Any, ...], pd.DataFrame]]:
    if not len(rows):
        return []
    grouped = rows.groupby(list(keys), sort=False, dropna=False)
    return [(tuple(_item(k) for k in key), part) for key, part in grouped]


def _item(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _numbers(part: pd.DataFrame | None, metrics: Sequence[str]) -> dict[str, float]:
    if part is None:
        return {"seeds": 0} | {f"{m}{end}": np.nan for m in metrics for end in ("", "_se")}
    numbers: dict[str, float] = {"seeds": part["seed"].nunique()}
    for metric in metrics:
        values = part[metric].to_numpy(dtype=np.float64) * (100 if metric in PERCENT else 1)
        several = len(values) > 1
        numbers[metric] = values.mean()
        numbers[f"{metric}_se"] = values.std(ddof=1) / len(values) ** 0.5 if several else np.nan
    return numbers


def _averages(table: pd.DataFrame, study: Study, keys: Sequence[str]) -> pd.DataFrame:
    """Average over all values of a column, where none is missing."""
    others = [key for key in keys if key != study.average]
    lines = []
    for key, part in table.groupby(others, sort=False):
        line: dict[str, Any] = dict(zip(others, key, strict=True))
        line[str(study.average)] = MEAN
        line["seeds"] = int(part["seeds"].min())
        for metric in study.metrics:
            errors = part[f"{metric}_se"].to_numpy()
            line[metric] = part[metric].to_numpy().mean()  # NaN if one is
            line[f"{metric}_se"] = np.sqrt((errors**2).sum()) / len(part)
        lines.append(line)
    return pd.DataFrame(lines)


def _average_paper(table: pd.DataFrame, study: Study, keys: Sequence[str]) -> None:
    """Average the paper's numbers too, where all are there and the paper gives no average."""
    others = [key for key in keys if key != study.average]
    is_mean = table[str(study.average)] == MEAN
    for metric in study.metrics:
        name = f"{metric}_paper"
        parts = table[~is_mean].groupby(others, sort=False)[name]
        means = {place: numbers.mean(skipna=False) for place, numbers in parts}
        for position in table.index[is_mean & table[name].isna()]:
            place = tuple(table[other][position] for other in others)
            table.loc[position, name] = means[place]


def _from_paper(study: Study, line: Mapping[str, Any], metric: str) -> float:
    for entry in study.paper:
        where = {k: v for k, v in entry.items() if k in study.rows or k == "rule"}
        if metric in entry and all(canonical(line[k]) == canonical(v) for k, v in where.items()):
            return float(entry[metric])
    return float("nan")
