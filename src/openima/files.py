"""Writing: folders and files complete or not at all, and faults that end in one clear line."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from openima.errors import InputError


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Say in one line what is wrong where the body cannot write to `path`."""
    try:
        yield
    except OSError as error:
        raise InputError(
            "this cannot be written",
            where=str(path),
            got=error.strerror or str(error),
            remedy="use a path that can be written to, on a disk that has room",
        ) from None


def refuse_taken(path: Path, *, force: bool, marker: str) -> None:
    """Refuse a folder that is there already, unless `force` and it is of the same kind.

    A folder of that kind has a file `marker` in it; an empty one may be replaced too.
    """
    where = str(path)
    if path.exists() and not path.is_dir():
        raise InputError("there is a file of that name", where=where, remedy="choose another name")
    if not path.exists():
        _refuse_unwritable(path)
        return
    if not force:
        raise InputError(
            "the folder is there already",
            where=where,
            remedy="choose another name, or replace it: force=True, --force on the command line",
        )
    if any(path.iterdir()) and not (path / marker).is_file():
        raise InputError(
            "the folder holds something else, which is not replaced",
            where=where,
            expected=f"a folder that openima wrote, with a file {marker}",
            remedy="choose another name, or remove it yourself",
        )


def _refuse_unwritable(path: Path) -> None:
    """Refuse a path that cannot be made, because of the nearest folder above it that is there."""
    above = next(folder for folder in path.resolve().parents if folder.exists())
    if not above.is_dir() or not os.access(above, os.W_OK):
        raise InputError(
            "the folder cannot be made",
            where=str(path),
            got=f"{above}, which " + ("cannot be written to" if above.is_dir() else "is a file"),
            remedy="use a path whose folder can be written to",
        )


@contextmanager
def complete_folder(path: Path, *, force: bool, marker: str) -> Iterator[Path]:
    """Hand out an empty folder to fill; when that is done it takes the name `path`.

    Whoever looks at `path` sees what was there before or all of the new files. If filling fails,
    nothing is changed.
    """
    path = path.resolve()
    refuse_taken(path, force=force, marker=marker)
    partial, old = (path.with_name(f".{path.name}.{os.getpid()}.{end}") for end in ("new", "old"))
    try:
        partial.mkdir(parents=True)
    except OSError as error:
        raise InputError(
            "the folder cannot be made",
            where=str(path),
            got=error.strerror,
            remedy="use a path whose folder can be written to",
        ) from None
    try:
        yield partial
        refuse_taken(path, force=force, marker=marker)  # it may have come up in the meantime
        if path.exists():
            path.rename(old)
        partial.rename(path)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


@contextmanager
def complete_file(path: Path) -> Iterator[Path]:
    """Hand out a path to write to; when that is done, the file replaces `path` at once.

    If writing fails, what was there before stays.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        yield partial
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
