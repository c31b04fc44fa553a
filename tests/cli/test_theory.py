from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from openima.cli import app
from openima.theory import accuracy_grid

WIDE = {"COLUMNS": "200"}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate one mixture only."""
    monkeypatch.setattr("openima.cli.theory.SIMULATED", ((2.0, 2.0),))


def test_the_table_says_what_holds_and_what_fails() -> None:
    result = CliRunner().invoke(app, ["theory"], env=WIDE)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert sum(" holds " in line for line in lines) == 6
    assert sum(" FAILS " in line for line in lines) == 2
    assert any("0.9994 / 0.9146" in line for line in lines)
    assert "drawn" not in result.stdout


def test_curves_are_drawn_where_asked(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["theory", "--out", str(tmp_path / "new")], env=WIDE)
    assert result.exit_code == 0
    assert {path.name for path in (tmp_path / "new").iterdir()} == {"theorem1.png", "theorem1.svg"}


def test_accuracies_are_written_where_asked(tmp_path: Path) -> None:
    path = tmp_path / "new" / "grid.csv"
    result = CliRunner().invoke(app, ["theory", "--csv", str(path)], env=WIDE)
    assert result.exit_code == 0
    assert f"written: {path}" in result.stdout
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[:2] == [
        "sigma1,gamma,alpha,threshold,acc1,acc2",
        "0.5,1,1.5,0.75,0.933193,0.933193",
    ]
    pd.testing.assert_frame_equal(pd.read_csv(path), accuracy_grid(), rtol=1e-5)


def test_a_table_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = CliRunner().invoke(app, ["theory", "--csv", str(tmp_path / "file" / "grid.csv")])
    assert result.exit_code == 2
    assert "grid.csv: this cannot be written" in result.stderr
    assert result.stderr.count("\n") == 1


def test_without_matplotlib_the_remedy_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "openima.theory.figures", raising=False)
    result = CliRunner().invoke(app, ["theory", "--out", str(tmp_path)], env=WIDE)
    assert result.exit_code == 1
    assert result.stderr.startswith("error: curves need the package 'matplotlib'")
    assert "openima[plots]" in result.stderr
    assert result.stderr.count("\n") == 1
