from __future__ import annotations

from typer.testing import CliRunner

from openima.cli import app
from openima.graph.datasets import dataset_names
from openima.methods import recipes


def test_datasets_and_methods_are_listed() -> None:
    runner = CliRunner()
    datasets = runner.invoke(app, ["datasets"])
    assert datasets.exit_code == 0
    assert datasets.stdout.split() == list(dataset_names())
    methods = runner.invoke(app, ["methods"])
    assert methods.exit_code == 0
    assert [line.split()[0] for line in methods.stdout.splitlines()] == list(recipes())


def test_the_demo_shows_the_task_and_how_well_it_was_solved() -> None:
    result = CliRunner().invoke(app, ["demo"])
    assert result.exit_code == 0
    assert "5 seen + 5 novel classes" in result.stdout
    accuracy = result.stdout.split("Novel")[-1]
    shares = [float(word.rstrip("%")) for word in accuracy.split() if word.endswith("%")]
    assert len(shares) == 3
    assert shares[0] > 60
