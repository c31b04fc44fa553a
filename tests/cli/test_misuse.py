"""Whatever is asked wrongly ends in one line on standard error, and exit code 2."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import Result

Call = Callable[..., Result]

FILES: dict[str, str | bytes] = {
    "broken.toml": "method = openima\n",
    "unknown.toml": 'graph = "nodes.csv"\nnovel = 2\n',
    "unknown_read.toml": "[read]\nlabel = 'field'\n",
    "kind.toml": "n_novel = 'two'\n",
    "setting.toml": "[settings]\nhiden = 3\n",
    "empty.csv": "",
    "header.csv": "id,field\n",
    "latin.csv": b"id,field,x\np0,caf\xe9,1\n",
    "ragged.csv": "id,field,x\np0,a,1\np1,b\n",
    "twice.csv": "id,field,x\np0,a,1\np0,b,2\n",
    "one.csv": "id,field,x\np0,a,1\np1,,2\n",
    "full.csv": "id,field,x\np0,a,1\np1,b,2\n",
    "same.csv": "id,field,x\np0,a,1\np1,b,1\np2,,1\n",
    "two.csv": "source,target\np0,p1\n",
    "astray.csv": "source,target\np0,nobody\n",
    "graph.npz": b"not a zip file",
    "graph.graphml": "<graphml>",
    "graph.pt": b"nothing",
    "notes.txt": "id",
}
TABLES = ("nodes.csv", "edges.csv")
FIELD = ("--labels", "field")
FIT = ("fit", *TABLES, *FIELD, "--novel", "2")
LINKS = ("fit", "links.csv", "edges.csv", *FIELD)

MISUSES: dict[str, tuple[Sequence[str], str]] = {
    "unknown command": (["fot"], "Did you mean 'fit'?"),
    "unknown option": (["fit", "--lables", "x"], "--labels"),
    "unknown option of all": (["--bad"], "--bad"),
    "an argument too many": ([*FIT, "more"], "more"),
    "no graph": (["fit"], "there is no graph to fit"),
    "no such file": (["fit", "absent.csv", "edges.csv"], "absent.csv: there is no such file"),
    "no such data set": (["fit", "digitz"], "did you mean 'digits'?"),
    "an empty graph": (["fit", ""], "the path of the graph is empty"),
    "empty edges": (["fit", "nodes.csv", ""], "edges is not the path of a table"),
    "edges of a folder": (["fit", "folder", "edges.csv"], "a folder has its table of edges"),
    "no edges": (["fit", "nodes.csv"], "Expected a table of edges too"),
    "no such edges": (["fit", "nodes.csv", "no.csv"], "no.csv: the edges table is not there"),
    "a folder as edges": (["fit", "nodes.csv", "folder"], "the edges table is a folder"),
    "an empty folder": (["fit", "folder"], "the folder has no nodes table"),
    "another format": (["fit", "notes.txt"], "the format of the file cannot be told"),
    "no such label column": (["fit", *TABLES, "--labels", "feld"], "did you mean 'field'"),
    "no such id column": ([*FIT, "--id", "name"], "there is no id column 'name'"),
    "no such text column": ([*FIT, "--text", "words"], "there is no text column 'words'"),
    "no such source column": ([*FIT, "--source", "start"], "there is no source column 'start'"),
    "no such weight column": ([*FIT, "--weight", "w"], "there is no weight column 'w'"),
    "text as number": (["fit", "texts.csv", "edges.csv"], "or read it as words (--text"),
    "a value that is no label": ([*FIT, "--unknown", "?"], "no label in column 'field' is '?'"),
    "structural of no kind": ([*LINKS, "--structural", "x"], "'x'"),
    "an option of another format": ([*FIT, "--k", "5"], "'k' does not apply"),
    "an empty table": (["fit", "empty.csv", "two.csv"], "the file is empty"),
    "a table without rows": (["fit", "header.csv", "two.csv"], "a header but no rows"),
    "another encoding": (["fit", "latin.csv", "two.csv"], "latin.csv, line 2: the file is not"),
    "a row too short": (["fit", "ragged.csv", "two.csv", *FIELD], "ragged.csv, line 3"),
    "an id twice": (["fit", "twice.csv", "two.csv", *FIELD], "'p0' is there twice"),
    "an edge to nowhere": (["fit", "nodes.csv", "astray.csv", *FIELD], "astray.csv, line 2"),
    "a damaged npz": (["fit", "graph.npz"], "graph.npz"),
    "a damaged graphml": (["fit", "graph.graphml"], "graph.graphml"),
    "a damaged pt": (["fit", "graph.pt"], "graph.pt"),
    "edges of a graph in one file": (["fit", "graph.npz", "edges.csv"], "has its edges in it"),
    "no labels": (["fit", "bare.csv", "edges.csv"], "Expected labels of at least two classes"),
    "one class": (["fit", "one.csv", "two.csv", *FIELD], "only 'a'"),
    "all labelled": (["fit", "full.csv", "two.csv", *FIELD], "--hide-classes"),
    "equal features": (
        ["fit", "same.csv", "two.csv", *FIELD, "--novel", "0"],
        "nothing tells them apart",
    ),
    "how many new classes": (["fit", *TABLES, "--labels", "field"], "--novel on the command line"),
    "less than no new class": ([*FIT[:-1], "-1"], "--novel"),
    "a word for a number": ([*FIT[:-1], "some"], "--novel"),
    "more classes than nodes": ([*FIT[:-1], "99"], "cannot be put into 101 classes"),
    "no such method": ([*FIT, "--method", "openina"], "did you mean 'openima'?"),
    "no epochs": ([*FIT, "--epochs", "0"], "--epochs"),
    "a negative seed": ([*FIT, "--seed", "-1"], "--seed"),
    "a share above 1": ([*FIT, "--val-share", "2"], "val_share is a share"),
    "no such device": ([*FIT, "--device", "tpu"], "the device 'tpu' cannot be used"),
    "a setting without a value": ([*FIT, "--set", "hidden"], "Expected name=value"),
    "a setting without a name": ([*FIT, "--set", "=3"], "Expected name=value"),
    "no such setting": ([*FIT, "--set", "hiden=3"], "did you mean 'hidden'?"),
    "a setting of another kind": ([*FIT, "--set", "hidden=many"], "hidden has a value of another"),
    "a setting that cannot be": ([*FIT, "--set", "batch_size=0"], "batch_size must be at least 1"),
    "no such file of settings": (["fit", "--config", "no.toml"], "no.toml: there is no such file"),
    "a broken file of settings": (["fit", "--config", "broken.toml"], "cannot be read as TOML"),
    "an unknown key": (["fit", "--config", "unknown.toml"], "Expected one of graph, method,"),
    "an unknown key of reading": (
        ["fit", "--config", "unknown_read.toml"],
        "Expected one of edges",
    ),
    "a key of another kind": (["fit", "--config", "kind.toml"], "Expected a whole number"),
    "an unknown setting in it": ([*FIT, "--config", "setting.toml"], "did you mean 'hidden'?"),
    "a folder of settings": (["fit", "--config", "folder"], "folder: this is a folder"),
    "a file without a graph": (["fit", "--config", "setting.toml"], "there is no graph to fit"),
    "a folder that is there": ([*FIT, "--out", "folder"], "folder: the folder is there already"),
    "a folder of another kind": ([*FIT, "--out", "other", "--force"], "holds something else"),
    "a file as folder": ([*FIT, "--out", "notes.txt"], "there is a file of that name"),
    "a folder in a file": ([*FIT, "--out", "notes.txt/out"], "notes.txt"),
    "edges of a data set": (["fit", "digits", "edges.csv"], "a data set by name has its links"),
    "labels of a data set": (["fit", "digits", "--labels", "y"], "write ./digits"),
    "no model": (["predict", "folder", *TABLES], "folder: there is no saved model"),
    "nothing to predict": (["predict", "folder"], "Missing argument 'GRAPH'"),
    "predictions as text": (["predict", "x", *TABLES, "--out", "p.txt"], ".csv or .parquet"),
    "predictions on a file": (["predict", "x", *TABLES, "--out", "nodes.csv"], "--force"),
    "predictions to nowhere": (["predict", "x", *TABLES, "--out", "no/p.csv"], "no such folder"),
    "no folder to report": (["report", "absent"], "pass a folder that `openima fit --out` wrote"),
    "a file to report": (["report", "notes.txt"], "pass a folder that `openima fit --out`"),
    "no run to report": (["report", "folder"], "the file is missing"),
    "report of nothing": (["report"], "Missing argument 'DIR'"),
    "demo onto a folder": (["demo", "--out", "folder"], "the folder is there already"),
    "no study": (["study", "run", "no.toml"], "no.toml: there is no such file"),
    "an unknown study command": (["study", "fly"], "fly"),
    "curves into a file": (["theory", "--out", "notes.txt"], "--out"),
}


@pytest.fixture
def messy(here: Path) -> Path:
    """Add to the tables files with which something is wrong."""
    for name, content in FILES.items():
        raw = content if isinstance(content, bytes) else content.encode()
        (here / name).write_bytes(raw)
    nodes = pd.read_csv("nodes.csv")
    nodes[["id", "field"]].to_csv("links.csv", index=False)
    nodes.drop(columns="field").to_csv("bare.csv", index=False)
    (here / "folder").mkdir()
    (here / "other").mkdir()
    (here / "other" / "mine.txt").touch()
    return here


@pytest.mark.parametrize("name", MISUSES)
def test_a_misuse_is_told_in_one_line(messy: Path, call: Call, name: str) -> None:
    arguments, message = MISUSES[name]
    before = sorted(messy.rglob("*"))
    result = call(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1, result.stderr
    assert result.stderr.endswith("\n")
    assert message in result.stderr
    assert sorted(messy.rglob("*")) == before
