"""The benchmark of growth: that it measures what it says, and reckons rightly from its rows."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import scale, scale_row
from benchmarks.scale import Shape
from benchmarks.scale_row import measured
from openima.train.trainer import Run

OPTIONS = {
    "threads": 1,
    "epochs": 2,
    "steps_limit": 2,
    "ce_nodes": 20,
    "clustering": "kmeans",
    "n_init": 1,
}


def options(folder: Path, **changes: Any) -> argparse.Namespace:
    given = {
        "folder": folder,
        "key": "row",
        "per_class": 10,
        "method": "openima-large",
        **OPTIONS,
        **changes,
    }
    return argparse.Namespace(**given)


@pytest.fixture(scope="module")
def row(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("graph")
    scale.make(Shape(600, classes=4, features=8, degree=6.0), folder)
    with pytest.MonkeyPatch.context() as patch:
        small = {"hidden": 4, "heads": 2, "batch_size": 100}
        patch.setattr("benchmarks.scale_row.SETTINGS", small)
        found = measured(options(folder))
    assert not list(folder.glob("kept-*"))
    return found


def test_a_row_that_is_killed_goes_on_with_its_stage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    scale.make(Shape(600, classes=4, features=8, degree=6.0), tmp_path)
    monkeypatch.setattr(scale_row, "SETTINGS", {"hidden": 4, "heads": 2, "batch_size": 100})
    judge = scale_row.judge
    monkeypatch.setattr(scale_row, "judge", killed)
    monkeypatch.setattr(killed, "__name__", "judge")
    with pytest.raises(KeyboardInterrupt):
        measured(options(tmp_path))
    monkeypatch.setattr(scale_row, "judge", judge)
    monkeypatch.setattr(Run, "_learn", killed)
    assert measured(options(tmp_path))["steps_taken"] == 2


def test_a_row_times_every_stage_of_the_last_epoch(row: dict[str, Any]) -> None:
    assert (row["nodes"], row["edges"], row["features"], row["labelled"]) == (600, 3600, 8, 20)
    assert (row["steps"], row["steps_taken"]) == (6, 2)
    stages = {"load", "prepare", "sampling", "look", "clustering", "metrics"}
    assert set(row["seconds"]) == stages
    assert all(cpu >= 0 and wall > 0 for cpu, wall in row["seconds"].values())
    assert row["seconds"]["sampling"][1] > 0 < row["step_seconds"][1]
    assert 0 <= row["accuracy"]["all"] <= 1
    assert 0 <= row["by_clusters"]["all"] <= 1
    json.dumps(row)


def fake(name: str, nodes: int, **changes: Any) -> dict[str, Any]:
    """An epoch of 10 steps, 2 of them taken in 4 CPU and 2 wall seconds; the rest took 6 and 3."""
    stages = ("load", "prepare", "look", "clustering", "metrics")
    seconds = {stage: [2.0, 1.0] for stage in stages}
    return {
        "name": name,
        "asked": {"row": name, "threads": 2, "steps_limit": 2},
        "nodes": nodes,
        "edges": 10 * nodes,
        "labelled": 9,
        "ce_nodes": None,
        "steps": 10,
        "steps_taken": 2,
        "step_seconds": [4.0, 2.0],
        "seconds": {**seconds, "sampling": [0.4, 0.4]},
        "peak_gb": 3.0,
        "accuracy": {"all": 0.5, "seen": 0.6, "novel": 0.4},
        "by_clusters": {"all": 0.7, "seen": 0.8, "novel": 0.6},
        **changes,
    }


def test_an_epoch_is_reckoned_from_its_steps() -> None:
    assert scale.epoch(fake("100k", 100_000)) == (26.0, 13.0)
    assert scale.epoch(fake("100k", 100_000, steps_taken=10)) == (10.0, 5.0)
    table = scale.table([fake("100k", 100_000)])
    assert "| 2 of 10 |" in table
    assert "| 10% |" in table
    assert "| 50 / 60 / 40 | 70 / 80 / 60 |" in table


def test_bounds_are_held_or_not() -> None:
    small, large = fake("100k", 100_000), fake("products", 200_000)
    texts = dict(scale.bounds([small, large]))
    assert all(texts.values())
    assert "a node of products costs 0.50 of 100k's, 1.5" in texts
    assert "from 100k to products an epoch grows with nodes to the power 0.00" in texts
    slow = fake("products", 200_000, step_seconds=[40.0, 2000.0], peak_gb=13.0)
    late = scale.bounds([small, {**slow, "seconds": {**slow["seconds"], "sampling": [9, 9]}}])
    assert sum(not held for _, held in late) == 4


def test_rows_are_kept_and_not_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[str] = []

    def measure(name: str, _: argparse.Namespace) -> dict[str, Any]:
        asked.append(name)
        return {k: v for k, v in fake(name, 10_000).items() if k not in ("name", "asked")}

    monkeypatch.setattr(scale, "measure", measure)
    command = ["scale.py", "--rows", "10k", "100k", "--out", str(tmp_path / "rows.jsonl")]
    for threads in (2, 2, 1):
        monkeypatch.setattr("sys.argv", [*command, "--threads", str(threads)])
        assert scale.main() == 0
    assert asked == ["10k", "100k"] * 2
    assert "| 100k | 10,000 |" in capsys.readouterr().out
