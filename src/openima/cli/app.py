"""All commands of `openima`; to add one, write a function in a file of its own and list it here."""

from __future__ import annotations

import typer

from openima.cli.demo import demo
from openima.cli.listings import datasets, methods
from openima.cli.study import study_app
from openima.cli.theory import theory

app = typer.Typer(no_args_is_help=True, add_completion=False)


@app.callback()
def openima() -> None:
    """Open-world semi-supervised node classification."""


for command in (datasets, methods, demo, theory):
    app.command()(command)

app.add_typer(study_app, name="study")
