"""Choosing one row of many without the truth: SC&ACC and what the paper compares it with."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from openima.errors import InputError
from openima.metrics.selection import best_row

RULES = {
    "sc_and_acc": "SC&ACC",
    "sc": "SC",
    "acc": "ACC",
    "last": "last epoch",
    "oracle": "oracle",
}
"""The rules by name. `last` takes the last epoch of the configuration whose last epoch SC&ACC
prefers. `oracle` looks at the truth: it shows what a perfect rule would reach, and chooses
nothing."""


def choose(rows: pd.DataFrame, rule: str = "sc_and_acc", weight: float = 0.5) -> int:
    """Return the position of the row that a rule chooses.

    `rows` are all epochs of all configurations of one data set, method and seed, with the
    columns `trial`, `epoch`, `sc` and `val_acc`. `weight` is that of SC in SC&ACC. Of equals the
    last is chosen.
    """
    refuse_rule(rule)
    if not len(rows):
        raise InputError("there is no row to choose from", expected="at least one")
    if rule == "oracle":
        truth = rows["all"].to_numpy()
        return best_row(truth, truth, 1.0)
    if rule == "last":
        last = rows["epoch"] == rows.groupby("trial")["epoch"].transform("max")
        positions = last.to_numpy().nonzero()[0]
        return int(positions[choose(rows[last], "sc_and_acc", weight)])
    weights = {"sc_and_acc": weight, "sc": 1.0, "acc": 0.0}
    return best_row(rows["sc"], rows["val_acc"], weights[rule])


def chosen_rows(
    rows: pd.DataFrame, groups: Sequence[str], rule: str = "sc_and_acc", weight: float = 0.5
) -> pd.DataFrame:
    """Return the row that a rule chooses within each of `groups`, in the order they come in."""
    found = [
        part.iloc[[choose(part, rule, weight)]]
        for _, part in rows.groupby(list(groups), sort=False, dropna=False)
    ]
    return pd.concat(found, ignore_index=True) if found else rows.iloc[:0]


def refuse_rule(rule: str) -> None:
    """Refuse a rule that is none."""
    if rule not in RULES:
        raise InputError(
            f"there is no rule {rule!r} to choose a row by", expected=f"one of {', '.join(RULES)}"
        )
