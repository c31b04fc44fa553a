"""Reading back what a run wrote, for the page that shows it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from safetensors.numpy import load_file

from openima.errors import InputError, MissingFileError

T = TypeVar("T")

_COLUMNS = {
    "predictions.parquet": ["id", "label", "is_novel", "confidence", "novelty"],
    "nodes.parquet": ["id", "given", "part"],
    "classes.parquet": [
        *["class", "status", "size", "n_known", "cohesion", "separation", "nearest_known"],
        *["top_features", "exemplars", "borderline"],
    ],
    "history.parquet": ["epoch", "chosen"],
}


@dataclass(frozen=True, eq=False)
class RunFiles:
    """The files of one run that its page is made of.

    `predictions`, `nodes` and `z` (N, d) have one row a node in the same order; `classes` has
    one a class and `history` one an epoch. `images` is (N, height, width), where nodes are
    images.
    """

    predictions: pd.DataFrame
    nodes: pd.DataFrame
    classes: pd.DataFrame
    history: pd.DataFrame
    z: NDArray[np.float32]
    run: dict[str, Any]
    images: NDArray[np.uint8] | None

    @property
    def class_of(self) -> NDArray[np.int64]:
        """The row of `classes` that each node was put into, shape (N,)."""
        rows = pd.Index(self.classes["class"]).get_indexer(self.predictions["label"])
        return np.asarray(rows, dtype=np.int64)

    @property
    def novel(self) -> NDArray[np.bool_]:
        """Which rows of `classes` are discovered ones."""
        return np.asarray(self.classes["status"] == "novel")


def read_run(directory: Path) -> RunFiles:
    """Read and check the files of a run in `directory`."""
    tables = {name: _table(directory / name, columns) for name, columns in _COLUMNS.items()}
    predictions, nodes, classes, history = tables.values()
    images = directory / "images.npz"
    files = RunFiles(
        predictions,
        nodes,
        classes,
        history,
        _read(directory / "embeddings.safetensors", lambda path: load_file(path)["z"]),
        _read(directory / "run.json", lambda path: dict(json.loads(path.read_bytes()))),
        _read(images, _images) if images.exists() else None,
    )
    _check(files, directory)
    return files


def _read(path: Path, reader: Callable[[Path], T]) -> T:
    try:
        return reader(path)
    except (FileNotFoundError, NotADirectoryError):
        raise MissingFileError(
            "the file is missing",
            where=str(path),
            remedy="pass a folder that `openima fit --out` wrote",
        ) from None
    except Exception as error:  # each format has errors of its own
        raise InputError(
            "the file cannot be read",
            where=str(path),
            got=f"{type(error).__name__}: {error}",
            remedy="run `openima fit` again",
        ) from None


def _table(path: Path, columns: list[str]) -> pd.DataFrame:
    table = _read(path, pd.read_parquet)
    missing = [column for column in columns if column not in table]
    if missing:
        raise InputError(
            f"there is no column {', '.join(missing)}",
            where=str(path),
            got=", ".join(map(str, table.columns)),
            remedy="run `openima fit` again",
        )
    return table


def _images(path: Path) -> NDArray[np.uint8]:
    with np.load(path, allow_pickle=False) as file:
        images: NDArray[np.uint8] = file["images"]
    if images.ndim != 3 or images.dtype != np.uint8:
        raise ValueError(f"images of type {images.dtype} and shape {images.shape}")
    return images


def _check(files: RunFiles, directory: Path) -> None:
    """See that the files are of one run: as many rows, the same nodes, the same classes."""
    n = len(files.predictions)
    rows = {"nodes.parquet": len(files.nodes), "embeddings.safetensors": len(files.z)}
    if files.images is not None:
        rows["images.npz"] = len(files.images)
    for name, count in rows.items():
        if count != n:
            raise InputError(
                f"{name} does not fit predictions.parquet",
                where=str(directory),
                expected=f"{n:,} rows",
                got=f"{count:,}",
                remedy="run `openima fit` again",
            )
    unknown = files.predictions["label"][files.class_of < 0]
    if len(unknown):
        raise InputError(
            f"classes.parquet does not have the class {unknown.iloc[0]!r}",
            where=str(directory),
            remedy="run `openima fit` again",
        )
