"""What readers share: opening, optional packages, labels, and the last step to a graph."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from openima.errors import InputError, MissingFileError, MissingPackageError
from openima.graph.graph import Features, Graph
from openima.graph.structural import structural_features
from openima.graph.task import UNKNOWN, LabelledGraph, Labels, encode_labels


def optional_package(module: str, extra: str) -> Any:
    """Import a package that not every user has, or say how to get it.

    What it warns of while it loads concerns its authors, not the user of openima.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return import_module(module)
    except ImportError as error:
        raise MissingPackageError(
            f"this format needs the package {module.partition('.')[0]!r}",
            got=str(error),
            remedy=f"pip install 'openima[{extra}]'",
        ) from error


def existing_file(path: Path) -> Path:
    """Refuse a path at which there is no file, or an empty one."""
    where = str(path)
    if not path.exists():
        raise MissingFileError("the file is not there", where=where, remedy="check the path")
    if not path.is_file():
        raise InputError("the path is not a file", where=where, remedy="pass the file itself")
    if path.stat().st_size == 0:
        raise InputError("the file is empty", where=where, remedy="write or download it again")
    return path


def damaged(path: Path, kind: str, error: BaseException) -> InputError:
    """Describe a file that the library for its format could not read."""
    return InputError(
        f"the file is not a readable {kind} file",
        where=str(path),
        got=f"{type(error).__name__}, {str(error)[:200]}",
        remedy="if it is cut off or of another format, write or download it again",
    )


def labels_from_numbers(
    values: ArrayLike, where: str, class_names: Sequence[str] | None = None
) -> tuple[Labels, tuple[str, ...]]:
    """Turn class numbers, with -1 or NaN for unknown, into labels and class names.

    With `class_names` the numbers index them. Without, the numbers in use become the classes,
    in ascending order, each named after its number.
    """
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "fiu":
        raise InputError(
            "labels are one class number a node",
            where=where,
            expected=f"a one-dimensional array of integers, {UNKNOWN} for unknown",
            got=f"type {array.dtype} and shape {array.shape}",
            remedy="for one column a class, pass the column number of the class: y.argmax(1)",
        )
    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), UNKNOWN, array)
    _refuse((array != np.floor(array)) | np.isinf(array), array, where, "a whole number")
    _refuse(array < UNKNOWN, array, where, f"a class number, or {UNKNOWN} for unknown")
    if class_names is not None:
        names = tuple(class_names)
        _refuse(array >= len(names), array, where, f"a number below that of names, {len(names)}")
        return array.astype(np.int64), names
    numbers = array.astype(np.int64)
    used = np.unique(numbers[numbers != UNKNOWN])
    codes = np.searchsorted(used, numbers)
    codes[numbers == UNKNOWN] = UNKNOWN
    return codes.astype(np.int64, copy=False), tuple(map(str, used))


def labels_from_names(
    values: Iterable[object], where: str, unknown: str | None = None
) -> tuple[Labels, tuple[str, ...]]:
    """Number class names; None, NaN, blank text and the name `unknown` mean unknown.

    Classes are sorted, as numbers if all of them are whole numbers.
    """
    texts = [_class_name(value) for value in values]
    if unknown is not None:
        if unknown not in texts:
            raise InputError(
                f"no label is {unknown!r}",
                where=where,
                expected=f"one of {listed(sorted({t for t in texts if t is not None}))}",
                remedy="correct the name, or leave out unknown if blanks mean unknown",
            )
        texts = [None if text == unknown else text for text in texts]
    return encode_labels(texts)


def listed(names: Sequence[str], most: int = 12) -> str:
    """Name the first few of many things."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(map(str, names[:most])) + more


def assemble(
    sources: ArrayLike,
    targets: ArrayLike,
    features: Features | None,
    labels: tuple[Labels, tuple[str, ...]],
    *,
    where: str,
    name: str,
    directed: bool,
    weights: ArrayLike | None = None,
    node_ids: NDArray[Any] | None = None,
    feature_names: NDArray[np.str_] | None = None,
    structural: str = "walk",
) -> LabelledGraph:
    """Build the graph; its errors speak of `where`. Without features, make structural ones.

    Weights that are all 1 once parallel edges are merged say nothing and are left out.
    """
    codes, class_names = labels
    if features is None:
        features, feature_names = structural_features(
            sources, targets, len(codes), directed=directed, kind=structural
        )
    graph = Graph.from_edges(
        sources,
        targets,
        features,
        directed=directed,
        weights=weights,
        node_ids=node_ids,
        feature_names=feature_names,
        name=where,
    )
    if graph.weights is not None and (graph.weights == 1).all():
        graph = replace(graph, weights=None)
    LabelledGraph(graph, codes, class_names)  # its checks, too, shall speak of `where`
    return LabelledGraph(replace(graph, name=name), codes, class_names)


def _class_name(value: object) -> str | None:
    if value is None or value != value:  # NaN and NaT differ from themselves
        return None
    if isinstance(value, float | np.floating) and float(value).is_integer():
        value = int(value)  # a column with gaps holds whole numbers as floats
    return str(value).strip() or None


def _refuse(bad: NDArray[np.bool_], values: NDArray[Any], where: str, expected: str) -> None:
    nodes = np.flatnonzero(bad)
    if len(nodes):
        raise InputError(
            f"the label of node {nodes[0]:,} is not a class",
            where=where,
            expected=expected,
            got=str(values[nodes[0]]),
            remedy=f"correct it, or write {UNKNOWN} if the class is not known",
        )
