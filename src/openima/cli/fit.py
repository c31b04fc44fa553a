"""`openima fit`: the classes of a half-labelled graph, known and new."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from openima.cli import options


def fit(
    graph: options.Graph = None,
    edges: options.Edges = None,
    labels: options.Labels = None,
    unknown: options.Unknown = None,
    id: options.Id = None,
    text: options.Text = None,
    features: options.Features = None,
    source: options.Source = None,
    target: options.Target = None,
    weight: options.Weight = None,
    directed: options.Directed = None,
    structural: options.Structural = None,
    k: options.Neighbours = None,
    novel: options.Novel = None,
    hide_classes: options.HideClasses = None,
    method: options.Method = None,
    epochs: options.Epochs = None,
    seed: options.Seed = None,
    val_share: options.ValShare = None,
    settings: options.Settings = None,
    device: options.Device = None,
    config: options.Config = None,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="The folder to write, once all is done.")
    ] = Path("openima-out"),
    force: options.Force = False,
    resume: options.Resume = False,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Put every node of a half-labelled graph into a known class or into one of K new ones.

    The table of classes is printed. DIR gets predictions (CSV and Parquet), the table of classes,
    embeddings, the epochs, the model for openima predict, config.toml which repeats the run, and
    report.html to look at.

    Training is kept after every epoch beside DIR: after Ctrl-C or a crash, the same command with
    --resume goes on, to the same bytes.
    """
    from openima.cli.run import run
    from openima.fit_config import FitConfig

    of_training = {"epochs": epochs, "device": device}
    asked = (FitConfig() if config is None else FitConfig.from_file(config)).changed(
        graph=graph,
        method=method,
        n_novel=novel,
        seed=seed,
        val_share=val_share,
        hide_classes=hide_classes,
        settings=options.settings(settings) | options.given(**of_training),
        read=options.given(
            edges=edges,
            labels=labels,
            unknown=unknown,
            id=id,
            text=text,
            features=options.one_or_more(features),
            source=source,
            target=target,
            weight=weight,
            directed=directed,
            structural=structural,
            k=k,
        ),
    )
    run(asked, out, force=force, resume=resume, quiet=quiet, json=json)
