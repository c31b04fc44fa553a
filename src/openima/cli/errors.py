"""What a command ends with: one line on standard error, and a code that scripts can read.

| code | what it says |
|---|---|
| 0 | done |
| 1 | could not be done here and now: a package, the network or memory is missing |
| 2 | what was asked for cannot be done as it is: usage, a file, a setting |
| 130 | interrupted by Ctrl-C |
"""

from __future__ import annotations

import os
import re
import sys
from typing import Any

import typer
from typer.core import TyperGroup

from openima.cli.printing import show_all_letters, tell
from openima.errors import DownloadError, MissingPackageError, OpenimaError

FAILED, BAD_INPUT, INTERRUPTED = 1, 2, 130
_NO_MEMORY = re.compile("(not enough|out of|allocate) memory")  # torch has no MemoryError
_NOT_THE_USERS_FAULT = (DownloadError, MissingPackageError)


class Commands(TyperGroup):
    """A group of commands none of which ends in a traceback.

    With the environment variable OPENIMA_TRACEBACK set, errors pass through as they are.
    """

    def main(self, *args: Any, **options: Any) -> Any:
        """Run a command and leave the process."""
        options["standalone_mode"] = False
        show_all_letters()
        try:
            code = super().main(*args, **options)
        except Exception as error:
            if os.environ.get("OPENIMA_TRACEBACK"):
                raise
            code = _told(error)
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: Any) -> Any:
        """Run a command; an interruption that it does not deal with itself is told here."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            refuse("interrupted")
            raise typer.Exit(INTERRUPTED) from None


def refuse(message: str) -> None:
    """Say in one line on standard error why there is no result."""
    tell(message, kind="error", style="bold red")


def _told(error: Exception) -> int:
    """Tell an error and return the exit code for it."""
    if isinstance(error, OpenimaError):
        refuse(str(error))
        return FAILED if isinstance(error, _NOT_THE_USERS_FAULT) else BAD_INPUT
    usage = getattr(error, "format_message", None)  # typer's own errors
    if usage is not None:
        if usage():  # without a message, it is the help that was shown instead
            path = getattr(getattr(error, "ctx", None), "command_path", "openima")
            refuse(str(OpenimaError(usage(), remedy=f"see {path} --help")))
        return BAD_INPUT
    if isinstance(error, OSError):
        refuse(f"{error.filename or 'system'}: {error.strerror or error}.")
    elif isinstance(error, MemoryError) or _NO_MEMORY.search(str(error)):
        refuse("there is not enough memory. Remedy: a smaller batch_size, or fan_outs.")
    else:
        refuse(f"{type(error).__name__}: {error} (OPENIMA_TRACEBACK=1 shows where)")
    return FAILED
