"""Errors of commands: which code, and in one line."""

from __future__ import annotations

from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from openima.cli.errors import Commands
from openima.errors import (
    DownloadError,
    InputError,
    MissingFileError,
    MissingPackageError,
    OpenimaError,
)


def ended_by(error: BaseException) -> Result:
    app = typer.Typer(cls=Commands)

    @app.command()
    def work() -> None:
        raise error

    @app.callback()
    def group() -> None:
        pass

    return CliRunner().invoke(app, ["work"])


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (InputError("bad", remedy="better"), 2, "bad. Remedy: better."),
        (MissingFileError("gone", where="x.csv"), 2, "x.csv: gone."),
        (OpenimaError("odd"), 2, "odd."),
        (DownloadError("no network"), 1, "no network."),
        (MissingPackageError("needs more"), 1, "needs more."),
        (PermissionError(13, "Permission denied", "out"), 1, "out: Permission denied."),
        (OSError("strange"), 1, "system: strange."),
        (MemoryError(), 1, "there is not enough memory."),
        (RuntimeError("DefaultCPUAllocator: not enough memory: ..."), 1, "there is not enough"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), 1, "there is not enough"),
        (
            RuntimeError("two\nlines"),
            1,
            "RuntimeError: two lines (OPENIMA_TRACEBACK=1 shows where)",
        ),
        (KeyboardInterrupt(), 130, "interrupted"),
        (typer.BadParameter("not so"), 2, "not so. Remedy: see"),
    ],
)
def test_each_error_has_its_code_and_one_line(error: BaseException, code: int, line: str) -> None:
    result = ended_by(error)
    assert result.exit_code == code
    assert result.stderr.startswith(f"error: {line}") or f"error: Invalid value: {line}" in (
        result.stderr
    )
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


def test_options_are_named_as_the_command_line_has_them() -> None:
    error = InputError("no", remedy="labels=..., or did you mean text='a'; hidden=3 stays")
    assert "--labels ..., or did you mean --text 'a'; hidden=3 stays" in ended_by(error).stderr


def test_an_error_keeps_brackets_and_colons() -> None:
    assert "[red] :smile: [/x]" in ended_by(InputError("[red] :smile: [/x]")).stderr


def test_a_traceback_is_there_for_those_who_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENIMA_TRACEBACK", "1")
    result: Any = ended_by(InputError("bad"))
    assert isinstance(result.exception, InputError)
