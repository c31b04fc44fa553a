from __future__ import annotations

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from openima.cli import app

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
