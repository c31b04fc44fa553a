"""What can be asked for by name."""

from __future__ import annotations

import typer

from openima.graph.datasets import dataset_names
from openima.methods import recipes


def datasets() -> None:
    """List the data sets that openima can load by name."""
    for name in dataset_names():
        typer.echo(name)


def methods() -> None:
    """List the methods by name."""
    for name, recipe in recipes().items():
        typer.echo(f"{name:<20} {recipe.title}")
