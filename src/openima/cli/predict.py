"""`openima predict`: a fitted model looks at another or a grown graph."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from openima.cli import options
from openima.cli.printing import grid, notes, show, show_json
from openima.errors import InputError
from openima.files import complete_file

if TYPE_CHECKING:
    import pandas as pd


def predict(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL", help="A folder that openima fit wrote, or the model in it."
        ),
    ],
    graph: options.Graph,
    edges: options.Edges = None,
    labels: options.Labels = None,
    id: options.Id = None,
    text: options.Text = None,
    features: options.Features = None,
    source: options.Source = None,
    target: options.Target = None,
    weight: options.Weight = None,
    directed: options.Directed = None,
    structural: options.Structural = None,
    k: options.Neighbours = None,
    device: options.Device = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="A .csv or .parquet to write; without it the CSV is printed."
        ),
    ] = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Put the nodes of another or a grown graph into the classes that a fit has found.

    The graph is read as the fitted one was, unless options say otherwise; its labels are not
    used. There is a row a node: id, label, is_novel, confidence, novelty.
    """
    from openima.estimator import OpenWorldClassifier

    if out is not None:
        _refuse_file(out, force=force)
    read = options.given(
        edges=edges,
        labels=labels,
        id=id,
        text=text,
        features=options.one_or_more(features),
        source=source,
        target=target,
        weight=weight,
        directed=directed,
        structural=structural,
        k=k,
    )
    with notes(quiet=quiet):
        classifier = OpenWorldClassifier.load(model, device=device)
        table = classifier.predictions(graph, **read)
    if out is not None:
        _write(table, out)
        _show_counts(table, out, json=json)
    elif json:
        show_json(table.to_dict("records"))
    else:
        table.to_csv(sys.stdout, index=False)


def _refuse_file(path: Path, *, force: bool) -> None:
    """Refuse a file that cannot be written, before a model is loaded."""
    if path.suffix.lower() not in (".csv", ".parquet"):
        raise InputError(
            "predictions are written as CSV or Parquet",
            where=str(path),
            expected="a name that ends in .csv or .parquet",
        )
    if path.is_dir() or (path.exists() and not force):
        raise InputError(
            "there is something of that name",
            where=str(path),
            remedy="choose another name" + ("" if path.is_dir() else ", or replace it: --force"),
        )
    if not path.resolve().parent.is_dir():
        raise InputError("there is no such folder", where=str(path.parent), remedy="make it")


def _write(table: pd.DataFrame, path: Path) -> None:
    with complete_file(path) as partial:
        if path.suffix.lower() == ".csv":
            table.to_csv(partial, index=False)
        else:
            table.to_parquet(partial, index=False)


def _show_counts(table: pd.DataFrame, path: Path, *, json: bool) -> None:
    """Say how many nodes came into each class, and where it is written."""
    counts = table.groupby("label", sort=True).agg(n=("id", "size"), novel=("is_novel", "first"))
    if json:
        show_json({"out": path, "nodes": len(table), "classes": counts["n"].to_dict()})
        return
    rows = [
        (str(label), f"{n:,}", "novel" if novel else "seen")
        for label, n, novel in counts.itertuples()
    ]
    show(grid({"class": "left", "nodes": "right", "status": "left"}, rows), f"file: {path}")
