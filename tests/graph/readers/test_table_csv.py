"""Long CSV files: the line of a fault is right to the last row, in bounded memory."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from openima.errors import InputError
from openima.graph.readers.tables import read_tables


def short_nodes(folder: Path) -> Path:
    path = folder / "nodes.csv"
    path.write_text("id,x\n" + "".join(f"{i},1\n" for i in range(97)))
    return path


def long_edges(n_rows: int, bad_line: int, bad: str) -> Iterator[str]:
    """Yield the lines of a long table; one in the middle is blank, one holds the fault."""
    yield "source,target,weight\n"
    for number in range(2, n_rows + 2):
        if number == n_rows // 2:
            yield "\n"
        yield bad if number + 1 == bad_line else f"{number % 97},{number % 89},1.5\n"


LONG_FAULTS = {
    "text": ("3,4,much\n", "'weight' holds text"),
    "ragged": ("3,4\n", "Got 2"),
    "astray": ("3,400,1\n", "the target '400'"),
    "weight": ("3,4,0\n", "not a positive number"),
}


@pytest.mark.parametrize(("bad", "says"), LONG_FAULTS.values(), ids=LONG_FAULTS.keys())
def test_the_line_of_a_fault_near_the_end_of_a_long_file(
    bad: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("openima.graph.readers.table_csv._BLOCK", 1 << 17)  # many blocks
    nodes = short_nodes(tmp_path)
    edges = tmp_path / "edges.csv"
    edges.write_text("".join(long_edges(200_000, 199_987, bad)))
    assert edges.read_text().split("\n")[199_987 - 1] + "\n" == bad
    with pytest.raises(InputError) as error:
        read_tables(nodes, edges)
    assert f"{edges}, line 199987: " in str(error.value)
    assert says in str(error.value)


def test_newlines_in_quoted_text_may_fall_on_the_edge_of_a_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("openima.graph.readers.table_csv._BLOCK", 100)
    nodes, edges = tmp_path / "nodes.csv", tmp_path / "edges.csv"
    rows = (f'{i},"word\n\nword{"s" * (i % 13)}\n"\n' for i in range(500))
    nodes.write_text("id,title\n" + "".join(rows))
    edges.write_text("source,target\n0,499\n")
    graph = read_tables(nodes, edges, text="title").graph
    assert graph.n_nodes == 500
    assert graph.sources.tolist() == [499, 0]


def test_a_text_may_be_long(tmp_path: Path) -> None:
    nodes, edges = tmp_path / "nodes.csv", tmp_path / "edges.csv"
    nodes.write_text("id,title\n0," + "long " * 100_000 + "\n1,long\n")
    edges.write_text("source,target\n0,1\n")
    labelled = read_tables(nodes, edges, text="title")
    assert labelled.graph.feature_names is not None
    assert labelled.graph.feature_names.tolist() == ["title:long"]
    nodes.write_text("id,title\n0," + "long " * 100_000 + "\n1,long,more\n")
    with pytest.raises(InputError, match=r"nodes.csv, line 3: the row does not fit the header"):
        read_tables(nodes, edges, text="title")


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    at=st.integers(0, 60),
    cut=st.integers(0, 8),
    put=st.one_of(st.binary(max_size=6), st.text(',;\t"\n\r -17aé', max_size=6).map(str.encode)),
    part=st.sampled_from(["nodes", "edges"]),
)
def test_damaged_bytes_give_a_graph_or_one_clear_line(
    at: int, cut: int, put: bytes, part: str, tmp_path: Path
) -> None:
    whole = {
        "nodes": b"id,label,x,z\n1,p,0.5,1\n2,q,1.5,0\n3,,-2,1\n",
        "edges": b"source,target,weight\n1,2,1\n2,3,0.5\n3,1,2\n",
    }
    whole[part] = whole[part][:at] + put + whole[part][at + cut :]
    for name, content in whole.items():
        (tmp_path / f"{name}.csv").write_bytes(content)
    problem = None
    try:
        graph = read_tables(tmp_path / "nodes.csv", tmp_path / "edges.csv").graph
    except InputError as error:
        problem = error
    if problem is None:
        assert graph.n_edges > 0
    else:
        assert "\n" not in str(problem)
        assert problem.__context__ is None or problem.__suppress_context__


PROBE = """
import resource, sys
from pathlib import Path
from openima.errors import InputError
from openima.graph.readers.tables import read_tables
try:
    read_tables(Path(sys.argv[1]), Path(sys.argv[2]))
except InputError as error:
    print(error)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


@pytest.mark.slow
def test_one_bad_row_in_ten_million(tmp_path: Path) -> None:
    nodes = short_nodes(tmp_path)
    edges = tmp_path / "edges.csv"
    with edges.open("w") as file:
        file.writelines(long_edges(10_000_000, 9_999_987, "3,4,much\n"))
    probe = [sys.executable, "-c", PROBE, str(nodes), str(edges)]
    said = subprocess.run(probe, capture_output=True, text=True, check=True).stdout.splitlines()
    assert "edges.csv, line 9999987: column 'weight' holds text" in said[0]
    assert int(said[1]) < 2048  # MB
