"""Parquet tables: the same graph as from CSV, and the same kind of errors, by row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from openima.errors import InputError
from openima.graph.readers.table_parquet import ParquetTable
from openima.graph.readers.tables import read_tables


def csv_edges(folder: Path) -> Path:
    path = folder / "edges.csv"
    path.write_text("source,target\n1,2\n")
    return path


def message(error: pytest.ExceptionInfo[InputError], *says: str) -> None:
    text = str(error.value)
    assert "\n" not in text
    for part in says:
        assert part in text, text


def parquet(path: Path, **columns: Any) -> Path:
    pd.DataFrame(columns).to_parquet(path, index=False)
    return path


def test_a_parquet_file_cut_short_or_overwritten(tmp_path: Path) -> None:
    edges = csv_edges(tmp_path)
    whole = parquet(tmp_path / "n.parquet", id=list("abc"), x=[1.0, 2.0, 3.0]).read_bytes()
    for name, content in {
        "half": whole[: len(whole) // 2],
        "text": b"id,x\na,1\n",
        "letters": whole.replace(b"a\x01\x00\x00\x00b", b"\xff\x01\x00\x00\x00b"),
        "pages": whole[:4] + b"\xff" * 60 + whole[64:],
    }.items():
        nodes = tmp_path / f"{name}.parquet"
        nodes.write_bytes(content)
        with pytest.raises(InputError) as error:
            read_tables(nodes, edges)
        message(error, f"{name}.parquet", "cannot be read as Parquet", "again")


PARQUET_CASES: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "null feature": ({"id": [1, 2], "x": [1.0, None]}, ("row 2:", "feature 'x'", "a blank")),
    "infinite feature": ({"id": [1, 2], "x": [np.inf, 1.0]}, ("row 1:", "feature 'x'", "'inf'")),
    "text feature": ({"id": [1, 2], "x": ["p", "q"]}, ("row 1:", "'x' holds text", "text='x'")),
    "null id": ({"id": ["a", None], "x": [1, 2]}, ("row 2:", "no id", "a blank")),
    "duplicate id": ({"id": [5, 5], "x": [1, 2]}, ("row 2:", "'5' is there twice", "row 1")),
    "ids that are lists": (
        {"id": [[1], [2]], "x": [1, 2]},
        ("'id' cannot be read as text", "list", "as strings"),
    ),
    "no rows": ({"id": [], "x": []}, ("header but no rows",)),
    "index column": ({"__index_level_0__": [1, 2], "x": [1, 2]}, ("is an index",)),
}


@pytest.mark.parametrize(("columns", "says"), PARQUET_CASES.values(), ids=PARQUET_CASES.keys())
def test_a_fault_in_a_parquet_file(
    columns: dict[str, Any], says: tuple[str, ...], tmp_path: Path
) -> None:
    nodes = parquet(tmp_path / "nodes.parquet", **columns)
    edges = csv_edges(tmp_path)
    with pytest.raises(InputError) as error:
        read_tables(nodes, edges)
    message(error, "nodes.parquet", *says)


def test_an_empty_parquet_file(tmp_path: Path) -> None:
    nodes = tmp_path / "nodes.parquet"
    nodes.write_bytes(b"")
    with pytest.raises(InputError) as error:
        read_tables(nodes, csv_edges(tmp_path))
    message(error, "nodes.parquet", "the file is empty")


def test_pages_that_hold_fewer_rows_than_the_file_says(tmp_path: Path) -> None:
    path = parquet(tmp_path / "nodes.parquet", id=["a", "b"])
    table = ParquetTable(path, "nodes", ("id",), n_rows=3)
    with pytest.raises(InputError) as error:
        list(table.batches(["id"], []))
    message(error, "nodes.parquet", "cannot be read as Parquet", "2 rows instead of 3")


def test_a_parquet_edge_to_an_unknown_node_in_a_later_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("openima.graph.readers.table_parquet._CELLS", 10)
    nodes = parquet(tmp_path / "nodes.parquet", id=[1, 2], x=[0.5, 1.5])
    target = [2] * 40
    target[33] = target[36] = 9
    edges = parquet(tmp_path / "edges.parquet", source=[1] * 40, target=target)
    with pytest.raises(InputError) as error:
        read_tables(nodes, edges)
    message(error, "edges.parquet, row 34:", "the target '9'", "2 such edges")
