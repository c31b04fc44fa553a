"""What a user hands to `fit`, as a task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from openima.errors import InputError
from openima.graph.graph import Features, Graph
from openima.graph.readers import read_graph
from openima.graph.readers.common import labels_from_names, labels_from_numbers
from openima.graph.task import UNKNOWN, LabelledGraph, Task


def task_of(
    data: Any,
    y: Any,
    read_options: Mapping[str, Any],
    *,
    n_novel: int | None,
    val_share: float,
    seed: int,
) -> Task:
    """Make a task of a graph in any form, or take a `Task` as it is but for `n_novel`."""
    if not (n_novel is None or _is_number(n_novel, int)):
        raise InputError("n_novel is a whole number, from 0", got=repr(n_novel))
    if not _is_number(val_share, float):
        raise InputError("val_share is a share", expected="0 up to 1", got=repr(val_share))
    if isinstance(data, Task):
        if y is not None or read_options:
            raise InputError(
                "a Task has its graph and its labels already",
                where=data.graph.name,
                remedy="pass it alone, or pass the graph with y",
            )
        task = data if n_novel is None else replace(data, n_novel=n_novel)
    else:
        labelled = labelled_graph(data, y, read_options)
        task = labelled.task(n_novel, val_share=val_share, seed=seed)
    if task.n_novel is None:
        raise InputError(
            "how many new classes to look for is not known",
            where=task.graph.name,
            expected="n_novel, from 0",
            remedy="pass n_novel, the number of classes that you expect beyond the known ones",
        )
    if _rows_are_equal(task.graph.features):
        raise InputError(
            "all nodes have the same features, so nothing tells them apart",
            where=task.graph.name,
            remedy="add features that differ, or leave them out: then they are made from the links",
        )
    return task


def labelled_graph(data: Any, y: Any, read_options: Mapping[str, Any]) -> LabelledGraph:
    """Read whatever `read_graph` can, or take a `Graph`; `y`, if given, replaces the labels."""
    if isinstance(data, Graph):
        if read_options:
            raise InputError(
                "a Graph is read already",
                where=data.name,
                got=f"the option {next(iter(read_options))!r}",
                remedy="leave it out",
            )
        if y is None:
            raise InputError(
                "a Graph has no labels",
                where=data.name,
                expected="y, one label a node",
                remedy="pass y, or a LabelledGraph",
            )
        return with_labels(data, y)
    labelled = read_graph(data, **read_options)
    return labelled if y is None else with_labels(labelled.graph, y)


def with_labels(graph: Graph, y: Any) -> LabelledGraph:
    """Label the N nodes of a graph by `y` (N,): names or whole numbers of classes.

    None, NaN, blank text and the number -1 mean unknown. A class of a number is named after it.
    """
    where = f"{graph.name}, y"
    values = np.asarray(y) if hasattr(y, "__array__") else pd.Series(y, dtype=object).to_numpy()
    if values.shape != (graph.n_nodes,):
        raise InputError(
            "y does not fit the nodes",
            where=where,
            expected=f"{graph.n_nodes:,} labels, None or {UNKNOWN} for unknown",
            got=f"shape {values.shape}",
            remedy="give every node one label",
        )
    if values.dtype.kind in "iuf":
        return LabelledGraph(graph, *labels_from_numbers(values, where))
    missing = pd.isna(values)
    names = [
        None if gone or (not isinstance(value, str) and value == UNKNOWN) else value
        for value, gone in zip(values.tolist(), missing, strict=True)
    ]
    return LabelledGraph(graph, *labels_from_names(names, where))


def _is_number(value: object, kind: type[int] | type[float]) -> bool:
    kinds = (int, np.integer) if kind is int else (int, float, np.number)
    return isinstance(value, kinds) and not isinstance(value, bool)


def _rows_are_equal(features: Features) -> bool:
    """Tell whether all rows of (N, F) features are the same; one row alone is not."""
    if features.shape[0] < 2 or _differ(features[:2]):
        return False
    return not _differ(features)


def _differ(features: Features) -> bool:
    spread = features.max(axis=0) - features.min(axis=0)
    return bool(spread.any() if isinstance(spread, np.ndarray) else spread.count_nonzero())
