"""Reading graphs: one file for each format, and one line for it in `FORMATS`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from openima.errors import InputError, MissingFileError
from openima.graph.readers.anndata_file import read_anndata
from openima.graph.readers.networkx_graph import read_networkx
from openima.graph.readers.npz import read_npz
from openima.graph.readers.pyg import read_pyg
from openima.graph.readers.tables import EXTENSIONS, find_tables, read_tables
from openima.graph.task import LabelledGraph

__all__ = ["FORMATS", "Format", "read_graph"]


@dataclass(frozen=True)
class Format:
    """A format: the function that reads it, and what its files and objects are known by.

    The keyword arguments of `read` are the options of the format. `package` is the top-level
    package that the classes of its objects come from.
    """

    name: str
    read: Callable[..., LabelledGraph]
    extensions: tuple[str, ...]
    package: str | None = None

    @property
    def options(self) -> tuple[str, ...]:
        """The options that `read` takes."""
        parameters = inspect.signature(self.read).parameters.values()
        return tuple(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)


TABLES = Format("two tables", read_tables, EXTENSIONS)

FORMATS = (
    TABLES,
    Format("gnn-benchmark", read_npz, (".npz",)),
    Format("NetworkX", read_networkx, (".graphml",), "networkx"),
    Format("PyTorch Geometric", read_pyg, (".pt",), "torch_geometric"),
    Format("AnnData", read_anndata, (".h5ad",), "anndata"),
)


_KINDS: Mapping[str, tuple[type | tuple[type, ...], str]] = {
    **dict.fromkeys(("labels", "structural", "id", "text"), (str, "a text")),
    **dict.fromkeys(("source", "target", "weight"), (str, "a text")),
    "directed": ((bool, np.bool_), "True or False"),
    "k": ((int, np.integer), "a whole number"),
}
"""What options of all formats are; formats look at the others themselves."""


def read_graph(
    data: object,
    /,
    edges: str | Path | None = None,
    *,
    labels: str | None = None,
    unknown: str | None = None,
    features: str | Sequence[str] | None = None,
    directed: bool | None = None,
    structural: str | None = None,
    id: str | None = None,
    text: str | None = None,
    words: Mapping[str, float] | None = None,
    source: str | None = None,
    target: str | None = None,
    weight: str | None = None,
    k: int | None = None,
) -> LabelledGraph:
    """Read a graph and its labels from a file, a folder, two tables, or an object.

    `data` is one of

    - a table of nodes, with `edges` a table of edges (.csv, .tsv, .gz of these, .parquet), or a
      folder with files `nodes.*` and `edges.*` (`read_tables`);
    - a gnn-benchmark .npz (`read_npz`);
    - a .graphml file or a NetworkX graph (`read_networkx`);
    - a PyTorch Geometric `Data` or a .pt file with one (`read_pyg`);
    - a .h5ad file or an `AnnData` (`read_anndata`);
    - a `LabelledGraph`, which comes back as it is.

    None leaves an option to the format, and an option that the format does not have is an error.
    The readers named above say what each does with its options:

    - `labels`, `unknown`: where the classes are, and which of them means unknown;
    - `features`: which attributes (NetworkX) or matrix (AnnData) to take as features, or a .npy
      file of them (tables), which may be larger than memory;
    - `directed`: keep the direction of edges (tables, .npz; the others know);
    - `structural`: features for a graph without any, `"walk"` or `"identity"`;
    - `id`, `text`, `source`, `target`: columns of tables; `words`: what words of the text weigh;
    - `weight`: the column or attribute of edge weights;
    - `k`: link each observation of an AnnData to so many nearest ones.
    """
    options: dict[str, Any] = {
        "labels": labels,
        "unknown": unknown,
        "features": features,
        "directed": directed,
        "structural": structural,
        "id": id,
        "text": text,
        "words": words,
        "source": source,
        "target": target,
        "weight": weight,
        "k": k,
    }
    options = {name: value for name, value in options.items() if value is not None}
    _refuse_no_path(data, edges)
    _refuse_other_kinds(options)
    if isinstance(data, LabelledGraph):
        _refuse_options([*(["edges"] if edges is not None else []), *options], (), "LabelledGraph")
        return data
    if not isinstance(data, str | Path):
        return _read(_format_of_object(data), data, edges, options)
    path = Path(data)
    if path.is_dir():
        if edges is not None:
            raise InputError(
                "a folder has its table of edges in it",
                where=str(path),
                got=f"edges={str(edges)!r} besides",
                remedy="leave out edges, or pass the table of nodes in the folder",
            )
        nodes_table, edges_table = find_tables(path)
        return _read(TABLES, nodes_table, edges_table, options)
    return _read(_format_of_file(path), path, edges, options)


def _read(
    form: Format, data: object, edges: str | Path | None, options: dict[str, Any]
) -> LabelledGraph:
    _refuse_options(list(options), form.options, form.name)
    if form is TABLES:
        if edges is None:
            raise InputError(
                "a table of nodes is half a graph",
                where=str(data),
                expected="a table of edges too",
                remedy="pass both tables, or a folder with files nodes.* and edges.*",
            )
        return form.read(data, Path(edges), **options)
    if edges is not None:
        raise InputError(
            f"the format {form.name} has its edges in it",
            where=str(data) if isinstance(data, Path) else type(data).__name__,
            got=f"edges={str(edges)!r} besides",
            remedy="leave out edges",
        )
    return form.read(data, **options)


def _format_of_file(path: Path) -> Format:
    for form in FORMATS:
        if path.name.lower().endswith(form.extensions):
            return form
    if not path.exists():
        raise MissingFileError(
            "there is no such file or folder", where=str(path), remedy="check the path"
        )
    raise InputError(
        "the format of the file cannot be told from its name",
        where=str(path),
        expected=f"a folder, or a name that ends in {', '.join(_all_extensions())}",
        got=repr(path.suffix) if path.suffix else "no extension",
        remedy="save the data in one of these; a table in text may just be renamed",
    )


def _format_of_object(data: object) -> Format:
    packages = {kind.__module__.partition(".")[0] for kind in type(data).__mro__}
    for form in FORMATS:
        if form.package in packages:
            return form
    raise InputError(
        f"a {type(data).__name__} is not a graph that can be read",
        expected="a path, a NetworkX graph, a PyG Data, an AnnData or a LabelledGraph",
        got=f"{type(data).__module__}.{type(data).__qualname__}",
        remedy='write nodes and edges to files, nodes.to_parquet("nodes.parquet"), and pass their '
        "paths"
        if type(data).__name__ == "DataFrame"
        else "convert it, or build it from arrays with Graph.from_edges",
    )


def _refuse_no_path(data: object, edges: object) -> None:
    """Refuse an empty path, which would be that of this folder, and edges that are no path."""
    if isinstance(data, str) and not data:
        raise InputError("the path of the graph is empty", remedy="name a file or a folder")
    if edges is not None and not (isinstance(edges, str | Path) and str(edges)):
        raise InputError(
            "edges is not the path of a table",
            got="an empty text" if isinstance(edges, str) else f"a {type(edges).__name__}",
            remedy="name a file; write a table that is in memory to one, and pass its path",
        )


def _refuse_other_kinds(options: Mapping[str, Any]) -> None:
    for name, value in options.items():
        kind, said = _KINDS.get(name, (object, ""))
        if not isinstance(value, kind):
            raise InputError(
                f"the option {name!r} has a value of another kind",
                expected=said,
                got=f"{type(value).__name__}, {value!r}"[:80],
                remedy="name one column or attribute; labels of your own are y of fit"
                if name == "labels"
                else None,
            )


def _refuse_options(given: Sequence[str], known: Sequence[str], name: str) -> None:
    for option in given:
        if option not in known:
            raise InputError(
                f"the option {option!r} does not apply to the format {name}",
                expected=f"only {', '.join(known)}" if known else "no options",
                remedy="leave it out",
            )


def _all_extensions() -> list[str]:
    return [extension for form in FORMATS for extension in form.extensions]
