"""A progress bar on standard error for anything that takes a while."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


class EpochBar:
    """Shows how far training has come and the last epoch's figures."""

    def __init__(self, title: str, n_epochs: int, n_steps: int, shown: bool) -> None:
        """Lay the bar out; nothing is shown before it is started."""
        self._title, self._n_epochs, self._n_steps = title, n_epochs, n_steps
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[figures]}"),
            console=Console(stderr=True),
            disable=not shown,
        )
        self._task = self._bar.add_task(title, total=n_epochs * n_steps, figures="")

    def epoch(self, number: int, last: Mapping[str, float]) -> None:
        """Begin epoch `number`; `last` is the row of the one before."""
        self._show(f"{self._title} epoch {number}/{self._n_epochs}", number - 1, last)

    def finish(self, last: Mapping[str, float]) -> None:
        """Show that all epochs are done; `last` is the row of the last one."""
        self._show(self._title, self._n_epochs, last)

    def _show(self, description: str, n_done: int, row: Mapping[str, float]) -> None:
        names = [name for name in ("sc", "val_acc", "all") if name in row]
        self._bar.update(
            self._task,
            description=description,
            completed=n_done * self._n_steps,
            figures="  ".join(f"{name} {row[name]:.3f}" for name in names),
        )

    def step(self) -> None:
        """Count one optimiser step."""
        self._bar.advance(self._task)


@contextmanager
def epoch_bar(title: str, n_epochs: int, n_steps: int, shown: bool) -> Iterator[EpochBar]:
    """Show a bar while the body runs."""
    bar = EpochBar(title, n_epochs, n_steps, shown)
    with bar._bar:
        yield bar
