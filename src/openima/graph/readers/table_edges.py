"""The edges of a table, as node numbers: mapped block by block, so memory stays lean."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from openima.errors import InputError
from openima.graph.readers.table_base import Table, refuse_cell, shown
from openima.graph.readers.table_columns import EdgeColumns
from openima.graph.readers.table_values import trimmed


class Links(NamedTuple):
    """Edges as node numbers, each array of length m."""

    sources: NDArray[np.int32]
    targets: NDArray[np.int32]
    weights: NDArray[np.float32] | None


def read_edges(table: Table, columns: EdgeColumns, ids: Any) -> Links:
    """Read the edges, and number their ends by the place in `ids`, Arrow strings."""
    _refuse_edge_as_header(table, columns, ids)
    ends: list[NDArray[np.int32]] = []
    weights: list[NDArray[np.float32]] = []
    row, n_astray, first_astray = 0, 0, (0, "")
    weighted = [] if columns.weight is None else [columns.weight]
    for batch in table.batches([columns.source, columns.target], weighted):
        numbers = _numbered(batch, columns, ids)
        astray = numbers < 0
        if astray.any():
            rows = np.flatnonzero(astray.any(axis=0))
            if not n_astray:
                side = columns.source if astray[0, rows[0]] else columns.target
                first_astray = row + int(rows[0]), side
            n_astray += len(rows)
        ends.append(numbers)
        if columns.weight is not None:
            weights.append(_checked_weights(table, batch, columns.weight, row))
        row += batch.num_rows
    if n_astray == row > 1:
        _refuse_all_astray(table, *first_astray, ids)
    if n_astray:
        _refuse_astray(table, *first_astray, n_astray)
    sources, targets = np.concatenate(ends, axis=1)
    return Links(sources, targets, np.concatenate(weights) if weights else None)


def _refuse_edge_as_header(table: Table, columns: EdgeColumns, ids: Any) -> None:
    """Refuse a table whose names of columns are ids of nodes: it has no header."""
    names = pa.chunked_array([[columns.source, columns.target]], pa.string())
    if pc.all(pc.is_in(names, value_set=ids)).as_py():
        raise InputError(
            "the first line is an edge, not the names of the columns",
            where=str(table.path),
            expected="a header, such as source,target",
            got=f"{columns.source},{columns.target}",
            remedy="add a line of names",
        )


def _numbered(batch: Any, columns: EdgeColumns, ids: Any) -> NDArray[np.int32]:
    """Number sources and targets of one batch: shape (2, rows), -1 where there is no such node."""
    # Both in one call, as each call builds a hash table of all ids.
    ends = [trimmed(batch.column(column)) for column in (columns.source, columns.target)]
    found = pc.index_in(pa.chunked_array(ends), value_set=ids)
    return np.asarray(pc.fill_null(found, -1), dtype=np.int32).reshape(2, -1)


def _checked_weights(table: Table, batch: Any, column: str, row: int) -> NDArray[np.float32]:
    weights: NDArray[np.float32] = batch.column(column).to_numpy(zero_copy_only=False)
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights > 0)))
    if len(bad):
        refuse_cell(
            table,
            row + int(bad[0]),
            column,
            "the weight of the edge is not a positive number",
            "a finite float32 number above 0",
            "drop the edge, or give it a positive weight",
        )
    return weights


def _refuse_all_astray(table: Table, row: int, column: str, ids: Any) -> None:
    """Refuse edges none of which fits: other columns are meant, or ids are written otherwise."""
    cell = table.locate(row, column)
    called = ", ".join(shown(id) for id in ids[:2].to_pylist())
    raise InputError(
        f"no edge fits the nodes table; the first {column} is {shown(cell.value.strip())}",
        where=cell.where,
        expected=f"ids as in the nodes table: {called}, ...",
        remedy="write ids in the same way in both tables, or name other columns: id=..., "
        "source=..., target=...",
    )


def _refuse_astray(table: Table, row: int, column: str, n_edges: int) -> None:
    cell = table.locate(row, column)
    id = cell.value.strip()
    negative = re.fullmatch(r"-\d+", id)
    raise InputError(
        f"the {column} {id!r} is not in the nodes table" if id else f"the {column} is blank",
        where=cell.where,
        expected="the id of a node at both ends of every edge",
        got=f"{n_edges:,} such edge{'s' if n_edges > 1 else ''} in all",
        remedy="drop the edges"
        + (
            ": a negative id often stands for no node"
            if negative
            else ", or add the nodes with their features"
        ),
    )
