"""`openima methods` and `openima datasets`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from openima.graph.datasets import DATASETS
from openima.methods import PAPER_METHODS, recipes

Call = Callable[..., Result]


def test_the_twelve_methods_are_listed_with_paper_kind_and_cost(call: Call) -> None:
    lines = call("methods").stdout.splitlines()
    assert len(PAPER_METHODS) == 12
    for name in PAPER_METHODS:
        recipe = recipes()[name]
        line = next(line for line in lines if line.split()[:1] == [name])
        authors, *_, venue = recipe.paper.split(", ")
        for part in (recipe.kind, str(recipe.train.epochs), f"{authors}, {venue}", recipe.cost):
            assert f" {part} " in f"{line} "
    for name in set(recipes()) - set(PAPER_METHODS):
        assert name in lines[-1]


def test_methods_as_json(call: Call) -> None:
    found = json.loads(call("methods", "--json").stdout)
    assert [row["name"] for row in found] == list(recipes())
    assert sum(row["in_paper_table"] for row in found) == 12
    assert found[0]["paper"] == recipes()[found[0]["name"]].paper


def test_data_sets_are_listed_with_their_counts(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENIMA_DATA", str(tmp_path))
    raw = tmp_path / "Photo" / "raw"
    raw.mkdir(parents=True)
    (raw / "amazon_electronics_photo.npz").touch()
    rows = [line.split() for line in call("datasets").stdout.splitlines()]
    assert ["photo", "7,650", "119,082", "745", "8", "on", "disk"] in rows
    assert ["citeseer", "3,327", "4,676", "3,703", "6", "to", "download"] in rows
    assert ["digits", "1,797", "12,340", "64", "10", "on", "disk"] in rows
    found = json.loads(call("datasets", "--json").stdout)
    assert [row["name"] for row in found] == list(DATASETS)
    assert {row["name"] for row in found if row["on_disk"]} == {"photo", "digits"}
    assert found[0]["nodes"] == 3327
