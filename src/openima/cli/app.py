"""All commands of `openima`; to add one, write a function in a file of its own and list it here."""

from __future__ import annotations

from inspect import cleandoc
from typing import Annotated

import typer

from openima.cli.datasets import datasets
from openima.cli.demo import demo
from openima.cli.errors import Commands
from openima.cli.examples import EXAMPLES
from openima.cli.fit import fit
from openima.cli.methods import methods
from openima.cli.predict import predict
from openima.cli.report import report
from openima.cli.study import study_app
from openima.cli.theory import theory
from openima.version import __version__

app = typer.Typer(cls=Commands, no_args_is_help=True, add_completion=False)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"openima {__version__}")
        raise typer.Exit


@app.callback()
def openima(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print it."),
    ] = False,
) -> None:
    """Open-world semi-supervised node classification: known classes, and new ones found."""


def _paragraphs(text: str | None) -> str:
    """Put each paragraph of a docstring on one line: the help is laid out by the terminal."""
    parts = cleandoc(text or "").split("\n\n")
    return "\n\n".join(" ".join(part.split()) for part in parts)


for _command in (fit, predict, report, methods, datasets, demo, theory):
    _name = _command.__name__
    app.command(help=_paragraphs(_command.__doc__), epilog=EXAMPLES.get(_name))(_command)

app.add_typer(study_app, name="study")
