"""What every table file offers, whatever its format, and the checks that all formats share."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn, Protocol

from openima.errors import InputError

Part = Literal["nodes", "edges"]

BLANKS = ("", "NaN", "nan", "NA", "N/A", "n/a", "<NA>", "NULL", "null")
"""How a cell says that it holds nothing, where a number or a label is read."""

_INDEX_COLUMN = re.compile(r"|Unnamed: \d+|__index_level_\d+__")
"""The names that the row numbers of a data frame get when they are written by mistake."""

_LONGEST = 60  # letters of a value in a message


class Cell(NamedTuple):
    """One cell as its file has it: where an editor shows it, and what is written there."""

    where: str
    value: str


class Table(Protocol):
    """A table on disk, read in batches of rows so that memory stays bounded."""

    @property
    def path(self) -> Path:
        """The file."""

    @property
    def part(self) -> Part:
        """What its rows are."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, in order."""

    def batches(self, text: Sequence[str], numbers: Sequence[str]) -> Iterator[Any]:
        """Yield Arrow record batches of these columns, in the order of the rows.

        `text` columns are strings (a null is ""), `numbers` are float32 (a null stays null).
        """

    def locate(self, row: int, column: str) -> Cell:
        """Find the cell of the row counted from 0; slow, for messages only."""


def refuse_cell(
    table: Table, row: int, column: str, what: str, expected: str, remedy: str
) -> NoReturn:
    """Raise the error about one cell."""
    cell = table.locate(row, column)
    got = shown(cell.value) if cell.value.strip() else "a blank"
    raise InputError(what, where=cell.where, expected=expected, got=got, remedy=remedy)


def shown(value: str) -> str:
    """Quote a value, and cut a long one: a message is one line."""
    return repr(value if len(value) <= _LONGEST else value[:_LONGEST] + "…")


def refuse_text(part: Part, where: str, column: str, value: str) -> NoReturn:
    """Raise the error about text in a column that has to hold numbers."""
    use = f"or read it as words (text={column!r}) or as classes (labels={column!r})"
    raise InputError(
        f"column {column!r} holds text where a number belongs",
        where=where,
        expected="a number",
        got=shown(value),
        remedy="correct the value, "
        + (f"drop the column, {use}" if part == "nodes" else "or drop the row"),
    )


def check_columns(path: Path, columns: Sequence[str]) -> None:
    """Refuse names that are there twice, and columns without a name of their own."""
    for number, column in enumerate(columns, 1):
        if _INDEX_COLUMN.fullmatch(column):
            raise InputError(
                f"column {number} has no name" if not column else f"column {column!r} is an index",
                where=str(path),
                expected="a name for every column",
                remedy="name or drop it; pandas writes no such column with index=False",
            )
    twice = [column for column, count in Counter(columns).items() if count > 1]
    if twice:
        raise InputError(
            f"the column name {twice[0]!r} is there {columns.count(twice[0])} times",
            where=str(path),
            remedy="give every column a name of its own",
        )


def refuse_empty(path: Path, *, header: bool) -> NoReturn:
    """Raise the error about a table without rows."""
    raise InputError(
        "the table has a header but no rows" if header else "the file is empty",
        where=str(path),
        expected="a line of column names and at least one row",
        remedy="write the table again",
    )
