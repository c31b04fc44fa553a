"""What the ids and the labels of a table mean."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from openima.errors import InputError
from openima.graph.readers.table_base import BLANKS, Table, refuse_cell
from openima.graph.task import UNKNOWN, Labels

_INTEGER = "^(0|-?[1-9][0-9]{0,18})$"  # as str(int) writes it, so 007 is text
_WHOLE = re.compile(r"(0|-?[1-9][0-9]{0,99})(\.0*)?")
_SHOWN = 8  # labels in a message


def trimmed(values: Any) -> Any:
    """Drop the blanks around ids: they are noise of the file, never part of an id."""
    return pc.utf8_trim_whitespace(values)


def checked_ids(table: Table, column: str, ids: Any) -> NDArray[Any]:
    """Return the ids as int64 if all are canonical integers, else as strings.

    `ids` is an Arrow chunked array of n strings; each must be there once and not be blank.
    """
    blank = pc.index(ids, "").as_py()
    if blank >= 0:
        refuse_cell(
            table,
            blank,
            column,
            "the node has no id",
            "an id in every row",
            "fill it in or drop the row",
        )
    distinct = pc.unique(ids)
    if len(distinct) < len(ids):
        # Numbered in order of appearance, the ids count up from 0 until one comes again.
        number = pc.index_in(ids, value_set=distinct).to_numpy()
        again = int(np.flatnonzero(number != np.arange(len(ids)))[0])
        first, second = (table.locate(row, column) for row in (int(number[again]), again))
        raise InputError(
            f"the node id {second.value.strip()!r} is there twice",
            where=second.where,
            expected="ids that differ",
            got=f"the same in {first.where}, and {len(ids) - len(distinct):,} repeated rows in all",
            remedy="drop the rows that repeat an id, or name another id column: id=...",
        )
    if pc.all(pc.match_substring_regex(ids, _INTEGER)).as_py():
        try:
            return np.asarray(ids.cast(pa.int64()))
        except pa.ArrowInvalid:  # beyond 64 bits
            pass
    return np.asarray(ids.to_pylist(), dtype=np.str_)


def encode_label_column(
    table: Table, column: str, values: Any, unknown: str | None
) -> tuple[Labels, tuple[str, ...]]:
    """Number the classes in sorted order, as numbers if all are integers; unknown is -1.

    `values` is an Arrow chunked array of n strings. "3.0" is the class "3": that is how an
    integer column with blanks is often written.
    """
    values = trimmed(values)
    distinct = pc.unique(values)
    written = [_natural(value) for value in distinct.to_pylist()]
    if unknown is not None:
        unknown = _natural(str(unknown).strip())
        if unknown not in written:
            raise _never_unknown(table, column, unknown, written)
    known = {value for value in written if value not in BLANKS and value != unknown}
    whole = all(_WHOLE.fullmatch(value) for value in known)
    names = sorted(known, key=int) if whole else sorted(known)
    number = {name: code for code, name in enumerate(names)}
    codes = np.asarray([number.get(value, UNKNOWN) for value in written], dtype=np.int64)
    return codes[pc.index_in(values, value_set=distinct).to_numpy()], tuple(names)


def _natural(label: str) -> str:
    """Write a whole number without its fraction, and leave all else alone."""
    whole = _WHOLE.fullmatch(label)
    return whole[1] if whole else label


def _never_unknown(table: Table, column: str, unknown: str, written: list[str]) -> InputError:
    labels = sorted(value for value in written if value not in BLANKS)
    close = get_close_matches(unknown, labels, n=1)
    more = f" and {len(labels) - _SHOWN} more" if len(labels) > _SHOWN else ""
    return InputError(
        f"no label in column {column!r} is {unknown!r}",
        where=str(table.path),
        expected=f"one of {', '.join(labels[:_SHOWN])}{more}",
        remedy=f"did you mean {close[0]!r}?"
        if close
        else "leave out unknown if blanks mean unknown",
    )
