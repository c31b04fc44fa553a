"""Studies that run in a second, and rows that were never run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from openima.study.plan import Study, read_study
from openima.study.trial import Trial, canonical

SMALL = """{ hidden = 8, heads = 2, epochs = 3, batch_size = 1024, \
clustering = { kind = "kmeans", n_init = 1 } }"""

WriteStudy = Callable[..., Path]
MakeRows = Callable[..., pd.DataFrame]


@pytest.fixture
def write_study(tmp_path: Path) -> WriteStudy:
    """Return a function that writes a study file of blocks of trials on the digits."""

    def write(
        *blocks: str, head: str = "", tail: str = "", name: str = "small", small: str = SMALL
    ) -> Path:
        lines = ['title = "Small"', 'about = "A test."', head]
        for block in blocks or ('methods = ["openima", "infonce"]\nseeds = 2',):
            data = "" if "datasets" in block else 'datasets = ["digits"]'
            lines += ["[[trials]]", data, f"settings = {small}" if small else "", block]
        path = tmp_path / f"{name}.toml"
        path.write_text("\n".join([*lines, tail]), encoding="utf-8")
        return path

    return write


@pytest.fixture
def make_study(write_study: WriteStudy) -> Callable[..., Study]:
    """Return a function that writes and reads a study."""
    return lambda *blocks, **parts: read_study(write_study(*blocks, **parts))


@pytest.fixture
def make_rows() -> MakeRows:
    """Return a function that makes up the rows of a trial, with any columns."""

    def make(trial: Trial, sc: Sequence[float] = (0.1, 0.2), **columns: Any) -> pd.DataFrame:
        n = len(sc)
        known: dict[str, Any] = {
            "trial": trial.id,
            "dataset": trial.dataset,
            "method": trial.method,
            "seed": trial.seed,
            "per_class": trial.per_class,
            "settings": canonical(trial.settings),
            "code": trial.code,
            "data": "d",
            "epoch": range(1, n + 1),
            "sc": sc,
            "val_acc": [0.5] * n,
            "all": [0.6] * n,
            "seen": [0.7] * n,
            "novel": [0.5] * n,
            "seconds": [1.5] * n,
            "machine": "a machine",
            "versions": '{"python":"3.12","torch":"2.11"}',
            "finished": "2026-01-01T00:00:00+00:00",
        }
        return pd.DataFrame({**known, **columns})

    return make
