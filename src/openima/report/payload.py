"""What the page of a run is told: plain values, ready for JSON."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from openima.report.confusion import compare
from openima.report.layout import MAX_NODES, layout, sample
from openima.report.palette import palette
from openima.report.reading import RunFiles

_BINS = 25
_MAX_IMAGE_BYTES = 6_000_000  # beyond, only the images of the classes table are put in


def make_payload(files: RunFiles, *, limit: int = MAX_NODES) -> dict[str, Any]:
    """Gather everything that the page shows.

    Arrays with one value a shown node are packed as base64. Histograms, sizes and accuracies
    are of all nodes; only the map shows a sample where nodes are more than `limit`.
    """
    named = _named_nodes(files)
    shown = sample(files.class_of, limit=limit, keep=named)
    return {
        "run": files.run,
        "classes": _classes(files),
        "points": _points(files, shown),
        "images": _images(files, shown, named),
        "histograms": {name: _histogram(files, name) for name in ("confidence", "novelty")},
        "truth": compare(files),
        "history": _history(files.history),
    }


def _named_nodes(files: RunFiles) -> NDArray[np.int64]:
    """Return the rows of the nodes that the classes table names."""
    lists = (*files.classes["exemplars"], *files.classes["borderline"])
    named = [str(node) for nodes in lists for node in nodes]
    rows = pd.Series(np.arange(len(files.predictions)), files.predictions["id"].astype(str))
    return rows[rows.index.isin(named)].to_numpy()


def _classes(files: RunFiles) -> list[dict[str, Any]]:
    colours = palette(len(files.classes))
    return [
        {
            "name": str(row["class"]),
            "novel": row["status"] == "novel",
            "size": int(row["size"]),
            "given": int(row["n_known"]),
            "cohesion": _number(row["cohesion"]),
            "separation": _number(row["separation"]),
            "nearest": None if pd.isna(row["nearest_known"]) else str(row["nearest_known"]),
            "features": [str(name) for name in row["top_features"]],
            "exemplars": [str(node) for node in row["exemplars"]],
            "borderline": [str(node) for node in row["borderline"]],
            "colours": colours[i],
        }
        for i, row in enumerate(files.classes.to_dict("records"))
    ]


def _points(files: RunFiles, shown: NDArray[np.int64]) -> dict[str, Any]:
    flat = layout(files.z[shown])
    predictions, nodes = files.predictions.iloc[shown], files.nodes.iloc[shown]
    points: dict[str, Any] = {
        "total": len(files.predictions),
        "id": predictions["id"].astype(str).tolist(),
        "x": _packed(flat[:, 0], "<f4"),
        "y": _packed(flat[:, 1], "<f4"),
        "class": _packed(files.class_of[shown], "<i4"),
        "confidence": _packed(predictions["confidence"], "<f4"),
        "novelty": _packed(predictions["novelty"], "<f4"),
    }
    for name in ("given", "truth"):
        if name in nodes:
            codes, names = pd.factorize(nodes[name])
            points[name] = _packed(codes, "<i4")
            points[f"{name}_names"] = [str(value) for value in names]
    return points


def _images(
    files: RunFiles, shown: NDArray[np.int64], named: NDArray[np.int64]
) -> dict[str, Any] | None:
    """Pack the images of the shown nodes, or of those in the classes table if that is too much."""
    if files.images is None:
        return None
    one = files.images[0].size if len(files.images) else 0
    rows = shown if one * len(shown) <= _MAX_IMAGE_BYTES else named
    if one * len(rows) > _MAX_IMAGE_BYTES:
        return None
    return {
        "height": files.images.shape[1],
        "width": files.images.shape[2],
        "point": _packed(np.searchsorted(shown, rows), "<i4"),
        "pixels": _packed(files.images[rows], "u1"),
    }


def _histogram(files: RunFiles, column: str) -> dict[str, Any]:
    """Count nodes put into known and into discovered classes by a score, between 0 and 1 or all."""
    values = files.predictions[column].to_numpy(np.float64)
    novel = files.novel[files.class_of]
    finite = values[np.isfinite(values)]
    lowest, highest = (finite.min(), finite.max()) if len(finite) else (0.0, 1.0)
    if lowest >= 0 and highest <= 1:
        lowest, highest = 0.0, 1.0
    edges = np.linspace(lowest, highest, _BINS + 1)
    return {
        "edges": edges.tolist(),
        "known": np.histogram(values[~novel & np.isfinite(values)], edges)[0].tolist(),
        "novel": np.histogram(values[novel & np.isfinite(values)], edges)[0].tolist(),
    }


def _history(history: pd.DataFrame) -> dict[str, Any]:
    columns = history.drop(columns="chosen").select_dtypes("number")
    chosen = np.flatnonzero(history["chosen"].to_numpy(bool))
    return {
        "chosen": int(chosen[0]) if len(chosen) else None,
        "columns": {
            str(name): [_number(value) for value in columns[name]] for name in columns.columns
        },
    }


def _packed(values: ArrayLike, dtype: str) -> str:
    return base64.b64encode(np.ascontiguousarray(values, dtype=dtype).tobytes()).decode()


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
