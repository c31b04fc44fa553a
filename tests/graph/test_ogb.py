from __future__ import annotations

import gzip
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from openima.errors import InputError, MissingFileError, OpenimaError
from openima.graph import ogb
from openima.graph.ogb import FILES, read_ogb

Write = Callable[[str, str], None]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Five nodes in OGB's raw layout; the file of classes leaves class 1 blank."""
    tables = {
        "raw/num-node-list": "5\n",
        "raw/num-edge-list": "6\n",
        "raw/edge": "0,1\n1,2\n2,2\n4,3\n0,1\n3,0\n",
        "raw/node-feat": "0.5,-1\n1e-3,2\n3,4\n5,6\n7,8.25\n",
        "raw/node-label": "0\n2\nnan\n1\n\n",
        "mapping/labelidx2arxivcategeory": "label idx,arxiv category\n0,arxiv cs ai\n1,\n2,a c\n",
    }
    for name, text in tables.items():
        path = tmp_path / "ogbn_small" / f"{name}.csv.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(text.encode()))
    return tmp_path / "ogbn_small"


@pytest.fixture
def write(folder: Path) -> Write:
    def write_table(name: str, text: str) -> None:
        (folder / "raw" / f"{name}.csv.gz").write_bytes(gzip.compress(text.encode()))

    return write_table


def edges_of(made: Any) -> set[tuple[int, int]]:
    targets = np.repeat(np.arange(made.graph.n_nodes), made.graph.in_degrees)
    return set(zip(made.graph.sources.tolist(), targets.tolist(), strict=True))


def test_a_directed_graph_stays_directed(folder: Path) -> None:
    made = read_ogb(folder, directed=True, name="ogbn-small")
    assert made.graph.directed
    assert made.graph.name == "ogbn-small"
    assert edges_of(made) == {(0, 1), (1, 2), (2, 2), (4, 3), (3, 0)}  # a parallel edge is one


def test_an_undirected_graph_gets_both_directions(folder: Path) -> None:
    made = read_ogb(folder, directed=False, name="ogbn-small")
    assert not made.graph.directed
    once = {(0, 1), (1, 2), (2, 2), (4, 3), (3, 0)}
    assert edges_of(made) == once | {(b, a) for a, b in once}
    assert made.graph.n_links == 5


def test_features_labels_and_names(folder: Path) -> None:
    made = read_ogb(folder, directed=True, name="ogbn-small")
    features = made.graph.features
    assert isinstance(features, np.ndarray)
    assert features.dtype == np.float32
    expected = np.array([[0.5, -1], [1e-3, 2], [3, 4], [5, 6], [7, 8.25]], np.float32)
    np.testing.assert_array_equal(features, expected)
    assert made.labels.tolist() == [0, 2, -1, 1, -1]
    assert made.class_names == ("arxiv cs ai", "1", "a c")


def test_a_class_that_the_mapping_leaves_out_is_called_by_number(
    folder: Path, write: Write
) -> None:
    write("node-label", "0\n4\n2\n0\n1\n")
    assert read_ogb(folder, directed=True, name="small").class_names[2:] == ("a c", "3", "4")


def test_without_a_mapping_classes_are_called_by_number(folder: Path, write: Write) -> None:
    shutil.rmtree(folder / "mapping")
    write("node-label", "0\n3\n3\n1\n0\n")
    assert read_ogb(folder, directed=True, name="small").class_names == ("0", "1", "2", "3")


