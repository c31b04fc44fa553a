"""NetworkX graphs, and GraphML files, which NetworkX reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openima.errors import InputError
from openima.graph.readers.common import (
    assemble,
    damaged,
    existing_file,
    labels_from_names,
    listed,
    optional_package,
)
from openima.graph.task import UNKNOWN, LabelledGraph, Labels

_USUAL_LABELS = ("label", "class", "y")


def read_networkx(
    source: Any,
    *,
    labels: str | None = None,
    unknown: str | None = None,
    features: str | Sequence[str] | None = None,
    weight: str | None = None,
    structural: str = "walk",
) -> LabelledGraph:
    """Read a NetworkX graph, or the path of a GraphML file.

    Nodes keep their ids and their order, and the graph its direction.

    - `labels`: the node attribute of classes; by default `label`, `class` or `y`, else no label
      is known. A node without it, None, NaN, blank text or the value `unknown` is unknown.
    - `features`: the node attributes to use: numbers, true/false, or lists of numbers of one
      length. By default all attributes but the label. Without any, features are made from the
      edges: `structural_features(..., kind=structural)`.
    - `weight`: the edge attribute of positive weights; by default `weight` where edges have it.

    `Graph` says what becomes of the parallel edges of a multigraph.
    """
    networkx = optional_package("networkx", "networkx")
    if isinstance(source, str | Path):
        path = existing_file(Path(source))
        where, name, graph = str(path), path.stem, _read_graphml(networkx, path)
    else:
        where = name = graph_name(source)
        graph = source
    if len(graph) == 0:
        raise InputError("the graph has no nodes", where=where, remedy="add nodes to it")
    number = {node: i for i, node in enumerate(graph)}
    label = _label_attribute(graph, labels, where)
    matrix, names = _features(graph, _feature_attributes(graph, features, label, where), where)
    edges = list(graph.edges())
    return assemble(
        [number[edge[0]] for edge in edges],
        [number[edge[1]] for edge in edges],
        matrix,
        _labels(graph, label, unknown, where),
        where=where,
        name=name,
        directed=bool(graph.is_directed()),
        weights=_weights(graph, weight, where),
        node_ids=_ids(list(graph), where),
        feature_names=names,
        structural=structural,
    )


def graph_name(graph: Any) -> str:
    """Name a NetworkX graph: by its own name, else by its type."""
    return str(graph.name or f"NetworkX {type(graph).__name__}")


def _read_graphml(networkx: Any, path: Path) -> Any:
    try:
        return networkx.read_graphml(path)
    except Exception as error:  # whatever the parser and its conversions meet in a bad file
        raise damaged(path, "GraphML", error) from error


def _attributes(graph: Any) -> list[str]:
    """List the attributes that any node has, in order of appearance."""
    return list(dict.fromkeys(key for _, data in graph.nodes(data=True) for key in data))


def _label_attribute(graph: Any, labels: str | None, where: str) -> str | None:
    there = _attributes(graph)
    if labels is None:
        return next((name for name in _USUAL_LABELS if name in there), None)
    if labels not in there:
        raise _missing_attribute(labels, "labels", there, where)
    return labels


def _labels(
    graph: Any, label: str | None, unknown: str | None, where: str
) -> tuple[Labels, tuple[str, ...]]:
    if label is not None:
        values = [value for _, value in graph.nodes(data=label)]
        return labels_from_names(values, f"{where}, attribute {label!r}", unknown)
    if unknown is not None:
        raise InputError(
            f"unknown={unknown!r} is the value of a label, and no node has a label",
            where=where,
            remedy="name the label attribute: labels=...",
        )
    return np.full(len(graph), UNKNOWN, dtype=np.int64), ()


def _feature_attributes(
    graph: Any, features: str | Sequence[str] | None, label: str | None, where: str
) -> list[str]:
    there = _attributes(graph)
    if features is None:
        return [name for name in there if name != label]
    chosen = [features] if isinstance(features, str) else list(features)
    for name in chosen:
        if name not in there:
            raise _missing_attribute(name, "features", there, where)
        if name == label:
            raise InputError(
                f"attribute {name!r} cannot be both label and feature",
                where=where,
                remedy="leave it out of features, or name another: labels=...",
            )
    return chosen


def _missing_attribute(name: str, option: str, there: list[str], where: str) -> InputError:
    return InputError(
        f"no node has the attribute {name!r}",
        where=where,
        expected=f"one of {listed(there)}" if there else "nodes with attributes",
        remedy=f"correct {option}={name!r}, or add the attribute",
    )


def _features(
    graph: Any, names: list[str], where: str
) -> tuple[NDArray[np.float32] | None, NDArray[np.str_] | None]:
    """Put attributes side by side as (N, D) float32; (None, None) if there are none."""
    columns: list[NDArray[Any]] = []
    titles: list[str] = []
    for name in names:
        values = _numbers(list(graph.nodes(data=name)), f"{where}, attribute {name!r}", "node")
        if values.ndim == 1:
            titles.append(name)
            columns.append(values[:, None])
        else:
            titles += [f"{name}.{i}" for i in range(values.shape[1])]
            columns.append(values)
    if not titles:
        return None, None
    return np.concatenate(columns, axis=1, dtype=np.float32), np.asarray(titles)


def _numbers(pairs: Sequence[tuple[Any, Any]], where: str, owner: str) -> NDArray[Any]:
    """Turn `(owner's name, value)` pairs into numbers (N,), or (N, D) if values are lists."""
    try:
        array = np.asarray([value for _, value in pairs])
    except ValueError:  # lists of several lengths
        array = np.empty(0, dtype=object)
    if array.dtype.kind in "fiub" and array.ndim <= (2 if owner == "node" else 1):
        return array
    first = None
    for name, value in pairs:
        if value is None:
            raise InputError(
                f"{owner} {name!r} has no value",
                where=where,
                expected=f"a number for every {owner}",
                remedy=f"fill it in, or name other attributes of a {owner} to use",
            )
        part = np.asarray(value, dtype=object if isinstance(value, str) else None)
        if part.dtype.kind not in "fiub" or part.ndim > (1 if owner == "node" else 0):
            raise InputError(
                f"{owner} {name!r} holds something that is not a number",
                where=where,
                expected="a number" + (", or a list of them" if owner == "node" else ""),
                got=repr(value)[:80],
                remedy="correct it, name other attributes, features=[...], or say that it is the "
                "class: labels=..."
                if owner == "node"
                else "correct it, or name another attribute of an edge: weight=...",
            )
        first = part.shape if first is None else first
        if part.shape != first:
            raise InputError(
                f"{owner} {name!r} has a list of another length than those before it",
                where=where,
                expected=f"{first[0]} numbers" if first else "a single number",
                got=f"{part.shape[0]}" if part.shape else "a single number",
                remedy="give all lists one length",
            )
    return array


def _weights(graph: Any, weight: str | None, where: str) -> NDArray[Any] | None:
    name = weight or "weight"
    values = [(edge[:2], edge[2]) for edge in graph.edges(data=name)]
    if all(value is None for _, value in values):
        if weight is None or not values:
            return None
        raise InputError(
            f"no edge has the attribute {name!r}", where=where, remedy=f"correct weight={weight!r}"
        )
    return _numbers(values, f"{where}, edge attribute {name!r}", "edge")


def _ids(nodes: list[Any], where: str) -> NDArray[Any]:
    """Keep whole numbers as int64 and all else as text, if that keeps them apart."""
    if all(type(node) is int and abs(node) < 2**63 for node in nodes):
        return np.asarray(nodes, dtype=np.int64)
    names = [str(node) for node in nodes]
    if len(set(names)) < len(names):
        twice = Counter(names).most_common(1)[0][0]
        raise InputError(
            f"two nodes are written {twice!r}",
            where=where,
            expected="ids that differ as text, unless all are whole numbers",
            remedy="rename them: networkx.relabel_nodes",
        )
    return np.asarray(names)
