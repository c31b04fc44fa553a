"""Results on standard output, notes on standard error, colours on terminals alone."""

from __future__ import annotations

import io
import json
import logging
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from openima.cli.printing import grid, notes, plain, show, show_all_letters, show_json, tell

LONG = ", ".join(f"word {i}" for i in range(80))


def test_tables_are_complete_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    show(grid({"a": "left", "b": "right", "c": "left"}, [("x", "1,000", LONG)], cut=True), "done")
    out, err = capsys.readouterr()
    row, end = out.splitlines()[3], out.splitlines()[-1]
    assert row.split()[:2] == ["x", "1,000"]
    assert LONG in row
    assert end == "done"
    assert err == ""


def test_what_a_user_named_is_never_markup(capsys: pytest.CaptureFixture[str]) -> None:
    name = "[red]:smile:[/]"
    show(grid({"a": "left"}, [(name,)], title="t"), name)
    tell(name)
    out, err = capsys.readouterr()
    assert out.count(name) == 2
    assert err == f"{name}\n"


@pytest.mark.parametrize(
    ("cut", "rows"), [(True, 1), (False, 13)], ids=["the end is cut off", "lines are broken"]
)
def test_a_narrow_terminal_keeps_all_columns_but_the_last(
    cut: bool, rows: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in {"FORCE_COLOR": "1", "COLUMNS": "70", "TERM": "xterm"}.items():
        monkeypatch.setenv(name, value)
    show(grid({"name": "left", "words": "left"}, [("x" * 9, LONG)], cut=cut))
    lines = [line for line in capsys.readouterr().out.splitlines() if "word" in line][1:]
    assert len(lines) == rows
    assert all(len(line) <= 70 for line in lines)
    assert ("…" in lines[0]) == cut


def on_terminal(environment: dict[str, str]) -> str:
    """Run a command whose output is a terminal, and return what it shows there."""
    pty = pytest.importorskip("pty", reason="there are no pseudo-terminals here")
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "openima.cli", "datasets"]
    plainly = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR")}
    with subprocess.Popen(
        command, stdout=theirs, stderr=theirs, env={**plainly, "TERM": "xterm", **environment}
    ) as process:
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 4096):
                shown += part
        except OSError:  # Linux says so when the other end is closed
            pass
    os.close(ours)
    assert process.returncode == 0
    return shown.decode()


def test_colours_are_for_terminals_that_want_them() -> None:
    assert "\x1b[1m" in on_terminal({})
    assert "\x1b" not in on_terminal({"TERM": "dumb"})
    piped = [sys.executable, "-m", "openima.cli", "datasets"]
    done = subprocess.run(piped, capture_output=True, text=True, check=True)
    assert "citeseer" in done.stdout
    assert "\x1b" not in done.stdout


class Screen(io.BytesIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("end", "shown"), [(io.BytesIO, "é 数\n".encode()), (Screen, rb"\xe9 \u6570" + b"\n")]
)
def test_letters_that_the_system_does_not_have_are_no_error(
    end: type[io.BytesIO], shown: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = end()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
    show_all_letters()
    show("é 数")
    sys.stdout.flush()
    assert written.getvalue() == shown


def test_names_of_any_script_reach_a_file() -> None:
    """A system without UTF-8 ended in an error after all the work was done."""
    code = "import typer; typer.echo('é'); print('数')"
    app = f"from openima.cli import app\n@app.command()\ndef say() -> None: {code}\napp(['say'])"
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    job = [sys.executable, "-c", app]
    done = subprocess.run(job, capture_output=True, env=ascii_only, check=True)
    assert done.stdout.decode().split() == ["é", "数"]


def test_json_holds_plain_values(capsys: pytest.CaptureFixture[str]) -> None:
    show_json({"a": np.float32(0.5), "b": [np.nan, np.int64(3)], "é": Path("x"), 4: np.arange(2)})
    out = capsys.readouterr().out
    assert json.loads(out) == {"a": 0.5, "b": [None, 3], "é": "x", "4": [0, 1]}
    assert plain(float("inf")) is None
    assert plain((True, None, "x")) == [True, None, "x"]


@pytest.mark.parametrize("quiet", [False, True])
def test_notes_pass_on_what_is_logged_and_warned(
    quiet: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    logger = logging.getLogger("openima.inputs")
    own = {"__name__": "openima.inputs", "warnings": warnings}
    with notes(quiet=quiet):
        logger.info("read %s", "it")
        logger.debug("in detail")
        exec("warnings.warn('a class; say so:\\n unknown=?')", own)
        warnings.warn("of another package", stacklevel=1)
    logger.info("later")
    out, err = capsys.readouterr()
    assert out == ""
    assert err == ("" if quiet else "read it\nnote: a class; say so: --unknown ?\n")
