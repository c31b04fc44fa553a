"""The command line: parse, call, print."""

from __future__ import annotations

import typer
from rich.console import Console
from rich.table import Table

from openima.graph.datasets import dataset_names, load_dataset
from openima.graph.task import PAPER_SEEDS, Task

app = typer.Typer(no_args_is_help=True, add_completion=False, help=__doc__)


@app.callback()
def openima() -> None:
    """Open-world semi-supervised node classification."""


@app.command()
def datasets() -> None:
    """List the data sets that `load_dataset` knows."""
    Console().print("\n".join(dataset_names()))


@app.command()
def demo() -> None:
    """Show a task on the handwritten digits: five known, five to discover."""
    task = load_dataset("digits").open_world_task(seed=PAPER_SEEDS[0])
    Console().print(task_table(task))


def task_table(task: Task) -> Table:
    """Lay out, class by class, what is known of a task and what is to be found."""
    table = Table(title=repr(task.graph), caption=repr(task))
    for column in ("class", "status"):
        table.add_column(column)
    for column in ("nodes", "train", "val", "test"):
        table.add_column(column, justify="right")
    for row in task.class_counts().itertuples(index=False):
        table.add_row(*(str(cell) for cell in row))
    return table