@pytest.fixture
def parses(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the tables parsed so far."""
    seen: list[str] = []
    real = ogb._table

    def counting(path: Path, *args: Any, **options: Any) -> Any:
        seen.append(path.name)
        return real(path, *args, **options)

    monkeypatch.setattr(ogb, "_table", counting)
    return seen


def test_the_second_load_maps_what_the_first_one_parsed(folder: Path, parses: list[str]) -> None:
    first = read_ogb(folder, directed=True, name="small")
    assert sorted(parses) == sorted(FILES)
    second = read_ogb(folder, directed=True, name="small")
    assert len(parses) == len(FILES)
    assert isinstance(first.graph.features, np.ndarray)
    assert isinstance(second.graph.features, np.ndarray)
    np.testing.assert_array_equal(first.graph.features, second.graph.features)
    assert edges_of(first) == edges_of(second)
    assert first.labels.tolist() == second.labels.tolist()
    assert sorted(p.name for p in (folder / "processed").iterdir()) == ["openima"]


def test_a_changed_raw_file_is_parsed_again(folder: Path, write: Write) -> None:
    read_ogb(folder, directed=True, name="small")
    write("node-label", "0\n0\n0\n0\n1\n")
    assert read_ogb(folder, directed=True, name="small").labels.tolist() == [0, 0, 0, 0, 1]


def test_a_damaged_cache_is_parsed_again(folder: Path, parses: list[str]) -> None:
    first = read_ogb(folder, directed=True, name="small")
    (folder / "processed" / "openima" / "features.npy").write_bytes(b"\x93NUMPY")
    second = read_ogb(folder, directed=True, name="small")
    assert len(parses) == 2 * len(FILES)
    assert second.labels.tolist() == first.labels.tolist()


def test_a_folder_that_cannot_be_written_is_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_args: Any, **_options: Any) -> None:
        raise PermissionError("read-only")

    monkeypatch.setattr(ogb, "_store", refuse)
    assert read_ogb(folder, directed=True, name="small").graph.n_nodes == 5
    assert not (folder / "processed").exists()


def test_many_blocks_make_one_table(
    folder: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ogb, "_BLOCK", 1 << 10)
    values = np.random.default_rng(0).standard_normal((2_000, 3)).astype(np.float32)
    write("num-node-list", "2000\n")
    write("node-feat", "".join(f"{a},{b},{c}\n" for a, b, c in values.tolist()))
    write("node-label", "1\n" * 2_000)
    features = read_ogb(folder, directed=True, name="small").graph.features
    assert isinstance(features, np.ndarray)
    np.testing.assert_array_equal(features, values)


BAD_TABLES = [
    ("node-feat", "1,2\n3,4\n5,x\n7,8\n9,9\n", r"line 1 or after.*float32.*'x'"),
    ("node-feat", "1,2\n3\n5,6\n7,8\n9,9\n", r"2 columns, got 1"),
    ("node-feat", "1,2\n3,nan\n5,6\n7,8\n9,9\n", r"missing or nan in line 2"),
    ("node-feat", "1,2\n3,inf\n5,6\n7,8\n9,9\n", r"feature 1 of node 1 is inf"),
    ("node-feat", "1,2\n3,4\n", r"5 rows of 2 columns\. Got 2 rows"),
    ("node-feat", "1,2\n" * 6, r"5 rows of 2 columns\. Got 6 or more"),
    ("node-feat", "", r"Empty CSV file"),
    ("edge", "0,1\n1,2\n", r"6 rows of 2 columns\. Got 2 rows"),
    ("edge", "0,1,1\n" * 6, r"6 rows of 2 columns\. Got 6 or more of 3"),
    ("edge", "0,1\n" * 5 + "0,5\n", r"node numbers from 0 to 4\. Got 5"),
    ("edge", "0,1\n" * 5 + "0,-1\n", r"node numbers from 0 to 4\. Got -1"),
    ("edge", "0,1\n" * 5 + "0,1.5\n", r"'1\.5'"),
    ("edge", "0,1\n" * 5 + "0,\n", r"missing or nan in line 6"),
    ("edge", "0 1\n" * 6, r"line 1 or after"),
    ("node-label", "0\n1\n", r"5 rows of 1 columns\. Got 2 rows"),
    ("node-label", "0\n1\n2\n0\n-7\n", r"node-label.*-7"),
    ("node-label", "0\n1\n2\n0\n1.5\n", r"node-label.*1\.5"),
    ("node-label", "a\nb\nc\nd\ne\n", r"'a'"),
    ("num-node-list", "five\n", r"'five'"),
    ("num-node-list", "2\n3\n", r"1 rows of 1 columns\. Got 2 or more"),
    ("num-node-list", "-5\n", r"negative"),
]


@pytest.mark.parametrize(("table", "text", "message"), BAD_TABLES)
def test_a_bad_table_gets_one_clear_line(
    folder: Path, write: Write, table: str, text: str, message: str
) -> None:
    write(table, text)
    with pytest.raises(InputError, match=message) as caught:
        read_ogb(folder, directed=True, name="small")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("file", FILES)
def test_a_missing_file_is_named(folder: Path, file: str) -> None:
    (folder / "raw" / file).unlink()
    with pytest.raises(MissingFileError, match=file):
        read_ogb(folder, directed=True, name="small")


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("damage", ["cut", "not gzip"])
def test_a_damaged_file_is_named(folder: Path, file: str, damage: str) -> None:
    path = folder / "raw" / file
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2] if damage == "cut" else b"0,1\n" * 9)
    with pytest.raises(OpenimaError, match=file):
        read_ogb(folder, directed=True, name="small")


@pytest.mark.parametrize("text", ["", "label idx\n0\n", "number,name\nzero,a\n"])
def test_a_bad_mapping_is_named(folder: Path, text: str) -> None:
    path = folder / "mapping" / "labelidx2arxivcategeory.csv.gz"
    path.write_bytes(gzip.compress(text.encode()))
    with pytest.raises(InputError, match=path.name):
        read_ogb(folder, directed=True, name="small")


def test_the_cache_follows_the_time_of_a_file(folder: Path, parses: list[str]) -> None:
    """A rewritten file of the same length counts as changed."""
    read_ogb(folder, directed=True, name="small")
    os.utime(folder / "raw" / "edge.csv.gz", (1, 1))
    read_ogb(folder, directed=True, name="small")
    assert len(parses) == 2 * len(FILES)
