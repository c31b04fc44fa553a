"""`openima methods`: what can be fitted."""

from __future__ import annotations

from openima.cli import options
from openima.cli.printing import Side, grid, show, show_json

_COLUMNS: dict[str, Side] = {
    **{"name": "left", "kind": "left", "epochs": "right"},
    **{"paper": "left", "cost of an epoch": "left"},
}


def methods(json: options.Json = False) -> None:
    """List the methods by name: what they are, what an epoch costs, who proposed them.

    two-stage methods cluster embeddings; end-to-end ones classify by a head; a detector says what
    is new, and that is clustered. The cost is beside InfoNCE: two views of the nodes a step.
    """
    from openima.methods import PAPER_METHODS, recipes

    known = recipes()
    if json:
        show_json(
            [
                {
                    "name": name,
                    "title": recipe.title,
                    "kind": recipe.kind,
                    "cost": recipe.cost,
                    "epochs": recipe.train.epochs,
                    "paper": recipe.paper,
                    "in_paper_table": name in PAPER_METHODS,
                }
                for name, recipe in known.items()
            ]
        )
        return
    rows = [
        (r.name, r.kind, str(r.train.epochs), _short(r.paper), r.cost)
        for r in map(known.__getitem__, PAPER_METHODS)
    ]
    variants = [name for name in known if name not in PAPER_METHODS]
    show(grid(_COLUMNS, rows), f"Parts of OpenIMA left out: {', '.join(variants)}")


def _short(paper: str) -> str:
    """Name a paper by who wrote it and where it came out."""
    authors, *_, venue = paper.split(", ")
    return f"{authors}, {venue}"
