"""Parquet files, read in batches of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from openima.errors import InputError
from openima.graph.readers.table_base import Cell, Part, check_columns, refuse_empty, refuse_text

_CELLS = 1 << 24  # how many are decoded in one go

_PROBLEMS = (pa.ArrowException, OSError, ValueError)  # the last: names that are not UTF-8


@dataclass(frozen=True)
class ParquetTable:
    """A Parquet file; its rows are counted from 1 in messages."""

    path: Path
    part: Part
    columns: tuple[str, ...]
    n_rows: int

    @classmethod
    def open(cls, path: Path, part: Part) -> ParquetTable:
        """Read the names of the columns from the end of the file."""
        if not path.stat().st_size:
            refuse_empty(path, header=False)
        try:
            with pq.ParquetFile(path) as file:
                columns, n_rows = tuple(file.schema_arrow.names), file.metadata.num_rows
        except _PROBLEMS as problem:
            raise _unreadable(path, problem) from None
        check_columns(path, columns)
        if not n_rows:
            refuse_empty(path, header=True)
        return cls(path, part, columns, n_rows)

    def batches(self, text: Sequence[str], numbers: Sequence[str]) -> Iterator[Any]:
        """Yield the batches, text as strings and numbers as float32."""
        for batch in self._stream([*text, *numbers]):
            arrays = [self._as_text(batch.column(c), c) for c in text]
            arrays += [self._as_number(batch.column(c), c) for c in numbers]
            yield pa.RecordBatch.from_arrays(arrays, names=[*text, *numbers])

    def locate(self, row: int, column: str) -> Cell:
        """Find the value of a cell, reading its column up to it."""
        at = row
        for batch in self._stream([column]):
            if at < batch.num_rows:
                value = batch.column(column)[at].as_py()
                return Cell(f"{self.path}, row {row + 1}", "" if value is None else str(value))
            at -= batch.num_rows
        raise IndexError(row)

    def _stream(self, columns: list[str]) -> Iterator[Any]:
        seen = 0
        try:
            with pq.ParquetFile(self.path) as file:
                rows = max(1, _CELLS // len(columns))
                for batch in file.iter_batches(rows, columns=columns):
                    batch.validate(full=True)  # text that is not UTF-8 would fail much later
                    seen += batch.num_rows
                    yield batch
        except _PROBLEMS as problem:
            raise _unreadable(self.path, problem) from None
        if seen != self.n_rows:
            raise _unreadable(self.path, f"{seen:,} rows instead of {self.n_rows:,}")

    def _as_text(self, values: Any, column: str) -> Any:
        """Write values as text; numbers without a fraction as integers, whatever their type."""
        values = _plain(values)
        if pa.types.is_floating(values.type):
            whole = pc.less(pc.abs(values), 2.0**53)
            whole = pc.and_(whole, pc.equal(values, pc.floor(values)))
            integers = values.cast(pa.int64(), safe=False).cast(pa.string())
            values = pc.if_else(
                pc.is_nan(values), None, pc.if_else(whole, integers, self._cast(values, column))
            )
        return pc.fill_null(self._cast(values, column), "")

    def _cast(self, values: Any, column: str) -> Any:
        try:
            return values.cast(pa.string())
        except pa.ArrowException:
            raise InputError(
                f"column {column!r} cannot be read as text",
                where=str(self.path),
                expected="strings or numbers",
                got=f"the type {values.type}",
                remedy="write the column as strings",
            ) from None

    def _as_number(self, values: Any, column: str) -> Any:
        values = _plain(values)
        kind = values.type
        if pa.types.is_null(kind) or pa.types.is_boolean(kind) or _is_numeric(kind):
            return values.cast(pa.float32(), safe=False)
        cell = self.locate(0, column)
        return refuse_text(self.part, cell.where, column, cell.value)


def _plain(values: Any) -> Any:
    return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values


def _is_numeric(kind: Any) -> bool:
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def _unreadable(path: Path, problem: object) -> InputError:
    return InputError(
        "the file cannot be read as Parquet: it is truncated, corrupt, or something else",
        where=str(path),
        got=str(problem),
        remedy="copy or write it again",
    )
