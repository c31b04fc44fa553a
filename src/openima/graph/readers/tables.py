"""A graph from two tables, nodes and edges, each a CSV or a Parquet file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from numpy.typing import NDArray

from openima.errors import InputError, MissingFileError
from openima.graph.graph import Features, Graph
from openima.graph.readers.table_base import Part, Table
from openima.graph.readers.table_columns import NodeColumns, edge_columns, node_columns
from openima.graph.readers.table_csv import CsvTable
from openima.graph.readers.table_edges import read_edges
from openima.graph.readers.table_features import bag_of_words, number_matrix
from openima.graph.readers.table_mapped import mapped_features
from openima.graph.readers.table_parquet import ParquetTable
from openima.graph.readers.table_values import checked_ids, encode_label_column, trimmed
from openima.graph.structural import structural_features
from openima.graph.task import UNKNOWN, LabelledGraph, Labels

EXTENSIONS = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet")


def read_tables(
    nodes: Path,
    edges: Path,
    *,
    id: str | None = None,
    labels: str | None = None,
    unknown: str | None = None,
    features: str | Path | None = None,
    text: str | None = None,
    words: Mapping[str, float] | None = None,
    source: str | None = None,
    target: str | None = None,
    weight: str | None = None,
    directed: bool = False,
    structural: str = "walk",
) -> LabelledGraph:
    """Read a graph from a table of nodes and a table of edges (.csv, .tsv, .gz of these, .parquet).

    Nodes, a row each, in any order:

    - `id`: the column of ids; by default `id`, `node_id` or `node` (in any case), else the first
      column that plays no other part. Ids are compared as text without blanks around it, so 7
      matches "7" and not "007"; whole floats of Parquet count as integers. If all are integers
      of 64 bits the graph keeps them as integers, else as strings.
    - `labels`: the column of classes; by default `label`, `class` or `y`, else no label is known.
      A blank, NaN, NA, N/A, <NA>, NULL or the value `unknown` is an unknown label. -1 is a
      class unless it is named as `unknown`. Classes are sorted, as numbers if all are integers.
    - `text`: a column of text, read as TF-IDF words (`bag_of_words` says how). `words` are words
      of another table and their weights; then these are what is read.
    - all other columns are features: finite numbers or true/false, kept as they are in float32.
      They come before the words. `features` names a .npy file to take instead, with a row of
      float32 or float16 numbers for each row of the table; it may be larger than memory, as it
      is read in parts. Without any feature column and without `text`, the features
      are made from the edges: `structural_features(..., kind=structural)`.

    Edges, a row each, in any order:

    - `source`, `target`: ids of nodes; by default `source`, `src` or `from` and `target`, `dst`
      or `to`, else the first columns that play no other part.
    - `weight`: a positive number; by default `weight` if there is one. Other columns are not read.

    The graph is undirected unless `directed`; `Graph` says what becomes of parallel edges.
    """
    if features is not None:
        _refuse_columns(features)
    node_table, edge_table = _open(nodes, "nodes"), _open(edges, "edges")
    columns = node_columns(node_table, id, labels, text)
    if features is not None:
        columns = _without_features(node_table, columns)
    ends = edge_columns(edge_table, source, target, weight)
    read, numbers = _read_nodes(node_table, columns)
    ids = trimmed(read[columns.id])
    node_ids = checked_ids(node_table, columns.id, ids)
    codes, class_names = _labels(node_table, columns, read, unknown)
    links = read_edges(edge_table, ends, ids)
    matrix: Features
    names: NDArray[np.str_] | None
    matrix, names = _features(node_table, columns, read, numbers, words)
    if features is not None:
        matrix, names = mapped_features(Path(features), len(ids)), None
    elif not len(names):
        matrix, names = structural_features(
            links.sources, links.targets, len(ids), directed=directed, kind=structural
        )
    graph = Graph.from_edges(
        links.sources,
        links.targets,
        matrix,
        directed=directed,
        weights=links.weights,
        node_ids=node_ids,
        feature_names=names,
        name=_name(nodes),
    )
    return LabelledGraph(graph, codes, class_names)


def find_tables(folder: Path) -> tuple[Path, Path]:
    """Find the two files `nodes.*` and `edges.*` that `read_tables` can read in a folder."""
    return _find(folder, "nodes"), _find(folder, "edges")


def _find(folder: Path, stem: str) -> Path:
    if not folder.is_dir():
        raise MissingFileError("the folder is not there", where=str(folder))
    found = [folder / f"{stem}{end}" for end in EXTENSIONS if (folder / f"{stem}{end}").exists()]
    if len(found) == 1:
        return found[0]
    wanted = f"one file {stem}{{{','.join(EXTENSIONS)}}}"
    if not found:
        others = ", ".join(sorted(path.name for path in folder.iterdir())[:8])
        raise MissingFileError(
            f"the folder has no {stem} table",
            where=str(folder),
            expected=wanted,
            got=others or "an empty folder",
            remedy="rename the file, or pass both files",
        )
    raise InputError(
        f"the folder has more than one {stem} table",
        where=str(folder),
        expected=wanted,
        got=" and ".join(path.name for path in found),
        remedy="remove one, or pass both files",
    )


def _open(path: Path, part: Part) -> Table:
    path = Path(path)
    if path.is_dir():
        raise InputError(
            f"the {part} table is a folder",
            where=str(path),
            expected="a file",
            remedy=f"pass the file in it, such as {part}.csv",
        )
    if not path.exists():
        raise MissingFileError(
            f"the {part} table is not there", where=str(path), remedy="check the path"
        )
    if not path.name.lower().endswith(EXTENSIONS):
        raise InputError(
            f"the {part} table is of a format that cannot be read",
            where=str(path),
            expected=f"a name that ends in {', '.join(EXTENSIONS)}",
            got=repr(path.suffix),
            remedy="save the table as CSV or Parquet",
        )
    return (ParquetTable if path.suffix.lower() == ".parquet" else CsvTable).open(path, part)


def _refuse_columns(features: object) -> None:
    """Refuse names of columns as `features`: that is a file."""
    if not str(features).lower().endswith(".npy"):
        raise InputError(
            "features of tables are all columns that are left over, or a file of them",
            expected="a name that ends in .npy",
            got=f"features={features!r}",
            remedy="leave it out, and drop the columns that are no features from the table",
        )


def _without_features(table: Table, columns: NodeColumns) -> NodeColumns:
    if columns.text is not None:
        raise InputError(
            "features are in a file or in a text column, not in both",
            where=str(table.path),
            remedy="leave out one of the two",
        )
    return replace(columns, numbers=())


def _labels(
    table: Table, columns: NodeColumns, read: dict[str, Any], unknown: str | None
) -> tuple[Labels, tuple[str, ...]]:
    if columns.label is not None:
        return encode_label_column(table, columns.label, read[columns.label], unknown)
    if unknown is not None:
        raise InputError(
            f"unknown={unknown!r} is the value of a label, and there is no label column",
            where=str(table.path),
            remedy="name the label column: labels=...",
        )
    return np.full(len(read[columns.id]), UNKNOWN, dtype=np.int64), ()


def _features(
    table: Table,
    columns: NodeColumns,
    read: dict[str, Any],
    numbers: NDArray[np.float32],
    weights: Mapping[str, float] | None,
) -> tuple[Features, NDArray[np.str_]]:
    """Put numbers and words side by side; without words the numbers stay dense."""
    names = np.asarray(columns.numbers, dtype=np.str_)
    if columns.text is None:
        return numbers, names
    words, word_names = bag_of_words(table, columns.text, read[columns.text], weights)
    if not columns.numbers:
        return words, word_names
    both = sp.hstack([sp.csr_array(numbers), words], format="csr")
    return sp.csr_array(both), np.concatenate([names, word_names])


def _read_nodes(table: Table, columns: NodeColumns) -> tuple[dict[str, Any], NDArray[np.float32]]:
    """Read the text columns as chunked Arrow strings, and the numbers as (nodes, columns)."""
    parts = (columns.id, columns.label, columns.text)
    texts = [column for column in parts if column is not None]
    read: dict[str, list[Any]] = {column: [] for column in texts}
    blocks: list[NDArray[np.float32]] = []
    row = 0
    for batch in table.batches(texts, columns.numbers):
        for column in texts:
            read[column].append(batch.column(column))
        blocks.append(number_matrix(table, batch, columns.numbers, row))
        row += batch.num_rows
    return {column: pa.chunked_array(read[column]) for column in texts}, np.concatenate(blocks)


def _name(nodes: Path) -> str:
    """Name the graph after its file, or after the folder where the file is just called nodes."""
    stem = nodes.name.split(".")[0]
    return nodes.resolve().parent.name if stem.lower() == "nodes" else stem
