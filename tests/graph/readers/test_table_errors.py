"""Every foreseeable fault of a table is one line: where it is, what it is, and the remedy."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from openima.errors import InputError, MissingFileError, OpenimaError
from openima.graph.readers.tables import find_tables, read_tables

NODES = "id,label,x,y1\na,red,1,2\nb,blue,3,4\nc,,5,6\n"
EDGES = "source,target,weight\na,b,1\nb,c,2\n"


class Case(NamedTuple):
    """The text of both files, what is passed, and what the message has to say."""

    says: tuple[str, ...]
    nodes: str | bytes = NODES
    edges: str | bytes = EDGES
    options: dict[str, Any] | None = None


def line(file: str, number: int) -> str:
    return f"{file}.csv, line {number}:"


CASES = {
    "empty nodes file": Case(("nodes.csv", "the file is empty"), nodes=""),
    "blank lines only": Case(("nodes.csv", "the file is empty"), nodes="\n\n"),
    "empty edges file": Case(("edges.csv", "the file is empty"), edges=""),
    "nodes header only": Case(("nodes.csv", "header but no rows"), nodes="id,label,x\n"),
    "edges header only": Case(("edges.csv", "header but no rows"), edges="source,target"),
    "wrong delimiter": Case(
        (line("nodes", 1), "delimiter", "comma, tab, semicolon", "'id|label|x'", "with commas"),
        nodes="id|label|x\na|red|1\n",
    ),
    "columns of a fixed width": Case(
        (line("edges", 1), "delimiter", "'source target'"), edges="source target\na      b\n"
    ),
    "edges with one column": Case(
        ("edges.csv", "no column is left to be the target", "Got source."),
        edges="source\na\nb\n",
    ),
    "no column for an end of an edge": Case(
        ("edges.csv", "no column is left to be the source", "Got source, target."),
        edges="source,target\na,b\n",
        options={"weight": "source"},
    ),
    "nodes without a column of ids": Case(
        ("nodes.csv", "no column is left to be the id", "a column of ids"),
        nodes="label\nred\nblue\n",
    ),
    "edges without a header": Case(
        ("edges.csv", "the first line is an edge", "Got a,b", "add a line of names"),
        edges="a,b\nb,c\n",
    ),
    "missing id column": Case(
        ("nodes.csv", "no id column 'nodeid'", "id, label, x, y1"), options={"id": "nodeid"}
    ),
    "missing label column": Case(
        ("nodes.csv", "no label column 'lable'", "did you mean 'label'?"),
        options={"labels": "lable"},
    ),
    "missing text column": Case(
        ("nodes.csv", "no text column 'abstract'", "name one of them as text"),
        options={"text": "abstract"},
    ),
    "missing source column": Case(
        ("edges.csv", "no source column 'sourc'", "did you mean 'source'"),
        options={"source": "sourc"},
    ),
    "missing target column": Case(
        ("edges.csv", "no target column 'TARGET'", "did you mean 'target'"),
        options={"target": "TARGET"},
    ),
    "missing weight column": Case(
        ("edges.csv", "no weight column 'value'", "source, target, weight"),
        options={"weight": "value"},
    ),
    "one column for two parts": Case(
        ("nodes.csv", "'label' cannot be both id and label"),
        options={"id": "label", "labels": "label"},
    ),
    "unknown source": Case(
        (line("edges", 3), "the source 'z'", "2 such edges in all", "add the nodes"),
        edges="source,target\na,b\nz,c\na,c\nb,q\n",
    ),
    "unknown target": Case(
        (line("edges", 2), "the target 'z'", "1 such edge in all"), edges="source,target\na,z\n"
    ),
    "ids written otherwise": Case(
        (
            line("edges", 2),
            "no edge fits the nodes table; the first source is '1.0'",
            "'1', '2', ...",
            "write ids in the same way in both tables",
            "id=..., source=..., target=...",
        ),
        nodes="id,x\n1,1\n2,2\n",
        edges="source,target\n1.0,2.0\n2.0,1.0\n",
    ),
    "ids in another column": Case(
        (line("edges", 2), "the first kind is 'cites'", "or name other columns"),
        edges="kind,a,b\ncites,a,b\ncites,b,c\n",
    ),
    "negative id": Case(
        (line("edges", 3), "the target '-1'", "negative id", "drop the edges"),
        nodes="id,x\n0,1\n1,2\n",
        edges="source,target\n0,1\n1,-1\n",
    ),
    "blank end of an edge": Case(
        (line("edges", 2), "the source is blank"), edges="source,target\n,b\n"
    ),
    "leading zeros are text": Case(
        (line("edges", 2), "the target '007'"),
        nodes="id,x\n7,1\n8,2\n",
        edges="source,target\n8,007\n",
    ),
    "duplicate id": Case(
        (line("nodes", 4), "the node id 'a' is there twice", "nodes.csv, line 2", "1 repeated"),
        nodes="id,x\na,1\nb,2\na,3\n",
    ),
    "blank id": Case((line("nodes", 3), "no id", "a blank"), nodes="id,x\na,1\n ,2\n"),
    "blank feature": Case(
        (line("nodes", 3), "feature 'x' is not a finite number", "a blank", "fill in"),
        nodes="id,x\na,1\nb,\nc,2\n",
    ),
    "NaN feature": Case((line("nodes", 3), "feature 'x'", "'nan'"), nodes="id,x\na,1\nb,nan\n"),
    "infinite feature": Case(
        (line("nodes", 2), "feature 'x'", "'-inf'"), nodes="id,x\na,-inf\nb,1\n"
    ),
    "feature beyond float32": Case(
        (line("nodes", 2), "feature 'x'", "'1e39'"), nodes="id,x\na,1e39\nb,1\n"
    ),
    "text in a feature": Case(
        (line("nodes", 3), "'x' holds text", "'high'", "drop the column", "text='x'"),
        nodes="id,x\na,1\nb,high\n",
    ),
    "fault below a text of two lines": Case(
        (line("nodes", 5), "feature 'x'", "a blank"),
        nodes='id,title,x\na,"two\nlines",1\n\nb,two,\n',
        options={"text": "title"},
    ),
    "underscored number": Case((line("nodes", 2), "'1_000'"), nodes="id,x\na,1_000\nb,2\n"),
    "text column that is not named": Case(
        (line("nodes", 2), "'title' holds text", "text='title'"),
        nodes="id,title\na,Graphs\nb,Trees\n",
    ),
    "number in a column of true and false": Case(
        (line("nodes", 3), "'x' holds text", "'2'"), nodes="id,x\na,true\nb,2\n"
    ),
    "true in a case of its own": Case(
        (line("nodes", 3), "'x' holds text", "'TruE'"), nodes="id,x\na,TRUE\nb,TruE\n"
    ),
    "padded true": Case(
        (line("nodes", 3), "'x' holds text", "' True'"), nodes="id,x\na,False\nb, True\n"
    ),
    "blank of spaces": Case((line("nodes", 3), "'x' holds text", "' '"), nodes="id,x\na,1\nb,  \n"),
    "digits of another script": Case(
        (line("nodes", 2), "'x' holds text", "'٣'"), nodes="id,x\na,٣\nb,2\n"
    ),
    "control character in a number": Case(
        (line("nodes", 3), "'x' holds text", r"'\x1f2'"), nodes="id,x\na,1\nb,\x1f2\n"
    ),
    "text in a weight": Case(
        (line("edges", 3), "'weight' holds text", "'heavy'", "drop the row"),
        edges="source,target,weight\na,b,1\nb,c,heavy\n",
    ),
    "zero weight": Case(
        (line("edges", 2), "not a positive number", "'0'"), edges="source,target,weight\na,b,0\n"
    ),
    "negative weight": Case(
        (line("edges", 3), "not a positive number", "'-2'"),
        edges="source,target,weight\na,b,1\nb,c,-2\n",
    ),
    "NaN weight": Case(
        (line("edges", 2), "not a positive number", "'NaN'"),
        edges="source,target,weight\na,b,NaN\n",
    ),
    "blank weight": Case(
        (line("edges", 2), "not a positive number", "a blank"),
        edges="source,target,weight\na,b,\n",
    ),
    "row with too many fields": Case(
        (line("nodes", 3), "4 fields", "Got 5", "quote"),
        nodes="id,label,x,y1\na,r,1,2\nb,r,1,2,3\n",
    ),
    "row with too few fields": Case(
        (line("edges", 4), "3 fields", "Got 2"), edges="source,target,weight\na,b,1\n\nb,c\n"
    ),
    "quote that is not closed": Case(
        (line("nodes", 3), "3 fields", "Got 1"), nodes='id,label,x\na,r,1\n"b,r,2\nc,r,3\n'
    ),
    "Latin-1": Case(
        (line("nodes", 3), "not UTF-8", "0xe9", "save the table as UTF-8"),
        nodes="id,label,x\na,thé,1\nb,café,2\n".encode("latin-1").replace(b"th\xe9", b"tea"),
    ),
    "UTF-16": Case(
        ("nodes.csv: the file is no CSV", "Got UTF-16", "save the table as UTF-8"),
        nodes=NODES.encode("utf-16"),
    ),
    "Excel": Case(
        ("edges.csv: the file is no CSV", "Excel file (.xlsx)", "save the table as CSV"),
        edges=b"PK\x03\x04\x14\x00",
    ),
    "a column as features": Case(
        ("all columns that are left over, or a file", "features='x'", "leave it out"),
        options={"features": "x"},
    ),
    "columns as features": Case(("features=['x', 'y1']",), options={"features": ["x", "y1"]}),
    "letters for words": Case(
        ("text column 'title' has no words. ", "two or more letters"),
        nodes="id,title\na,x\nb,y\nc,z\n",
        options={"text": "title"},
    ),
    "column name twice": Case(
        ("nodes.csv", "the column name 'x' is there 2 times"), nodes="id,x,x\na,1,2\n"
    ),
    "index column": Case(
        ("nodes.csv", "column 1 has no name", "index=False"), nodes=",id,x\n0,a,1\n1,b,2\n"
    ),
    "index column read again": Case(
        ("nodes.csv", "'Unnamed: 0' is an index"), nodes="Unnamed: 0,id,x\n0,a,1\n1,b,2\n"
    ),
    "text that is all empty": Case(
        ("nodes.csv", "text column 'title' has no words", "another column"),
        nodes="id,title\na,\nb, \nc,...\n",
        options={"text": "title"},
    ),
    "text without a shared word": Case(
        ("nodes.csv", "no word of the text column 'title' is in two rows"),
        nodes="id,title\na,graphs\nb,trees\nc,words\n",
        options={"text": "title"},
    ),
    "unknown that never occurs": Case(
        ("nodes.csv", "no label in column 'label' is 'rde'", "blue, red", "did you mean 'red'?"),
        options={"unknown": "rde"},
    ),
    "unknown without labels": Case(
        ("nodes.csv", "unknown='?'", "no label column"),
        nodes="id,x\na,1\nb,2\nc,3\n",
        options={"unknown": "?"},
    ),
    "structural features of no kind": Case(
        ("'spectral'", "'walk' or 'identity'"),
        nodes="id\na\nb\nc\n",
        options={"structural": "spectral"},
    ),
}


def message(error: pytest.ExceptionInfo[OpenimaError], *says: str) -> str:
    """Check that the message is one sober line that says all this; return it."""
    text = str(error.value)
    assert "\n" not in text
    assert len(text) < 450
    assert error.value.__cause__ is None  # no traceback of another library
    assert error.value.__context__ is None or error.value.__suppress_context__
    for part in says:
        assert part in text, text
    return text


def written(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_fault_is_one_clear_line(case: Case, tmp_path: Path) -> None:
    nodes = written(tmp_path / "nodes.csv", case.nodes)
    edges = written(tmp_path / "edges.csv", case.edges)
    with pytest.raises(InputError) as error:
        read_tables(nodes, edges, **(case.options or {}))
    message(error, *case.says)


def test_the_tables_of_the_cases_are_fine_without_the_fault(tmp_path: Path) -> None:
    nodes, edges = written(tmp_path / "nodes.csv", NODES), written(tmp_path / "edges.csv", EDGES)
    assert read_tables(nodes, edges).graph.n_links == 2


@pytest.mark.parametrize("absent", ["nodes", "edges"])
def test_a_missing_file(absent: str, tmp_path: Path) -> None:
    paths = [tmp_path / f"{part}.csv" for part in ("nodes", "edges")]
    for path, content in zip(paths, (NODES, EDGES), strict=True):
        if path.stem != absent:
            written(path, content)
    with pytest.raises(MissingFileError) as error:
        read_tables(paths[0], paths[1])
    message(error, f"{absent}.csv", f"the {absent} table is not there")


def test_a_folder_instead_of_a_file(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        read_tables(tmp_path, tmp_path)
    message(error, str(tmp_path), "the nodes table is a folder", "nodes.csv")


def test_a_format_that_cannot_be_read(tmp_path: Path) -> None:
    nodes = written(tmp_path / "nodes.xlsx", b"PK\x03\x04")
    with pytest.raises(InputError) as error:
        read_tables(nodes, nodes)
    message(error, "nodes.xlsx", ".parquet", "'.xlsx'", "save the table as CSV or Parquet")


def test_a_truncated_gzip_file(tmp_path: Path) -> None:
    nodes = written(tmp_path / "nodes.csv", NODES)
    rows = "".join(f"{'abc'[i % 3]},{'abc'[i * i % 3]},{i + 1}\n" for i in range(20_000))
    packed = gzip.compress(("source,target,weight\n" + rows).encode())
    for length in (len(packed) // 2, 15):  # in the rows, and in the header
        edges = written(tmp_path / "edges.csv.gz", packed[:length])
        with pytest.raises(InputError) as error:
            read_tables(nodes, edges)
        message(error, "edges.csv.gz", "the compressed file ends too early", "again")


def test_a_file_that_is_not_gzip(tmp_path: Path) -> None:
    nodes = written(tmp_path / "nodes.csv.gz", NODES)
    edges = written(tmp_path / "edges.csv", EDGES)
    with pytest.raises(InputError) as error:
        read_tables(nodes, edges)
    message(error, "nodes.csv.gz", "the file is not gzipped", "drop .gz from its name")


@pytest.mark.parametrize(
    ("files", "kind", "says"),
    [
        (["edges.csv"], MissingFileError, ("no nodes table", "nodes{.csv", "edges.csv")),
        (["nodes.csv"], MissingFileError, ("no edges table", "rename")),
        ([], MissingFileError, ("no nodes table", "an empty folder")),
        (
            ["nodes.csv", "nodes.parquet", "edges.csv"],
            InputError,
            ("more than one nodes table", "nodes.csv and nodes.parquet", "remove one"),
        ),
    ],
)
def test_a_folder_without_two_tables(
    files: list[str], kind: type[OpenimaError], says: tuple[str, ...], tmp_path: Path
) -> None:
    for file in files:
        written(tmp_path / file, "id\n")
    with pytest.raises(kind) as error:
        find_tables(tmp_path)
    message(error, str(tmp_path), *says)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError) as error:
        find_tables(tmp_path / "absent")
    message(error, "absent", "the folder is not there")


@pytest.mark.parametrize(
    ("labels", "says"),
    [
        ("red,red,", ("at least two classes", "only 'red'", "second class")),
        ("red,blue,red", ("all nodes have a label", "open_world_task")),
        (",nan,NULL", ("no labels", "name the label column")),
    ],
)
def test_labels_that_make_no_task(labels: str, says: tuple[str, ...], tmp_path: Path) -> None:
    rows = "".join(f"{id},{label},1\n" for id, label in zip("abc", labels.split(","), strict=True))
    nodes = written(tmp_path / "nodes.csv", "id,label,x\n" + rows)
    graph = read_tables(nodes, written(tmp_path / "edges.csv", EDGES))
    with pytest.raises(InputError) as error:
        graph.task()
    message(error, *says)
