"""The folder that a fit leaves behind: predictions, tables, embeddings, model and settings."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from openima.config import plain_settings
from openima.errors import InputError
from openima.estimator import OpenWorldClassifier
from openima.files import complete_folder, refuse_taken
from openima.fit_config import FitConfig
from openima.graph.task import Task
from openima.report.html import write_report
from openima.tensors import save_tensors
from openima.version import __version__

_log = logging.getLogger(__name__)

FORMAT = 1
MARKER = "run.json"


def refuse_directory(directory: str | Path, *, force: bool = False) -> None:
    """Refuse a folder that `write_outputs` would refuse, before hours of training."""
    refuse_taken(Path(directory), force=force, marker=MARKER)


def write_outputs(
    classifier: OpenWorldClassifier,
    directory: str | Path,
    *,
    images: ArrayLike | None = None,
    force: bool = False,
) -> None:
    """Write all that a fitted classifier found to a new folder, which appears when complete.

    - predictions.parquet, .csv: id, label, is_novel, confidence, novelty of every node;
    - nodes.parquet: id, the label that was given, the part ("train", "val", "test") and, where it
      is known, the truth;
    - classes.parquet, .csv: the table of classes; lists are joined by "; " in the CSV;
    - embeddings.safetensors: `z` (N, d), in the order of the predictions;
    - history.parquet, .csv: a row an epoch; `chosen` marks the one that is used;
    - config.toml: what repeats the run; run.json: what the run was;
    - model: the classifier, for `OpenWorldClassifier.load`;
    - images.npz, if `images` (N, height, width) of 0 to 255 are given: `images`;
    - report.html: a page that shows all this.

    With `force`, an earlier folder of outputs is replaced.
    """
    task = _task_of(classifier)
    pictures = None if images is None else _checked_images(images, task.graph.n_nodes)
    _log.info("writing %s", directory)
    with complete_folder(Path(directory), force=force, marker=MARKER) as folder:
        _write_table(classifier.predictions(), folder / "predictions")
        node_table(task).to_parquet(folder / "nodes.parquet", index=False)
        _write_table(classifier.classes_table_, folder / "classes")
        _write_table(classifier.history_, folder / "history")
        z = torch.from_numpy(classifier.embeddings_)
        save_tensors({"z": z}, folder / "embeddings.safetensors")
        (folder / "config.toml").write_text(config(classifier).to_toml(), encoding="utf-8")
        text = json.dumps(summary(classifier), indent=2)
        (folder / MARKER).write_text(text + "\n", encoding="utf-8")
        classifier.save(folder / "model")
        if pictures is not None:
            np.savez_compressed(folder / "images.npz", images=pictures)
        write_report(folder)


def node_table(task: Task) -> pd.DataFrame:
    """List id, given label and part of every node, and its true class if the task knows it."""
    n_nodes = task.graph.n_nodes
    names = np.asarray([*task.class_names, *task.novel_names, None], dtype=object)
    part = np.full(n_nodes, None, dtype=object)
    for name in ("train", "val", "test"):
        part[getattr(task, name)] = name
    ids = np.arange(n_nodes) if task.graph.node_ids is None else task.graph.node_ids
    table = pd.DataFrame({"id": ids, "given": names[task.labels], "part": part})
    return table if task.truth is None else table.assign(truth=names[task.truth])


def config(classifier: OpenWorldClassifier) -> FitConfig:
    """Gather what `openima fit --config` needs to repeat the run."""
    fitted = classifier.fitted_
    settings = plain_settings(fitted.model.recipe)
    del settings["seed"]  # it has a place of its own
    return FitConfig(
        graph=fitted.source["graph"],
        method=fitted.model.recipe.name,
        n_novel=len(fitted.model.names) - fitted.model.n_seen,
        seed=int(classifier.seed),
        val_share=float(classifier.val_share),
        hide_classes=bool(classifier.hide_classes),
        read=fitted.source["read"],
        settings=settings,
    )


def summary(classifier: OpenWorldClassifier) -> dict[str, Any]:
    """Describe the run; nothing of it depends on the machine but its time."""
    fitted, graph = classifier.fitted_, classifier.graph_
    history = classifier.history_
    return {
        "format": FORMAT,
        "openima": __version__,
        "method": fitted.model.recipe.name,
        "title": fitted.model.recipe.title,
        "graph": {
            "name": graph.name,
            "nodes": graph.n_nodes,
            "links": graph.n_links,
            "features": graph.n_features,
            "directed": graph.directed,
        },
        "n_seen": fitted.model.n_seen,
        "n_novel": len(fitted.model.names) - fitted.model.n_seen,
        "seed": classifier.seed,
        "epochs": len(history),
        "chosen_epoch": int(history.loc[history["chosen"], "epoch"].iloc[0]),
        "seconds": round(float(history["seconds"].sum()), 3),
    }


def _task_of(classifier: OpenWorldClassifier) -> Task:
    check_is_fitted(classifier, "fitted_")
    task: Task | None = getattr(classifier, "task_", None)
    if task is None:
        raise InputError(
            "a loaded classifier does not have the graph that it was fitted on",
            remedy="write the outputs where it is fitted",
        )
    return task


def _write_table(table: pd.DataFrame, stem: Path) -> None:
    """Write Parquet, and CSV with lists in one cell."""
    table.to_parquet(stem.with_suffix(".parquet"), index=False)
    joined = {
        str(name): ["; ".join(map(str, cell)) for cell in column]
        for name, column in table.items()
        if len(column) and isinstance(column.iloc[0], list)
    }
    table.assign(**joined).to_csv(stem.with_suffix(".csv"), index=False)


def _checked_images(images: ArrayLike, n_nodes: int) -> NDArray[np.uint8]:
    array = np.asarray(images)
    if array.ndim != 3 or len(array) != n_nodes or array.dtype != np.uint8:
        raise InputError(
            "images are one picture a node",
            expected=f"an array of type uint8 and shape ({n_nodes}, height, width)",
            got=f"type {array.dtype} and shape {array.shape}",
            remedy="scale the pictures to 0 ... 255",
        )
    return array
