"""`openima demo`, from end to end."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from openima.fit_config import FitConfig

Call = Callable[..., Result]


def test_the_demo_shows_the_classes_and_how_well_they_were_found(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = call("demo")
    assert result.exit_code == 0, result.stderr
    assert "5 seen + 5 novel classes" in result.stderr
    assert "novel_5" in result.stdout
    all_, seen, novel = map(float, re.findall(r"(?:All|Seen|Novel) ([\d.]+)%", result.stdout))
    assert all_ > 60
    assert min(seen, novel) > 40
    page = tmp_path / "openima-demo" / "report.html"
    assert "report: openima-demo/report.html" in result.stdout
    assert '"images":{"height":8,"width":8' in page.read_text(encoding="utf-8")


def test_an_earlier_demo_is_replaced_and_no_folder_that_was_named(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, bool]] = []

    def run(_: FitConfig, out: Path, *, force: bool, **__: Any) -> None:
        asked.append((str(out), force))

    monkeypatch.setattr("openima.cli.run.run", run)
    for arguments in ([], ["--out", "other"], ["--out", "other", "--force"]):
        assert call("demo", *arguments).exit_code == 0
    assert asked == [("openima-demo", True), ("other", False), ("other", True)]
