"""The folder of results: a file of rows for each finished trial, and packs of many for git.

results/<study>.parquet         packs: all rows of a study, committed
results/trials/<trial>.parquet  a finished trial: one row an epoch
results/running/<trial>.*       claims, checkpoints and errors of unfinished trials
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from openima.errors import InputError
from openima.files import writing
from openima.study.trial import Trial

_ADDED = {"position": 0, "current": True}
"""Columns that rows have only while they are loaded."""

KEY = ["dataset", "method", "seed", "per_class"]
"""What tells trials apart, besides their settings and the version of the code."""


class Results:
    """A folder of rows, which several processes may work on."""

    def __init__(self, folder: str | Path) -> None:
        """Point at the folder; nothing is made before there is something to write."""
        self.folder = Path(folder)
        self.trials, self.running = self.folder / "trials", self.folder / "running"
        if self.folder.is_file():
            raise InputError(
                "results are kept in a folder, and this is a file",
                where=str(self.folder),
                remedy="name another folder: --results DIR",
            )

    def file_of(self, trial: str) -> Path:
        """Return where the rows of a trial are, or will be."""
        return self.trials / f"{trial}.parquet"

    def write(self, trial: str, rows: pd.DataFrame) -> None:
        """Write the rows of a finished trial; a reader sees all of them or none."""
        _write(rows, self.file_of(trial))

    def fail(self, trial: str, message: str) -> None:
        """Note why a trial has no rows; it is not tried again before the next `study run`."""
        path = self.running / f"{trial}.error"
        with writing(path):
            self.running.mkdir(parents=True, exist_ok=True)
            path.write_text(message, encoding="utf-8")

    def error(self, trial: str) -> str | None:
        """Return why a trial has failed, None if it has not."""
        path = self.running / f"{trial}.error"
        return path.read_text(encoding="utf-8") if path.exists() else None

    def forgive(self, trial: str) -> None:
        """Forget that a trial has failed, so that it is tried again."""
        path = self.running / f"{trial}.error"
        with writing(path):
            path.unlink(missing_ok=True)

    def clear(self, trial: str) -> None:
        """Remove what an unfinished trial left behind, but for claims."""
        for path in self.running.glob(f"{trial}.*"):
            if path.suffix != ".lock":
                with writing(path):
                    path.unlink(missing_ok=True)

    def finished(self) -> set[str]:
        """Return the ids of all trials that have their rows."""
        packed = (_read(path, columns=["trial"])["trial"] for path in self._packs())
        ids = {str(trial) for trials in packed for trial in trials.unique().to_pylist()}
        return ids | {path.stem for path in self.trials.glob("*.parquet")}

    def load(self, trials: Sequence[Trial]) -> pd.DataFrame:
        """Return all rows of some trials, of every version of the code, in the trials' order.

        Adds the columns `position`, of the trial in `trials`, and `current`, whether the code
        has not changed since.
        """
        table = _loaded([*self._packs(), *sorted(self.trials.glob("*.parquet"))], trials)
        if not len(table):
            return table.assign(**_ADDED)
        found = table.drop_duplicates("trial").set_index("trial")
        owner = _owners(found, trials)
        table = table[table["trial"].isin(owner)]
        table = table.drop_duplicates(["trial", "epoch"])
        position = table["trial"].map(owner)
        current = table["trial"].isin({trial.id for trial in trials})
        table = table.assign(position=position.astype(int), current=current)
        return table.sort_values(["position", "code", "epoch"], kind="stable", ignore_index=True)

    def pack(self, name: str, rows: pd.DataFrame) -> Path:
        """Put rows that were loaded into one file to be committed, and return its path."""
        if not len(rows):
            raise InputError(
                "there are no rows to pack", where=str(self.folder), remedy="run the study first"
            )
        path = self.folder / f"{name}.parquet"
        _write(rows.drop(columns=list(_ADDED)), path)
        return path

    def _packs(self) -> list[Path]:
        return sorted(self.folder.glob("*.parquet"))


def _loaded(paths: Iterable[Path], trials: Sequence[Trial]) -> pd.DataFrame:
    """Read the rows of the data sets and methods that `trials` have."""
    datasets, methods = ({getattr(t, name) for t in trials} for name in ("dataset", "method"))
    kept = [("dataset", "in", datasets), ("method", "in", methods)]
    tables = [_read(path, filters=kept) for path in paths]
    tables = [table for table in tables if table.num_rows]
    if not tables:
        return pd.DataFrame(columns=["trial", *KEY, "settings", "code", "epoch"])
    merged: pd.DataFrame = pa.concat_tables(tables, promote_options="permissive").to_pandas()
    return merged


def _owners(found: pd.DataFrame, trials: Sequence[Trial]) -> dict[str, int]:
    """Say for each trial with rows which of `trials` it is; others are left out."""
    wanted: dict[tuple[object, ...], list[tuple[int, Trial]]] = {}
    for position, trial in enumerate(trials):
        key = tuple(getattr(trial, name) for name in KEY)
        wanted.setdefault(key, []).append((position, trial))
    owners = {}
    for name, row in found.iterrows():
        settings = json.loads(row["settings"])
        for position, trial in wanted.get(tuple(row[KEY]), ()):
            if trial.wants(settings):
                owners[str(name)] = position
                break
    return owners


def _read(path: Path, **which: Any) -> pa.Table:
    try:
        return pq.read_table(path, **which)
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            "this is no readable file of rows",
            where=str(path),
            got=str(error).partition("\n")[0],
            remedy="restore it, or delete it to run its trials again",
        ) from None


def _write(rows: pd.DataFrame, path: Path) -> None:
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    table = pa.Table.from_pandas(rows, preserve_index=False).replace_schema_metadata()
    with writing(path):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(table, partial, compression="zstd")
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
