"""openima at work on a real graph that needs no download."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from openima.graph.datasets import load_dataset
from openima.graph.task import PAPER_SEEDS, Task
from openima.methods import get_recipe
from openima.train.trainer import TrainResult, train


def demo() -> None:
    """Discover five of the ten handwritten digits: the other five are known, fifty images each."""
    console = Console()
    task = load_dataset("digits").open_world_task(seed=PAPER_SEEDS[0])
    console.print(task_table(task))
    result = train(task, get_recipe("openima").with_settings(seed=PAPER_SEEDS[0]))
    console.print(accuracy_table(result))


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


def accuracy_table(result: TrainResult) -> Table:
    """Lay out how well hidden labels were found again, at the epoch that SC&ACC chooses."""
    row = result.history.iloc[result.best]
    title = f"{result.recipe.title}, epoch {row['epoch']:.0f} of {len(result.history)}"
    table = Table(title=title, caption="share of test nodes put into the right class")
    for column in ("All", "Seen", "Novel"):
        table.add_column(column, justify="right")
    table.add_row(*(f"{row[column]:.1%}" for column in ("all", "seen", "novel")))
    return table
