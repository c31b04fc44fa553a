"""The files that README and the pages of docs/ talk about."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from openima.methods import base

SUBJECTS = {
    "biology": "cell protein gene membrane enzyme tissue neuron genome",
    "physics": "quantum photon boson lattice plasma spin entropy laser",
    "history": "empire treaty archive medieval trade revolution colony church",
    "economics": "market wage inflation tariff credit labour tax monopoly",
}
COMMON = "model study analysis method theory evidence effect review"
PER_SUBJECT = 40


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in a folder with the example files; recipes that a page registers go with it."""
    write_papers(tmp_path, PER_SUBJECT)
    write_papers(tmp_path / "grown", PER_SUBJECT + 10)
    monkeypatch.setattr(base, "_RECIPES", dict(base._RECIPES))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_papers(folder: Path, per_subject: int) -> None:
    """Write nodes.csv and edges.csv: papers of four fields, a quarter of two fields labelled.

    More papers of each field come after those that fewer have.
    """
    rng = np.random.default_rng(0)
    n = per_subject * len(SUBJECTS)
    fields, place = list(SUBJECTS), np.arange(n)
    field = place % len(fields)
    titles = [_title(rng, SUBJECTS[fields[f]].split()) for f in field]
    labelled = (field < 2) & (place % 16 < 4) & (place < PER_SUBJECT * len(fields))
    ids = [f"p{i}" for i in place]
    nodes = {"id": ids, "title": titles, "field": [fields[f] for f in field]}
    table = pd.DataFrame(nodes)
    table.loc[~labelled, "field"] = ""
    # Three of four papers that a paper cites are of its own field.
    cited = rng.integers(per_subject, size=(n, 4)) * len(fields)
    cited += np.where(np.arange(4) < 3, field[:, None], rng.integers(len(fields), size=(n, 4)))
    links = pd.DataFrame({"source": np.repeat(place, 4), "target": cited.ravel()})
    folder.mkdir(exist_ok=True)
    table.to_csv(folder / "nodes.csv", index=False)
    links.map(lambda i: f"p{i}").to_csv(folder / "edges.csv", index=False)


def _title(rng: np.random.Generator, words: list[str]) -> str:
    chosen = [*rng.choice(words, 4, replace=False), *rng.choice(COMMON.split(), 2, replace=False)]
    return " ".join(rng.permutation(chosen))
