"""`openima report`: the page of a run, made again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from typer.testing import Result

Call = Callable[..., Result]


def test_the_page_is_made_again_to_the_same_bytes(at_fitted: Path, call: Call) -> None:
    page = at_fitted / "out" / "report.html"
    content = page.read_bytes()
    page.unlink()
    result = call("report", "out")
    assert result.exit_code == 0, result.stderr
    assert result.stdout == "out/report.html\n"
    assert result.stderr == ""
    assert page.read_bytes() == content


def test_the_path_is_told_as_json_too(at_fitted: Path, call: Call) -> None:
    del at_fitted
    assert json.loads(call("report", "out", "--json").stdout) == {"report": "out/report.html"}


def test_a_damaged_run_is_refused(at_fitted: Path, call: Call, tmp_path: Path) -> None:
    for path in (at_fitted / "out").glob("*.*"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "history.parquet").write_bytes(b"nothing")
    result = call("report", str(tmp_path))
    assert result.exit_code == 2
    assert "history.parquet: the file cannot be read" in result.stderr
    assert result.stderr.count("\n") == 1
