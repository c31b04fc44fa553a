from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from openima.cli import app

BLOCK = """methods = ["infonce"]
datasets = ["digits"]
seeds = 2
settings = { hidden = 8, heads = 2, epochs = 2, clustering = { kind = "kmeans", n_init = 1 } }
"""
Invoke = Callable[..., Result]


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    head = 'title = "Small"\nabout = "x"\nfigure = "rules"\nrules = ["sc", "acc"]\n'
    path.write_text(f"{head}[[trials]]\n{BLOCK}")
    return path


def test_a_study_from_running_to_its_page(study: Path, tmp_path: Path) -> None:
    def invoke(name: str, *more: str, file: Path = study) -> str:
        arguments = ["study", name, str(file), "--results", str(tmp_path / "results"), *more]
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, result.output
        return result.stdout

    assert "Trials: 1 run." in invoke("run", "--seeds", "1", "--device", "cpu")
    assert "infonce" in invoke("status")
    assert "InfoNCE" in invoke("table")
    assert invoke("table", "--format", "markdown").startswith("| data | method | chosen by |")
    assert "2406525885" in invoke("select", "--rule", "acc")
    assert "small.parquet" in invoke("pack", "--used")
    drawn = invoke("figure", "--out", str(tmp_path / "figures")).split()
    assert [Path(path).suffix for path in drawn] == [".png", ".svg"]
    page = tmp_path / "docs" / "results.md"
    assert str(page) in invoke("document", "--out", str(page), file=study.parent)
    assert "InfoNCE" in page.read_text(encoding="utf-8")


def test_a_failed_trial_makes_the_command_fail(study: Path, tmp_path: Path) -> None:
    study.write_text(study.read_text().replace("epochs = 2", "learning_rate = 1e30, epochs = 2"))
    arguments = ["study", "run", str(study), "--results", str(tmp_path), "--seeds", "1"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1
    assert "1 failed" in result.stdout
    shown = CliRunner().invoke(app, ["study", "status", str(study), "--results", str(tmp_path)])
    assert "lower the learning rate" in shown.stdout
