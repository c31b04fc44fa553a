"""`openima predict`: the same bytes for the fitted graph, and answers for others."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import Result

Call = Callable[..., Result]
TABLES = ("nodes.csv", "edges.csv")


@pytest.mark.parametrize("model", ["out", "out/model"])
def test_the_fitted_graph_gives_the_same_bytes(at_fitted: Path, call: Call, model: str) -> None:
    result = call("predict", model, *TABLES)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.encode() == (at_fitted / "out" / "predictions.csv").read_bytes()


@pytest.mark.parametrize("name", ["p.csv", "p.parquet"])
@pytest.mark.usefixtures("at_fitted")
def test_predictions_are_written(call: Call, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    result = call("predict", "out", *TABLES, "--out", str(path))
    assert result.exit_code == 0, result.stderr
    assert path.read_bytes() == Path("out", f"predictions{path.suffix}").read_bytes()
    assert f"file: {path}" in result.stdout
    assert [p.name for p in tmp_path.iterdir()] == [name]
    sizes = pd.read_csv("out/predictions.csv")["label"].value_counts()
    for label, size in sizes.items():
        assert f" {label} " in result.stdout
        assert f" {size} " in result.stdout


@pytest.mark.usefixtures("at_fitted")
def test_a_file_is_replaced_with_force_only(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("mine")
    assert call("predict", "out", *TABLES, "--out", str(path)).exit_code == 2
    assert path.read_text() == "mine"
    assert call("predict", "out", *TABLES, "--out", str(path), "--force").exit_code == 0
    assert path.read_bytes() == Path("out/predictions.csv").read_bytes()


@pytest.mark.usefixtures("at_fitted")
def test_json_of_a_file_and_of_rows(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    told = json.loads(call("predict", "out", *TABLES, "--out", str(path), "--json").stdout)
    assert told["out"] == str(path)
    assert told["nodes"] == sum(told["classes"].values()) == 80
    rows = json.loads(call("predict", "out", *TABLES, "--json").stdout)
    table = pd.read_csv(path)
    assert [row["id"] for row in rows] == table["id"].tolist()
    assert [row["is_novel"] for row in rows] == table["is_novel"].tolist()


@pytest.mark.usefixtures("at_fitted")
def test_a_grown_graph_may_come_without_labels(call: Call, tmp_path: Path) -> None:
    nodes, edges = (pd.read_csv(name) for name in TABLES)
    grown = pd.concat([nodes, nodes.head(1).assign(id="new")]).drop(columns="field")
    grown.to_csv(tmp_path / "n.csv", index=False)
    link = pd.DataFrame({"source": ["new"], "target": ["p0"]})
    pd.concat([edges, link]).to_csv(tmp_path / "e.csv", index=False)
    result = call("predict", "out", str(tmp_path / "n.csv"), str(tmp_path / "e.csv"))
    assert result.exit_code == 0, result.stderr
    found = pd.read_csv(StringIO(result.stdout))
    assert len(found) == 81
    known = pd.read_csv("out/predictions.csv")
    assert (found["label"][:80] == known["label"]).mean() > 0.9


@pytest.mark.usefixtures("at_fitted")
def test_other_features_are_refused(call: Call, tmp_path: Path) -> None:
    nodes = pd.read_csv("nodes.csv").rename(columns={"x1": "z1"})
    nodes.to_csv(tmp_path / "n.csv", index=False)
    result = call("predict", "out", str(tmp_path / "n.csv"), "edges.csv")
    assert result.exit_code == 2
    assert "without 'x1' with 'z1'" in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_damaged_model_is_refused(at_fitted: Path, call: Call, tmp_path: Path) -> None:
    for path in (at_fitted / "out" / "model").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "model.safetensors").write_bytes(b"nothing")
    result = call("predict", str(tmp_path), *TABLES)
    assert result.exit_code == 2
    assert "the saved model is damaged" in result.stderr


@pytest.mark.usefixtures("at_fitted")
def test_options_of_reading_change_what_the_fit_had(call: Call, tmp_path: Path) -> None:
    renamed = pd.read_csv("edges.csv").rename(columns={"source": "a", "target": "b"})
    renamed.assign(source="nobody")[["source", "a", "b"]].to_csv(tmp_path / "e.csv", index=False)
    ends = ("--source", "a", "--target", "b")
    result = call("predict", "out", "nodes.csv", str(tmp_path / "e.csv"), *ends)
    assert result.stdout == Path("out/predictions.csv").read_text()
