"""`openima demo`: openima at work on a real graph that needs no download."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from openima.cli import options

OUT = Path("openima-demo")


def demo(
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help=f"The folder to write. By default {OUT}, which replaces that of an earlier demo.",
            show_default=False,
        ),
    ] = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Discover five of the ten handwritten digits: the other five are known, fifty images each.

    It prints the classes that were found, and the path of a page that shows the images.
    """
    from openima.cli.run import run
    from openima.fit_config import FitConfig
    from openima.graph.task import PAPER_SEEDS

    asked = FitConfig(graph="digits", seed=PAPER_SEEDS[0])
    run(asked, out or OUT, force=force or out is None, resume=False, quiet=quiet, json=json)
