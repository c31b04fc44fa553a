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


@pytest.mark.parametrize(
    "command", [["table"], ["select"], ["figure"], ["pack"], ["pack", "--used"]], ids=" ".join
)
def test_without_rows_one_line_says_how_to_make_them(
    study: Path, tmp_path: Path, command: list[str]
) -> None:
    name, *more = command
    results = tmp_path / "results"
    arguments = ["study", name, str(study), "--results", str(results), *more]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "the study has no rows yet" in result.stderr
    assert f"openima study run {study} --results {results}" in result.stderr
    assert result.stderr.count("\n") == 1


def test_status_and_page_do_without_rows(study: Path, tmp_path: Path) -> None:
    results, page = ["--results", str(tmp_path / "results")], tmp_path / "results.md"
    shown = CliRunner().invoke(app, ["study", "status", str(study), *results])
    assert shown.exit_code == 0, shown.output
    written = CliRunner().invoke(
        app, ["study", "document", str(tmp_path), *results, "--out", str(page)]
    )
    assert written.exit_code == 0, written.output
    assert "No rows yet." in page.read_text(encoding="utf-8")


def test_a_missing_figure_or_rule_is_told_before_missing_rows(study: Path) -> None:
    study.write_text(study.read_text().replace('figure = "rules"\n', ""))
    for arguments, message in (
        (["figure", str(study)], "this study has no figure"),
        (["select", str(study), "--rule", "best"], "there is no rule 'best'"),
    ):
        result = CliRunner().invoke(app, ["study", *arguments])
        assert result.exit_code == 2
        assert message in result.stderr


def test_no_page_is_written_of_a_folder_without_studies(tmp_path: Path) -> None:
    page = tmp_path / "results.md"
    result = CliRunner().invoke(app, ["study", "document", str(tmp_path), "--out", str(page)])
    assert result.exit_code == 2
    assert "there are no study files" in result.stderr
    assert not page.exists()
