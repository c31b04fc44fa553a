"""Options of reading a graph: which there are, and what is kept of them for another graph."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from inspect import signature
from pathlib import Path
from typing import Any

from openima.errors import InputError
from openima.graph.readers import read_graph
from openima.graph.readers.tables import EXTENSIONS
from openima.graph.task import Task

_OF_ONE_GRAPH = ("edges", "unknown")
"""Options of reading that say nothing about another graph."""


def tables_apart(data: Any, y: Any, read_options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Take the path of a table that is passed as `y` for the edges of the nodes in `data`.

    Returns `y` and the options. Any other text is no `y`: it is not one label a node.
    """
    if not isinstance(y, str | Path):
        return y, read_options
    paths = [str(path).lower() for path in (data, y) if isinstance(path, str | Path)]
    both = len(paths) == 2 and all(path.endswith(EXTENSIONS) for path in paths)
    if both and "edges" not in read_options:
        return None, {"edges": y, **read_options}
    raise InputError(
        "y is one label for each node",
        got=repr(str(y)),
        remedy=f"labels={str(y)!r} if it names the labels in the data, "
        f"edges={str(y)!r} if it is a table of edges",
    )


def refuse_unknown(read_options: Mapping[str, Any]) -> None:
    """Refuse what is no option of `read_graph`, such as a misspelt one."""
    known = [name for name in signature(read_graph).parameters if name != "data"]
    for name in read_options:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            raise InputError(
                f"there is no option {name!r} to read a graph with",
                expected=f"only {', '.join(known)}",
                remedy=f"did you mean {close[0]!r}?"
                if close
                else "leave it out; what is not about reading is for OpenWorldClassifier(...)",
            )


def refuse_alone(read_options: Mapping[str, Any]) -> None:
    """Refuse options where there is nothing to read: they would have no effect."""
    for name in read_options:
        raise InputError(
            f"there is no graph that the option {name!r} could be of",
            remedy="pass the graph first, or no option for the fitted graph",
        )


def source_of(data: Any, task: Task, read_options: Mapping[str, Any]) -> dict[str, Any]:
    """Say what was read and how, so that it can be read again."""
    read = {k: str(v) if isinstance(v, Path) else v for k, v in read_options.items()}
    name = str(data) if isinstance(data, str | Path) else task.graph.name
    return {"graph": name, "read": read}


def of_any_graph(source: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a source that hold for another graph too."""
    read = source["read"].items()
    return {k: v for k, v in read if not (k in _OF_ONE_GRAPH or _is_file(v))}


def _is_file(value: Any) -> bool:
    """Tell whether an option names the features of the nodes of one graph."""
    return isinstance(value, str) and value.endswith(".npy")
