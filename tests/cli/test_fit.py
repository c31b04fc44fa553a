"""`openima fit`, from tables to a folder of outputs."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import Result

from openima import OpenWorldClassifier
from openima.fit_config import FitConfig
from openima.fitted import Fitted
from openima.graph.datasets import load_dataset

Call = Callable[..., Result]
Start = Callable[..., "subprocess.Popen[str]"]
SAME = (
    *("predictions.csv", "predictions.parquet", "classes.csv", "nodes.parquet"),
    *("embeddings.safetensors", "config.toml", "model/model.safetensors"),
)
QUICK = ("--set", "hidden=8", "--set", "heads=1", "--epochs", "1", "--device", "cpu")


def same_bytes(one: Path, other: Path) -> bool:
    return all((one / name).read_bytes() == (other / name).read_bytes() for name in SAME)


def test_a_fit_prints_its_classes_and_where_its_files_are(here: Path, fit: Call) -> None:
    result = fit("--out", "out")
    assert result.exit_code == 0
    table = pd.read_parquet("out/classes.parquet")
    for row in table.to_dict("records"):
        cells = [row["class"], row["status"], str(row["size"]), str(row["n_known"])]
        assert re.search(r"\s+".join(map(re.escape, cells)), result.stdout)
        assert ", ".join(row["top_features"]) in result.stdout
    assert "report: out/report.html" in result.stdout
    assert "checkpoint.safetensors" not in Path("out/model/model.json").read_text()
    assert "100%" in result.stderr
    assert "80 nodes" in result.stderr
    assert "2 seen + 2 novel classes" in result.stderr
    assert {path.name for path in here.iterdir()} == {"nodes.csv", "texts.csv", "edges.csv", "out"}


def test_results_are_on_stdout_and_progress_on_stderr(here: Path, start: Start) -> None:
    out, err = start(here, "--out", "out").communicate(timeout=120)
    assert "%" not in out
    assert "Task(" not in out
    assert "novel_1" in out
    assert "novel_1" not in err
    assert "\x1b" not in out + err


@pytest.mark.usefixtures("here")
def test_quiet_says_nothing_on_stderr(fit: Call) -> None:
    result = fit("--out", "out", "--quiet")
    assert result.exit_code == 0
    assert result.stderr == ""
    assert "novel_1" in result.stdout


@pytest.mark.usefixtures("here")
def test_json_is_the_result_and_nothing_else(fit: Call) -> None:
    result = fit("--out", "out", "--json")
    found = json.loads(result.stdout)
    assert found["report"] == "out/report.html"
    assert found["run"]["epochs"] == 2
    assert found["accuracy"] is None
    assert [c["class"] for c in found["classes"]] == ["f0", "f1", "novel_1", "novel_2"]
    table = pd.read_parquet("out/classes.parquet")
    assert found["classes"][0]["exemplars"] == list(table["exemplars"][0])
    assert found["classes"][0]["nearest_known"] is None


@pytest.mark.usefixtures("here")
def test_text_columns_are_read_as_words(call: Call) -> None:
    tables = ("texts.csv", "edges.csv", "--labels", "field", "--text", "abstract")
    result = call("fit", *tables, "--novel", "2", *QUICK)
    assert result.exit_code == 0, result.stderr
    assert "abstract:w00" in Path("openima-out/classes.csv").read_text()


def test_the_file_repeats_the_run(at_fitted: Path, call: Call, tmp_path: Path) -> None:
    again = tmp_path / "again"
    result = call("fit", "--config", "out/config.toml", "--out", str(again))
    assert result.exit_code == 0, result.stderr
    assert same_bytes(at_fitted / "out", again)


@pytest.mark.usefixtures("at_fitted")
def test_the_command_line_wins_over_the_file(call: Call, tmp_path: Path) -> None:
    out = tmp_path / "other"
    changes = ("--seed", "3", "--epochs", "1", "--set", "eta=0.5", "--novel", "1")
    result = call("fit", "--config", "out/config.toml", *changes, "--out", str(out))
    assert result.exit_code == 0, result.stderr
    before = FitConfig.from_file("out/config.toml")
    after = FitConfig.from_file(out / "config.toml")
    assert (after.seed, after.n_novel) == (3, 1)
    assert (after.settings["epochs"], after.settings["eta"]) == (1, 0.5)
    assert after.settings["hidden"] == before.settings["hidden"] == 8
    assert after.read == before.read


@pytest.mark.usefixtures("at_fitted")
def test_another_method_starts_from_its_own_settings(call: Call, tmp_path: Path) -> None:
    out = tmp_path / "other"
    result = call("fit", "--config", "out/config.toml", "--method", "orca", *QUICK, "--out", out)
    assert result.exit_code == 0, result.stderr
    after = FitConfig.from_file(out / "config.toml")
    assert after.method == "orca"
    assert after.graph == "nodes.csv"
    assert "eta" not in after.settings


@pytest.mark.parametrize("name", ["digits", "Digits"])
def test_a_data_set_by_name_hides_classes_and_shows_its_images(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = call("fit", name, *QUICK, "--json", "--seed", "5")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    task = load_dataset("digits").open_world_task(seed=5)
    assert [c["class"] for c in found["classes"]][:5] == list(task.class_names)
    assert set(found["accuracy"]) == {"all", "seen", "novel"}
    nodes = pd.read_parquet("openima-out/nodes.parquet")
    assert (nodes["part"] == "test").sum() == len(task.test)
    assert Path("openima-out/images.npz").exists()
    page = Path("openima-out/report.html").read_text()
    assert '"images":{"height":8,"width":8' in page


def test_classes_of_a_labelled_graph_are_hidden_where_asked(here: Path, call: Call) -> None:
    nodes = pd.read_csv("nodes.csv")
    nodes["field"] = np.arange(len(nodes)) % 4
    nodes.to_csv("nodes.csv", index=False)
    refused = call("fit", "nodes.csv", "edges.csv", "--labels", "field", "--novel", "2")
    assert "--hide-classes" in refused.stderr
    hidden = ("--hide-classes", *QUICK, "--json")
    result = call("fit", "nodes.csv", "edges.csv", "--labels", "field", *hidden)
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["accuracy"]["all"] > 0
    again = call("fit", "--config", "openima-out/config.toml", "--out", "again")
    assert "hidden labels found again: All" in again.stdout
    assert "Seen" not in again.stdout  # all nodes of known classes were learned from
    assert same_bytes(here / "openima-out", here / "again")


@pytest.mark.usefixtures("here")
def test_an_old_folder_is_replaced_with_force(fit: Call) -> None:
    assert fit("--out", "out").exit_code == 0
    Path("out/mine.txt").touch()
    refused = fit("--out", "out")
    assert refused.exit_code == 2
    assert "%" not in refused.stderr
    assert Path("out/mine.txt").exists()
    assert fit("--out", "out", "--force").exit_code == 0
    assert not Path("out/mine.txt").exists()


def wait_for(path: Path, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 120
    while not path.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert path.exists()


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGKILL])
def test_a_stopped_run_goes_on_to_the_same_bytes(
    here: Path, fit: Call, start: Start, by: signal.Signals
) -> None:
    kept = here / "out.checkpoint.safetensors"
    process = start(here, "--out", "out", "--epochs", "100000")
    wait_for(kept, process)
    process.send_signal(by)
    out, err = process.communicate(timeout=120)
    assert out == ""
    assert not (here / "out").exists()
    if by == signal.SIGINT:
        assert process.returncode == 130
        assert re.search(r"error: interrupted; epoch \d+ is kept in .*--resume goes on", err)
        assert "Traceback" not in err
    refused = fit("--out", "out")
    assert refused.exit_code == 2
    (done,) = map(int, re.findall(r"Got (\d+) epochs of training", refused.stderr))
    longer = ("--epochs", str(done + 2))
    resumed = fit("--out", "out", *longer, "--resume")
    assert resumed.exit_code == 0, resumed.stderr
    assert f"going on after epoch {done}" in resumed.stderr
    assert not kept.exists()
    assert fit("--out", "whole", *longer).exit_code == 0
    assert same_bytes(here / "out", here / "whole")


def test_an_interrupted_run_is_forgotten_with_force(here: Path, fit: Call) -> None:
    kept = here / "out.checkpoint.safetensors"
    OpenWorldClassifier(n_novel=2, epochs=1, checkpoint=kept, progress=False).fit(
        "nodes.csv", edges="edges.csv", labels="field"
    )
    assert fit("--out", "out").exit_code == 2
    assert fit("--out", "out", "--force").exit_code == 0
    assert not kept.exists()


@pytest.mark.usefixtures("here")
def test_a_doubtful_name_is_noted_unless_quiet(fit: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Fitted, "doubtful_names", lambda _: ["the group called 'f0' is odd"])
    noted, quiet = fit("--out", "a"), fit("--out", "b", "--quiet")
    assert noted.exit_code == quiet.exit_code == 0
    assert noted.stderr.count("note: ") == 1
    assert ": the group called 'f0' is odd\n" in noted.stderr
    assert quiet.stderr == ""


@pytest.mark.usefixtures("here")
def test_resume_starts_where_nothing_is_kept(fit: Call) -> None:
    result = fit("--out", "out", "--resume")
    assert result.exit_code == 0
    assert "starting anew" in result.stderr


@pytest.mark.usefixtures("here")
def test_ctrl_c_before_the_first_epoch_says_so(fit: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(OpenWorldClassifier, "fit", interrupt)
    result = fit("--out", "out")
    assert result.exit_code == 130
    assert result.stderr.count("\n") == 1
    assert "before the first epoch" in result.stderr
