"""The raw files of the Open Graph Benchmark's node tasks: gzipped tables of numbers."""

from __future__ import annotations

import gzip
import json
import shutil
import tempfile
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv
from numpy.typing import NDArray

from openima.errors import InputError
from openima.graph.graph import Graph
from openima.graph.readers.common import damaged, existing_file, labels_from_numbers
from openima.graph.task import LabelledGraph

FILES = (
    "edge.csv.gz",
    "node-feat.csv.gz",
    "node-label.csv.gz",
    "num-node-list.csv.gz",
    "num-edge-list.csv.gz",
)
"""What has to lie in the folder `raw`."""

_BLOCK = 1 << 22  # bytes of a table that are parsed in one go
_REMEDY = "write or download the file again"


def read_ogb(folder: Path, *, directed: bool, name: str) -> LabelledGraph:
    """Read a graph from `folder / "raw"`, in memory little larger than the graph itself.

    An undirected graph's files list each link once, and both directions are stored. Features
    are dense float32. A label that is missing or `nan` is unknown. Classes are called as in
    `mapping/labelidx2*.csv.gz`, or by their number where that names none.

    What was parsed is kept in `folder / "processed" / "openima"` where that can be written: the
    next time features are mapped from there, unless a raw file has changed.
    """
    edges, features, labels = _parsed(folder)
    where = str(folder / "raw" / "node-label.csv.gz")
    class_names = _class_names(folder / "mapping", int(np.nanmax(labels, initial=-1)) + 1)
    graph = Graph.from_edges(edges[0], edges[1], features, directed=directed, name=name)
    return LabelledGraph(graph, *labels_from_numbers(labels, where, class_names))


def _parsed(folder: Path) -> tuple[NDArray[Any], ...]:
    """Return edges (2, E), features (N, D) and labels (N,), from the cache where it is current."""
    raw = folder / "raw"
    files = [existing_file(raw / file).stat() for file in FILES]
    stamp = json.dumps([[file.st_size, file.st_mtime_ns] for file in files])
    cache = folder / "processed" / "openima"
    kept = [cache / f"{part}.npy" for part in ("edges", "features", "labels")]
    try:
        if (cache / "stamp.json").read_text(encoding="utf-8") == stamp:
            return tuple(np.load(path, mmap_mode="r", allow_pickle=False) for path in kept)
    except (OSError, ValueError, EOFError):
        pass  # never written, or damaged: parse again
    parts = _parse(raw)
    with suppress(OSError):  # a folder that cannot be written: the graph loads all the same
        _store(cache, parts, stamp)
    return parts


def _parse(raw: Path) -> tuple[NDArray[Any], ...]:
    n_nodes = int(_table(raw / "num-node-list.csv.gz", 1, 1, np.int64)[0, 0])
    n_edges = int(_table(raw / "num-edge-list.csv.gz", 1, 1, np.int64)[0, 0])
    index = np.int32 if n_nodes <= np.iinfo(np.int32).max else np.int64
    feature_file = raw / "node-feat.csv.gz"
    return (
        _table(raw / "edge.csv.gz", n_edges, 2, index, order="F").T,
        _table(feature_file, n_nodes, _n_columns(feature_file), np.float32),
        _table(raw / "node-label.csv.gz", n_nodes, 1, np.float64, missing=np.nan)[:, 0],
    )


def _table(
    path: Path,
    n_rows: int,
    n_columns: int,
    dtype: Any,
    *,
    order: str = "C",
    missing: float | None = None,
) -> NDArray[Any]:
    """Read a table without a header, block by block, into one array `(n_rows, n_columns)`."""
    if n_rows < 0:
        raise InputError("a number of rows is negative", where=str(path.parent), got=str(n_rows))
    types = {f"f{i}": pa.from_numpy_dtype(np.dtype(dtype)) for i in range(n_columns)}
    table = np.zeros((n_rows, n_columns), dtype=dtype, order="F" if order == "F" else "C")
    done = 0
    try:
        with pa_csv.open_csv(
            path,
            read_options=pa_csv.ReadOptions(autogenerate_column_names=True, block_size=_BLOCK),
            parse_options=pa_csv.ParseOptions(ignore_empty_lines=False),
            convert_options=pa_csv.ConvertOptions(column_types=types),
        ) as blocks:
            for block in blocks:
                if block.num_columns != n_columns or done + block.num_rows > n_rows:
                    got = f"{done + block.num_rows:,} or more of {block.num_columns:,}"
                    raise _wrong_size(path, n_rows, n_columns, got)
                for i, column in enumerate(block.columns):
                    if column.null_count:
                        column = _filled(column, missing, path, done)
                    table[done : done + len(column), i] = column.to_numpy(zero_copy_only=False)
                done += block.num_rows
    except InputError:
        raise
    except ValueError as error:  # pyarrow's ArrowInvalid: it knows the column, not the row
        raise InputError(
            f"a value cannot be read in line {done + 1:,} or after",
            where=str(path),
            expected=f"{n_columns:,} columns of type {np.dtype(dtype)}",
            got=str(error),
            remedy=_REMEDY,
        ) from error
    except OSError as error:
        raise damaged(path, "gzip", error) from error
    if done != n_rows:
        raise _wrong_size(path, n_rows, n_columns, f"{done:,} rows")
    return table


def _filled(column: Any, missing: float | None, path: Path, done: int) -> Any:
    if missing is None:
        row = done + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        raise InputError(
            f"a value is missing or nan in line {row + 1:,}", where=str(path), remedy=_REMEDY
        )
    return column.fill_null(missing)


def _wrong_size(path: Path, n_rows: int, n_columns: int, got: str) -> InputError:
    return InputError(
        "the table has another size than the num-*-list files say",
        where=str(path),
        expected=f"{n_rows:,} rows of {n_columns:,} columns",
        got=got,
        remedy=_REMEDY,
    )


def _n_columns(path: Path) -> int:
    try:
        with gzip.open(path) as file:
            return file.readline().count(b",") + 1
    except (OSError, EOFError, zlib.error) as error:
        raise damaged(path, "gzip", error) from error


def _class_names(mapping: Path, n_numbers: int) -> tuple[str, ...]:
    """Name the classes from a table of number and name, with a header; a blank name is none."""
    path = next(iter(sorted(mapping.glob("labelidx2*.csv.gz"))), None)
    if path is None:
        return tuple(str(c) for c in range(n_numbers))
    try:
        table = pd.read_csv(path, dtype={0: np.int64, 1: str})
        column = table.iloc[:, 1].fillna("").astype(str).str.strip()
        names = dict(zip(table.iloc[:, 0].tolist(), column.tolist(), strict=True))
        n_classes = max([n_numbers, *(int(number) + 1 for number in names)])
    except (OSError, EOFError, zlib.error, ValueError, IndexError) as error:
        raise damaged(path, "table of class number and class name", error) from error
    return tuple(names.get(c) or str(c) for c in range(n_classes))


def _store(cache: Path, parts: tuple[NDArray[Any], ...], stamp: str) -> None:
    """Write the cache beside its place and move it there whole."""
    cache.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache.parent) as folder:
        fresh = Path(folder) / cache.name
        fresh.mkdir()
        for part, array in zip(("edges", "features", "labels"), parts, strict=True):
            np.save(fresh / f"{part}.npy", array, allow_pickle=False)
        (fresh / "stamp.json").write_text(stamp, encoding="utf-8")
        shutil.rmtree(cache, ignore_errors=True)
        fresh.replace(cache)
