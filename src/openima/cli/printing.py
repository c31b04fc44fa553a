"""What commands print: results on standard output, progress and notes on standard error."""

from __future__ import annotations

import io
import json
import logging
import math
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

Side = Literal["left", "right"]

_WIDE = 200  # letters of a line at least, where nobody looks at a terminal
_ENDLESS = 1_000_000

_PYTHON = re.compile(
    r"\b(labels|unknown|id|text|features|source|target|weight|directed|structural|k)="
)
"""How messages write the options of `read_graph`, which are options of commands too."""


def show_all_letters() -> None:
    """Let names of any script pass: files and pipes get UTF-8, a terminal what it can show."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        if sys.stdout.isatty():
            sys.stdout.reconfigure(errors="backslashreplace")
        else:
            sys.stdout.reconfigure(encoding="utf-8")


def tell(message: str, *, kind: str = "", style: str = "") -> None:
    """Say something in one line on standard error; `kind` comes first, in a style of its own."""
    message = _PYTHON.sub(r"--\1 ", " ".join(message.split()))
    line = Text.assemble((f"{kind}: " if kind else "", style), message)
    Console(stderr=True).print(line, soft_wrap=True)


def show(*parts: str | Table) -> None:
    """Print results: lines as they are, tables as wide as they are where that is no terminal."""
    console = Console()
    screen = console.width
    for part in parts:
        if isinstance(part, str):
            console.print(Text(part), soft_wrap=True)
            continue
        if not console.is_terminal:
            endless = console.options.update(width=_ENDLESS)
            console.width = max(_WIDE, Measurement.get(console, endless, part).maximum)
        console.print(part)
        console.width = screen


def show_json(value: Any) -> None:
    """Print a value as JSON and nothing else, so that a program can read it."""
    sys.stdout.write(json.dumps(plain(value), indent=2, ensure_ascii=False) + "\n")


def plain(value: Any) -> Any:
    """Make JSON's own values of numpy's and pandas' ones; what is not a number becomes null."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, Path) else value


def grid(
    columns: Mapping[str, Side],
    rows: Iterable[Sequence[str]],
    *,
    title: str | None = None,
    cut: bool = False,
) -> Table:
    """Lay out a table; where the terminal is narrow the last column is broken, or cut off."""
    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )
    *_, last = columns
    for name, side in columns.items():
        table.add_column(name, justify=side, no_wrap=name != last)
    for row in rows:
        end = Text(row[-1], no_wrap=cut, overflow="ellipsis" if cut else "fold")
        table.add_row(*(Text(cell) for cell in row[:-1]), end)
    return table


@contextmanager
def notes(*, quiet: bool) -> Iterator[None]:
    """Pass on, while the body runs, what openima logs and warns of; nothing if `quiet`."""
    logger = logging.getLogger("openima")
    handler, level = _Notes(), logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.ERROR if quiet else logging.INFO)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if not quiet:
                warnings.filterwarnings("always", category=UserWarning, module=r"openima\.")
                warnings.showwarning = _tell_warning
            yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


class _Notes(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        tell(record.getMessage())


def _tell_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    tell(str(message), kind="note", style="yellow")
