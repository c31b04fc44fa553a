"""What all commands share: help, versions, and how quickly they answer."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest
from typer.testing import Result

from openima import __version__

Call = Callable[..., Result]
COMMANDS = ("fit", "predict", "report", "methods", "datasets", "demo", "theory", "study")


def test_the_help_names_every_command(call: Call) -> None:
    result = call("--help")
    assert result.exit_code == 0
    for command in COMMANDS:
        assert f" {command} " in result.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_help(call: Call, command: str) -> None:
    result = call(command, "--help")
    assert result.exit_code == 0
    assert f"Usage: openima {command}" in result.stdout


@pytest.mark.parametrize("command", ["fit", "predict", "report", "demo"])
def test_help_ends_with_examples_and_exit_codes(call: Call, command: str) -> None:
    shown = call(command, "--help").stdout
    assert f"openima {command} " in shown.split("Examples:")[1]
    assert "Exit codes: 0 done, 1 failed, 2 bad usage or input" in shown


def test_without_a_command_the_help_is_shown(call: Call) -> None:
    result = call()
    assert result.exit_code == 2
    assert "Usage: openima" in result.output
    assert "error" not in result.stderr


def test_the_version_is_told(call: Call) -> None:
    assert call("--version").stdout == f"openima {__version__}\n"


@pytest.mark.parametrize("arguments", [["--help"], ["fit", "--help"], ["study", "--help"], ["fot"]])
def test_help_and_usage_errors_do_not_wait_for_torch(arguments: list[str]) -> None:
    program = (
        "import sys\nfrom openima.cli import app\ntry:\n    app()\nfinally:\n"
        "    heavy = {'torch', 'sklearn', 'pandas', 'scipy', 'pyarrow'} & set(sys.modules)\n"
        "    assert not heavy, heavy\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False
    )
    assert "AssertionError" not in done.stderr
    assert done.returncode == (2 if arguments == ["fot"] else 0)
