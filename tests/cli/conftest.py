"""Tables that a user may have, and ways to call `openima`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from openima.cli import app
from openima.graph.synthetic import synthetic

Call = Callable[..., Result]
Start = Callable[..., subprocess.Popen[str]]
QUICK = (
    "--set",
    "hidden=8",
    "--set",
    "heads=1",
    "--device",
    "cpu",
    "--set",
    "clustering={kind='kmeans',n_init=1}",
    "--epochs",
    "2",
)
FIT = ("fit", "nodes.csv", "edges.csv", "--labels", "field", "--novel", "2")


def write_tables(folder: Path, n: int = 80) -> None:
    """Write a graph of four fields, two of which some nodes have as label, with words as text."""
    full = synthetic(n, 4, n_features=4, homophily=0.9, average_degree=4, seed=0)
    rng = np.random.default_rng(0)
    field = full.labels
    shown = (field < 2) & (rng.random(n) < 0.5)
    nodes = pd.DataFrame(np.asarray(full.graph.features)).add_prefix("x")
    nodes.insert(0, "id", [f"p{i}" for i in range(n)])
    nodes["field"] = np.where(shown, np.char.add("f", field.astype(str)), "")
    nodes.to_csv(folder / "nodes.csv", index=False)
    words = [f"w{c}{rng.integers(5)} w{rng.integers(4)}{rng.integers(5)} all" for c in field]
    texts = nodes[["id", "field"]].assign(abstract=words)
    texts.to_csv(folder / "texts.csv", index=False)
    targets = np.repeat(np.arange(n), full.graph.in_degrees)
    once = full.graph.sources < targets
    ends = {"source": full.graph.sources[once], "target": targets[once]}
    edges = pd.DataFrame({name: [f"p{i}" for i in nodes] for name, nodes in ends.items()})
    edges.to_csv(folder / "edges.csv", index=False)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in a folder with nodes.csv, texts.csv and edges.csv."""
    write_tables(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def call() -> Call:
    """Return a function that runs a command in this process: `call("fit", "nodes.csv")`."""

    def run(*arguments: str | Path) -> Result:
        return CliRunner().invoke(app, list(map(str, arguments)), prog_name="openima")

    return run


@pytest.fixture(scope="session")
def fit(call: Call) -> Call:
    """Return a function that fits the tables in the working folder, in a second."""

    def run(*more: str | Path) -> Result:
        return call(*FIT, *QUICK, *more)

    return run


@pytest.fixture(scope="session")
def fitted(tmp_path_factory: pytest.TempPathFactory, fit: Call) -> Path:
    """Return a folder with the tables and, in `out`, what a fit made of them."""
    folder = tmp_path_factory.mktemp("fitted")
    write_tables(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        result = fit("--out", "out")
    assert result.exit_code == 0, result.output
    return folder


@pytest.fixture
def at_fitted(fitted: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in the folder where a fit has been made, which stays as it is."""
    monkeypatch.chdir(fitted)
    return fitted


@pytest.fixture(scope="session")
def start() -> Start:
    """Return a function that starts a fit in a process of its own: `start(folder, "--quiet")`."""

    def run(folder: Path, *more: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "openima.cli", *FIT, *QUICK, *more]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, cwd=folder, text=True, stdout=pipe, stderr=pipe)

    return run
