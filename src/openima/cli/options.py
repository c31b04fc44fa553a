"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from openima.errors import InputError

_READING, _LEARNING = "Reading the graph", "Learning"

Graph = Annotated[
    str | None,
    typer.Argument(
        metavar="GRAPH",
        help="A table of nodes (CSV, TSV, Parquet), a folder with nodes.* and edges.*, a graph in "
        "one file (.npz, .graphml, .pt, .h5ad), or a data set by name (see: openima datasets).",
        show_default=False,
    ),
]
Edges = Annotated[
    str | None,
    typer.Argument(
        metavar="EDGES",
        help="The table of edges, where GRAPH is a table of nodes.",
        show_default=False,
    ),
]
Labels = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="The column of classes; blank, NA and null are unknown. "
        "By default label, class or y, if there is one.",
        rich_help_panel=_READING,
    ),
]
Unknown = Annotated[
    str | None,
    typer.Option(
        metavar="VALUE",
        help="A label that means unknown, such as -1 or ?.",
        rich_help_panel=_READING,
    ),
]
Id = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="The column of ids of nodes. By default id, node_id or node, else the first.",
        rich_help_panel=_READING,
    ),
]
Text = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="A column of text, read as weighted words.",
        rich_help_panel=_READING,
    ),
]
Features = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="Attributes of nodes in .graphml, once for each; X or a key of obsm in .h5ad. "
        "In tables all columns left over are features.",
        rich_help_panel=_READING,
    ),
]
Source = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="The column of EDGES where edges start. By default source, src or from.",
        rich_help_panel=_READING,
    ),
]
Target = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="The column of EDGES where edges end. By default target, dst or to.",
        rich_help_panel=_READING,
    ),
]
Weight = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="The column or attribute of positive weights of edges. By default weight.",
        rich_help_panel=_READING,
    ),
]
Directed = Annotated[
    bool | None,
    typer.Option(
        "--directed/--undirected",
        help="Whether edges have a direction; by default they do not.",
        rich_help_panel=_READING,
    ),
]
Structural = Annotated[
    str | None,
    typer.Option(
        metavar="KIND",
        help="Features made from the edges where nodes have none: walk or identity.",
        rich_help_panel=_READING,
    ),
]
Neighbours = Annotated[
    int | None,
    typer.Option(
        "--k",
        metavar="K",
        min=1,
        help="Link each observation of .h5ad to its K nearest ones.",
        rich_help_panel=_READING,
    ),
]
Novel = Annotated[
    int | None,
    typer.Option(
        metavar="K",
        min=0,
        help="How many new classes to look for; 0 sorts into the known ones alone. "
        "Needed, but for data sets by name.",
        rich_help_panel=_LEARNING,
    ),
]
HideClasses = Annotated[
    bool | None,
    typer.Option(
        "--hide-classes",
        help="Hide half of the classes and most labels of a labelled graph, to see how well they "
        "are found again. Data sets by name are always split so, by the seed.",
        rich_help_panel=_LEARNING,
    ),
]
Method = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="One that openima methods lists; by default openima.",
        rich_help_panel=_LEARNING,
    ),
]
Epochs = Annotated[
    int | None,
    typer.Option(
        metavar="E",
        min=1,
        help="How long to train; by default as long as the method is used to.",
        rich_help_panel=_LEARNING,
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        metavar="S",
        min=0,
        help="The same seed gives the same bytes; by default 0.",
        rich_help_panel=_LEARNING,
    ),
]
ValShare = Annotated[
    float | None,
    typer.Option(
        metavar="SHARE",
        help="The share of labelled nodes that is set aside to choose an epoch; by default 0.2.",
        rich_help_panel=_LEARNING,
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Another setting of the method, such as hidden=64; once for each.",
        rich_help_panel=_LEARNING,
    ),
]
Device = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="auto (a GPU if there is one), cpu or cuda; by default auto.",
        rich_help_panel=_LEARNING,
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Repeat a run: config.toml of its folder. What is given on the command line wins; "
        "with another method than the file's, the settings are those of that method.",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace what an earlier run wrote there.")]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on with an interrupted run into the same DIR.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no notes.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def given(**values: Any) -> dict[str, Any]:
    """Keep the options that were given."""
    return {name: value for name, value in values.items() if value is not None}


def one_or_more(values: Sequence[str] | None) -> str | list[str] | None:
    """Return a single value by itself; some readers know only that."""
    return values[0] if values and len(values) == 1 else list(values or ()) or None


def settings(assignments: Sequence[str] | None) -> dict[str, Any]:
    """Read texts like "hidden=64"; a value is TOML, or else a text."""
    from openima.config import toml_value

    found = {}
    for assignment in assignments or ():
        name, equals, text = assignment.partition("=")
        if not (equals and name.strip() and text.strip()):
            raise InputError(
                "--set changes a setting of the method",
                expected="name=value, such as hidden=64",
                got=repr(assignment),
            )
        found[name.strip()] = toml_value(text.strip())
    return found
