"""`openima report`: the page of a run, made again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from openima.cli import options
from openima.cli.printing import show, show_json


def report(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="A folder that openima fit wrote.")
    ],
    json: options.Json = False,
) -> None:
    """Make report.html of a run again from its other files, and print its path."""
    from openima.report.html import write_report

    path = write_report(directory)
    if json:
        show_json({"report": path})
    else:
        show(str(path))
