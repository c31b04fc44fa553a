"""CSV files: streamed by Arrow, and read again line by line only to say where one is wrong."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import pyarrow as pa
import pyarrow.csv as pa_csv

from openima.errors import InputError
from openima.graph.readers.table_base import (
    BLANKS,
    Cell,
    Part,
    check_columns,
    refuse_empty,
    refuse_text,
    shown,
)
from openima.graph.readers.table_files import is_gzip, readable, refuse_others

_DELIMITERS = {",": "comma", "\t": "tab", ";": "semicolon"}
_STRANGE = "|: ^~"  # in the only name and in the only field they are likely delimiters
_BLOCK = 1 << 25  # bytes that are parsed in one go; a single row must fit
_TRUE_FALSE = frozenset({"true", "True", "TRUE", "false", "False", "FALSE"})  # as Arrow reads them
_PADDING = " \t"  # that Arrow allows around a number

Record = tuple[int, list[str]]  # the line it starts on, and its fields


@dataclass(frozen=True)
class CsvTable:
    """A CSV file with a header, comma, tab or semicolon between fields, perhaps gzipped."""

    path: Path
    part: Part
    columns: tuple[str, ...]
    delimiter: str
    header_line: int
    booleans: frozenset[str]

    @classmethod
    def open(cls, path: Path, part: Part) -> CsvTable:
        """Read the header and make out the delimiter from it and the first row."""
        refuse_others(path)
        heads = {mark: list(islice(_records(path, mark), 2)) for mark in _DELIMITERS}
        delimiter = max(_DELIMITERS, key=lambda mark: _fit(heads[mark]))
        head = heads[delimiter]
        if not head:
            refuse_empty(path, header=False)
        line, names = head[0]
        columns = tuple(name.strip() for name in names)
        if len(columns) == 1 and any(all(m in row[0] for _, row in head) for m in _STRANGE):
            raise InputError(
                "the delimiter cannot be made out: the header looks like a single column",
                where=f"{path}, line {line}",
                expected=f"{', '.join(_DELIMITERS.values())} between the names",
                got=shown(columns[0]),
                remedy="write the table with commas",
            )
        check_columns(path, columns)
        if len(head) == 1:
            refuse_empty(path, header=True)
        first = zip(columns, head[1][1], strict=False)  # a ragged row is reported later
        booleans = frozenset(c for c, value in first if value in _TRUE_FALSE)
        return cls(path, part, columns, delimiter, line, booleans)

    def batches(self, text: Sequence[str], numbers: Sequence[str]) -> Iterator[Any]:
        """Yield the batches; if Arrow gives up, find the line that is to blame."""
        types = dict.fromkeys(text, pa.string())
        types |= {c: pa.bool_() if c in self.booleans else pa.float32() for c in numbers}
        done = 0
        try:
            with self._stream(types) as stream:
                for batch in stream:
                    yield _numbers_as_floats(batch)
                    done += batch.num_rows
            return
        except (pa.ArrowException, OSError) as problem:
            got = str(problem)
        self._blame(done, numbers)
        raise InputError("the file cannot be read as CSV", where=str(self.path), got=got)

    def _stream(self, types: dict[str, Any]) -> Any:
        return pa_csv.open_csv(
            pa.input_stream(str(self.path), compression="gzip" if is_gzip(self.path) else None),
            read_options=pa_csv.ReadOptions(
                column_names=self.columns, skip_rows=self.header_line, block_size=_BLOCK
            ),
            parse_options=pa_csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            convert_options=pa_csv.ConvertOptions(
                column_types=types, include_columns=list(types), null_values=BLANKS
            ),
        )

    def _blame(self, good: int, numbers: Sequence[str]) -> None:
        """Raise the error of the first line that cannot be read; `good` rows have numbers."""
        places = [(self.columns.index(column), column) for column in numbers]
        for row, (line, record) in enumerate(self._rows()):
            where = f"{self.path}, line {line}"
            if len(record) != len(self.columns):
                raise InputError(
                    "the row does not fit the header",
                    where=where,
                    expected=f"{len(self.columns)} fields as in the header",
                    got=f"{len(record)}",
                    remedy="complete the row, or quote a field that holds the delimiter",
                )
            for place, column in places if row >= good else ():
                if not _is_number(record[place], column in self.booleans):
                    refuse_text(self.part, where, column, record[place])

    def locate(self, row: int, column: str) -> Cell:
        """Find the line and the value of a cell, reading the file up to it."""
        line, record = next(islice(self._rows(), row, None))
        return Cell(f"{self.path}, line {line}", record[self.columns.index(column)])

    def _rows(self) -> Iterator[Record]:
        return islice(_records(self.path, self.delimiter), 1, None)


def _fit(head: list[Record]) -> tuple[bool, int]:
    """Rank a delimiter: header and first row should agree, and then more fields are better."""
    lengths = [len(record) for _, record in head]
    return len(lengths) > 0 and lengths[0] == lengths[-1] > 1, max(lengths[:1], default=0)


def _is_number(field: str, boolean: bool) -> bool:
    """Tell whether Arrow reads the field as a number, or as true or false, or as nothing."""
    if field in BLANKS:
        return True
    if boolean:
        return field in _TRUE_FALSE or field in ("0", "1")
    value = field.strip(_PADDING)
    try:
        float(value)
    except ValueError:
        return False
    # Python is more lenient: it reads 1_000, the digits of other scripts, and drops other blanks.
    return "_" not in value and value.isascii() and value == value.strip()


def _numbers_as_floats(batch: Any) -> Any:
    columns = [c.cast(pa.float32()) if pa.types.is_boolean(c.type) else c for c in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _records(path: Path, delimiter: str) -> Iterator[Record]:
    """Yield the records that are not blank lines, with the line on which each starts.

    Slow, but exact about lines and bounded in memory: for the header and for messages.
    """
    line = 0
    csv.field_size_limit(max(csv.field_size_limit(), _BLOCK))  # a text may be long
    try:
        with readable(path), _opened(path) as lines:
            reader = csv.reader(_decoded(lines, path), delimiter=delimiter)
            for record in reader:
                start, line = line + 1, reader.line_num
                if record:
                    yield start, record
    except csv.Error as problem:
        raise InputError(
            "the row cannot be read as CSV", where=f"{path}, line {line + 1}", got=str(problem)
        ) from None
    except EOFError:
        raise InputError(
            "the compressed file ends too early", where=str(path), remedy="copy or write it again"
        ) from None


def _opened(path: Path) -> TextIO:
    """Open a file as text; bytes that are not UTF-8 stay marked for `_decoded` to find."""
    if is_gzip(path):
        return gzip.open(path, "rt", encoding="utf-8-sig", errors="surrogateescape", newline="")
    return path.open("r", encoding="utf-8-sig", errors="surrogateescape", newline="")


def _decoded(lines: Iterable[str], path: Path) -> Iterator[str]:
    """Pass lines on, and refuse the first one with bytes that are not UTF-8."""
    for number, line in enumerate(lines, 1):
        if not line.isascii():
            try:
                line.encode()
            except UnicodeEncodeError as problem:
                byte = ord(line[problem.start]) - 0xDC00
                raise InputError(
                    "the file is not UTF-8",
                    where=f"{path}, line {number}",
                    got=f"the byte 0x{byte:02x}",
                    remedy="save the table as UTF-8",
                ) from None
        yield line
