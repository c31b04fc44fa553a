"""A fit from its settings to what is printed of it: what `fit` and `demo` share."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import typer
from rich.table import Table

from openima.cli.errors import INTERRUPTED, refuse
from openima.cli.printing import Side, grid, notes, show, show_json
from openima.errors import InputError
from openima.estimator import OpenWorldClassifier
from openima.fit_config import FitConfig
from openima.graph.datasets import find_dataset, is_dataset
from openima.report.outputs import refuse_directory, summary, write_outputs
from openima.train.checkpoint import epochs_done

_log = logging.getLogger(__name__)

_COLUMNS: dict[str, Side] = {
    **{"class": "left", "status": "left", "nodes": "right", "labelled": "right"},
    **{"cohesion": "right", "separation": "right", "top features": "left"},
}


def run(asked: FitConfig, out: Path, *, force: bool, resume: bool, quiet: bool, json: bool) -> None:
    """Fit, write the folder `out`, and print the table of classes, or all of it as JSON."""
    if asked.graph is None:
        raise InputError(
            "there is no graph to fit",
            expected="GRAPH, or a file for --config that names one",
            remedy="openima fit nodes.csv edges.csv --labels COLUMN --novel K",
        )
    refuse_directory(out, force=force)
    checkpoint = checkpoint_beside(out)
    with notes(quiet=quiet), _kept_when_interrupted(checkpoint):
        _begin(checkpoint, resume=resume, force=force)
        classifier = asked.classifier(checkpoint=checkpoint, progress=not quiet)
        classifier.fit(asked.graph, **asked.read)
        dataset = find_dataset(asked.graph) if is_dataset(asked.graph) else None
        images = dataset.images() if dataset and dataset.images else None
        classifier.checkpoint = None  # it ends with this run, so the saved model does not name it
        write_outputs(classifier, out, images=images, force=force)
    checkpoint.unlink(missing_ok=True)
    if json:
        show_json(as_record(classifier, out))
    else:
        show(*as_text(classifier, out))


def checkpoint_beside(out: Path) -> Path:
    """Return where training is kept until the folder `out` is complete."""
    out = out.resolve()
    return out.with_name(f"{out.name}.checkpoint.safetensors")


def as_record(classifier: OpenWorldClassifier, out: Path) -> dict[str, Any]:
    """Gather what a program wants to know of a run."""
    return {
        "out": out,
        "report": out / "report.html",
        "run": summary(classifier),
        "accuracy": _accuracy(classifier),
        "classes": classifier.classes_table_.to_dict("records"),
    }


def as_text(classifier: OpenWorldClassifier, out: Path) -> Iterator[str | Table]:
    """Lay out what a person wants to know of a run."""
    about = summary(classifier)
    yield class_grid(
        f"{about['title']} on {about['graph']['name']}: {about['n_seen']} known classes and "
        f"{about['n_novel']} new ones, epoch {about['chosen_epoch']} of {about['epochs']}",
        classifier.classes_table_,
    )
    if accuracy := _accuracy(classifier):
        found = {name: share for name, share in accuracy.items() if not pd.isna(share)}
        shares = "  ".join(f"{name.title()} {share:.1%}" for name, share in found.items())
        yield f"hidden labels found again: {shares}"
    yield f"files:  {out}"
    yield f"report: {out / 'report.html'}"


def class_grid(title: str, classes: pd.DataFrame) -> Table:
    """Lay out the table of classes."""
    rows = [
        (
            *(str(row["class"]), str(row["status"]), f"{row['size']:,}", f"{row['n_known']:,}"),
            *(_decimal(row["cohesion"]), _decimal(row["separation"])),
            ", ".join(row["top_features"]),
        )
        for row in classes.to_dict("records")
    ]
    return grid(_COLUMNS, rows, title=title, cut=True)


def _begin(checkpoint: Path, *, resume: bool, force: bool) -> None:
    """See to what an interrupted run has left: go on from it, or forget it, or refuse."""
    if not checkpoint.exists():
        if resume:
            _log.info("nothing is kept of an earlier run: starting anew")
    elif resume:
        _log.info("going on after epoch %d", epochs_done(checkpoint))
    elif force:
        checkpoint.unlink()
    else:
        raise InputError(
            "an interrupted run is kept there",
            where=str(checkpoint),
            got=f"{epochs_done(checkpoint)} epochs of training",
            remedy="go on with --resume, or start anew with --force",
        )


@contextmanager
def _kept_when_interrupted(checkpoint: Path) -> Iterator[None]:
    """Say at Ctrl-C what is kept and how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        if checkpoint.exists():
            kept = f"epoch {epochs_done(checkpoint)} is kept in {checkpoint}"
            refuse(f"interrupted; {kept}. Remedy: the same command with --resume goes on.")
        else:
            refuse("interrupted before the first epoch was done, so nothing is kept.")
        raise typer.Exit(INTERRUPTED) from None


def _accuracy(classifier: OpenWorldClassifier) -> dict[str, float] | None:
    """Return how many test nodes got their true class, where that is known."""
    history = classifier.history_
    if "all" not in history:
        return None
    row = history[history["chosen"]].iloc[0]
    return {name: float(row[name]) for name in ("all", "seen", "novel")}


def _decimal(value: float) -> str:
    return "" if pd.isna(value) else f"{value:.2f}"
