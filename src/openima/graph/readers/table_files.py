"""Files that should be CSV: whether they can be read at all, and what they are instead."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from openima.errors import InputError

_GZIP = b"\x1f\x8b"
_AS_CSV = "save the table as CSV in the program that it comes from"
_OTHERS = {
    b"PK\x03\x04": ("a zip archive, as an Excel file (.xlsx) is", _AS_CSV),
    b"\xd0\xcf\x11\xe0": ("an Excel file (.xls)", _AS_CSV),
    _GZIP: ("gzipped", "end its name in .csv.gz"),
    b"PAR1": ("a Parquet file", "end its name in .parquet"),
    b"\xff\xfe": ("UTF-16", "save the table as UTF-8"),
    b"\xfe\xff": ("UTF-16", "save the table as UTF-8"),
}
"""What files that are no CSV begin with: what they are, and what to do."""


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Say in one line what is wrong where the body cannot read `path`."""
    try:
        yield
    except (OSError, zlib.error) as problem:
        raise InputError(
            "the file cannot be read",
            where=str(path),
            got=getattr(problem, "strerror", None) or str(problem),
            remedy="see that you may read it, or copy it again",
        ) from None


def refuse_others(path: Path) -> None:
    """Refuse a file of another format, by its first bytes; its name says CSV."""
    with readable(path), path.open("rb") as file:
        start = file.read(4)
    if is_gzip(path):
        if start and not start.startswith(_GZIP):
            raise InputError(
                "the file is not gzipped",
                where=str(path),
                expected="what its name says",
                remedy="drop .gz from its name if it is a plain table, else write it again",
            )
        return
    for mark, (what, remedy) in _OTHERS.items():
        if start.startswith(mark):
            raise InputError(
                "the file is no CSV",
                where=str(path),
                expected="a table in text, UTF-8",
                got=what,
                remedy=remedy,
            )


def is_gzip(path: Path) -> bool:
    """Tell whether the name of a file says that it is compressed."""
    return path.suffix.lower() == ".gz"
