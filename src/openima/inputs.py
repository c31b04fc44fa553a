"""What a user hands to `fit`, as a task."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from openima.errors import InputError, MissingFileError
from openima.graph.datasets import dataset_names, find_dataset, is_dataset, load_dataset
from openima.graph.graph import Features, Graph
from openima.graph.readers import read_graph
from openima.graph.readers.common import labels_from_names, labels_from_numbers
from openima.graph.task import UNKNOWN, LabelledGraph, Task
from openima.read_options import refuse_unknown

_log = logging.getLogger(__name__)

_LIKELY_UNKNOWN = ("-1", "?", "unknown", "none", "missing", "undefined", "unlabelled", "unlabeled")
"""Names of classes, in any case, that are hardly meant to be classes."""


def task_of(
    data: Any,
    y: Any,
    read_options: Mapping[str, Any],
    *,
    n_novel: int | None,
    val_share: float,
    hide_classes: bool,
    seed: int,
) -> Task:
    """Make a task of a graph in any form, or take a `Task` as it is but for `n_novel`.

    With `hide_classes`, or of a data set by name, half of the classes and most labels are hidden.
    """
    if not (n_novel is None or _is_number(n_novel, int)):
        raise InputError("n_novel is a whole number, from 0", got=repr(n_novel))
    if n_novel is not None and n_novel < 0:
        raise InputError("n_novel cannot be negative", got=str(n_novel))
    if not _is_number(val_share, float):
        raise InputError("val_share is a share", expected="0 up to 1", got=repr(val_share))
    if not isinstance(hide_classes, bool | np.bool_):
        raise InputError("hide_classes is True or False", got=repr(hide_classes))
    if isinstance(data, Task):
        task = _own_task(data, y, read_options, hide_classes)
    else:
        labelled = labelled_graph(data, y, read_options)
        if hide_classes or (is_dataset(data) and y is None):
            per_class = find_dataset(data).per_class if is_dataset(data) else 50
            task = labelled.open_world_task(seed, per_class)
        else:
            _refuse_unlabelled(labelled, y is not None or "labels" in read_options)
            _refuse_all_labelled(labelled)
            if y is None and "unknown" not in read_options:
                _warn_of_likely_unknown(labelled)
            task = labelled.task(n_novel, val_share=val_share, seed=seed)
    if n_novel is not None:
        task = replace(task, n_novel=n_novel)
    if task.n_novel is None:
        raise InputError(
            "how many new classes to look for is not known",
            where=task.graph.name,
            expected="n_novel, from 0",
            remedy=f"pass n_novel (--novel on the command line): how many classes you expect "
            f"beyond the {task.n_seen} known ones",
        )
    if task.n_classes > task.graph.n_nodes:
        raise InputError(
            f"{task.graph.n_nodes:,} nodes cannot be put into {task.n_classes:,} classes",
            where=task.graph.name,
            remedy="look for fewer new classes",
        )
    if _rows_are_equal(task.graph.features):
        raise InputError(
            "all nodes have the same features, so nothing tells them apart",
            where=task.graph.name,
            remedy="add features that differ, or leave them out: then they are made from the links",
        )
    _log.info("%r", task.graph)
    _log.info("%r", task)
    return task


def _own_task(data: Task, y: Any, read_options: Mapping[str, Any], hide_classes: bool) -> Task:
    if y is not None or read_options or hide_classes:
        raise InputError(
            "a Task has its graph, its labels and its split already",
            where=data.graph.name,
            remedy="pass it alone, or pass the graph with y",
        )
    return data


def _refuse_unlabelled(labelled: LabelledGraph, named: bool) -> None:
    """Refuse a graph without any label; `named` is whether the user said where labels are."""
    if (labelled.labels != UNKNOWN).any():
        return
    raise InputError(
        "no node has a label",
        where=labelled.graph.name,
        expected="labels of at least two classes",
        got="nothing but unknown ones" if named else None,
        remedy="correct the labels, or name others: labels=..."
        if named
        else "say where the labels are, labels=..., or pass them as y",
    )


def _refuse_all_labelled(labelled: LabelledGraph) -> None:
    if (labelled.labels == UNKNOWN).any():
        return
    remedy = (
        "blank the labels to be found, or hide half of the classes to see how well they are "
        "found again: hide_classes=True, --hide-classes on the command line"
    )
    for name in _likely_unknown(labelled)[:1]:
        remedy = f"if {name!r} means that the class is not known, say so: unknown={name!r}"
    raise InputError(
        "all nodes have a label, so there is nothing to classify",
        where=labelled.graph.name,
        remedy=remedy,
    )


def _warn_of_likely_unknown(labelled: LabelledGraph) -> None:
    for name in _likely_unknown(labelled):
        warnings.warn(
            f"{labelled.graph.name}: {name!r} is taken for a class; "
            f"if it means that the class is not known, say so: unknown={name!r}",
            stacklevel=4,
        )


def _likely_unknown(labelled: LabelledGraph) -> list[str]:
    """List classes whose names hardly mean a class."""
    return [name for name in labelled.class_names if name.lower() in _LIKELY_UNKNOWN]


def labelled_graph(data: Any, y: Any, read_options: Mapping[str, Any]) -> LabelledGraph:
    """Read what `read_any` can, or take a `Graph`; `y`, if given, replaces the labels."""
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
    labelled = read_any(data, read_options)
    return labelled if y is None else with_labels(labelled.graph, y)


def read_any(data: Any, read_options: Mapping[str, Any]) -> LabelledGraph:
    """Read whatever `read_graph` can, or load a data set by name: "photo", but not "./photo"."""
    refuse_unknown(read_options)
    if is_dataset(data):
        if read_options:
            raise InputError(
                "a data set by name has its links and labels already",
                where=data,
                got=f"the option {next(iter(read_options))!r}",
                remedy=f"leave it out; for a file or folder of that name write ./{data}",
            )
        return load_dataset(data)
    if isinstance(data, str) and not Path(data).exists():
        close = get_close_matches(data, dataset_names(), n=1)
        raise MissingFileError(
            "there is no such file, folder or data set",
            where=data,
            remedy=f"did you mean {close[0]!r}?" if close else "check the path",
        )
    return read_graph(data, **read_options)


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
