"""Which column of a table plays which part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from openima.errors import InputError
from openima.graph.readers.table_base import Table

_SHOWN = 12  # column names in a message


@dataclass(frozen=True)
class NodeColumns:
    """The parts of the columns of a table of nodes; all that is left over is a feature."""

    id: str
    label: str | None
    text: str | None
    numbers: tuple[str, ...]


@dataclass(frozen=True)
class EdgeColumns:
    """The parts of the columns of a table of edges; all that is left over is not read."""

    source: str
    target: str
    weight: str | None


def node_columns(table: Table, id: str | None, label: str | None, text: str | None) -> NodeColumns:
    """Choose by the names that the user gave, else by usual names, else by position."""
    given = _given(table, {"id": id, "label": label, "text": text})
    free = [column for column in table.columns if column not in given]
    label = label or _usual(free, "label", "class", "y")
    free = [column for column in free if column != label]
    if id is None:
        id = _usual(free, "id", "node_id", "node") or _first(table, free, "id")
    return NodeColumns(id, label, text, tuple(column for column in free if column != id))


def edge_columns(
    table: Table, source: str | None, target: str | None, weight: str | None
) -> EdgeColumns:
    """Choose by the names that the user gave, else by usual names, else by position."""
    given = _given(table, {"source": source, "target": target, "weight": weight})
    free = [column for column in table.columns if column not in given]
    weight = weight or _usual(free, "weight")
    source = source or _usual(free, "source", "src", "from")
    target = target or _usual(free, "target", "dst", "to")
    free = [column for column in free if column not in (source, target, weight)]
    if source is None:
        source = _first(table, free, "source")
        free = free[1:]
    return EdgeColumns(source, target or _first(table, free, "target"), weight)


def _given(table: Table, parts: dict[str, str | None]) -> list[str]:
    """Check the names that the user gave: each is there, and none plays two parts."""
    given: dict[str, str] = {}
    for part, column in parts.items():
        if column is None:
            continue
        if column not in table.columns:
            raise _missing(table, part, column)
        if column in given:
            raise InputError(
                f"column {column!r} cannot be both {given[column]} and {part}",
                where=str(table.path),
                remedy=f"name another column as {part}",
            )
        given[column] = part
    return list(given)


def _usual(columns: Sequence[str], *names: str) -> str | None:
    """Find the first of some usual names, in any case."""
    by_name = {column.lower(): column for column in reversed(columns)}
    return next((by_name[name] for name in names if name in by_name), None)


def _first(table: Table, free: Sequence[str], part: str) -> str:
    if not free:
        raise InputError(
            f"no column is left to be the {part}",
            where=str(table.path),
            expected="a column of ids" if part == "id" else "a column for each end of an edge",
            got=_listed(table.columns),
            remedy="add the column, or say which one plays which part",
        )
    return free[0]


def _missing(table: Table, part: str, column: str) -> InputError:
    lower = {name.lower(): name for name in table.columns}
    close = get_close_matches(column.lower(), lower, n=1)
    return InputError(
        f"there is no {part} column {column!r}",
        where=str(table.path),
        expected=f"one of the columns {_listed(table.columns)}",
        remedy=f"did you mean {lower[close[0]]!r}?" if close else f"name one of them as {part}",
    )


def _listed(columns: Sequence[str]) -> str:
    more = f" and {len(columns) - _SHOWN} more" if len(columns) > _SHOWN else ""
    return ", ".join(columns[:_SHOWN]) + more
