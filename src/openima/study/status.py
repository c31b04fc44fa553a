"""How far a study has come: trials with rows, at work, failed, and of which version."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from openima.study.claims import is_claimed
from openima.study.store import Results
from openima.study.trial import Trial


def progress_of(trials: Sequence[Trial], results: Results) -> pd.DataFrame:
    """Count the trials of each data set and method, and the seconds of a finished one.

    `done` have rows of the present code; `older` have rows of other versions of it only.
    """
    rows = results.load(trials)
    done = set(rows.loc[rows["current"], "position"])
    older = set(rows["position"]) - done
    seconds = rows.groupby("position")["seconds"].sum() if len(rows) else pd.Series(dtype=float)
    lines: dict[tuple[str, str], dict[str, float]] = {}
    for position, trial in enumerate(trials):
        names = ("trials", "done", "older", "running", "failed", "seconds")
        line = lines.setdefault((trial.dataset, trial.method), dict.fromkeys(names, 0))
        line["trials"] += 1
        line["done"] += position in done
        line["older"] += position in older
        if position not in done:
            line["running"] += is_claimed(results.running, trial.id)
            line["failed"] += results.error(trial.id) is not None
        if position in seconds.index:
            line["seconds"] += seconds[position]
    table = pd.DataFrame([{"dataset": d, "method": m, **of} for (d, m), of in lines.items()])
    with_rows = (table["done"] + table["older"]).clip(lower=1)
    return table.assign(seconds=table["seconds"] / with_rows)
