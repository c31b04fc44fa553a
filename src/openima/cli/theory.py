"""Theorem 1 of the paper, held against the closed form and against K-Means."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from openima.errors import MissingPackageError
from openima.files import writing

if TYPE_CHECKING:
    from openima.theory import Check

SIMULATED = ((1.0, 1.5), (1.5, 1.5), (2.0, 1.5), (1.5, 2.0), (2.0, 2.0), (2.0, 3.0))
DIMENSIONS = (1, 16)


def theory(
    out: Annotated[
        Path | None, typer.Option(file_okay=False, help="Folder for the curves, PNG and SVG.")
    ] = None,
    csv: Annotated[
        Path | None, typer.Option(dir_okay=False, help="File for accuracies over a grid of rates.")
    ] = None,
) -> None:
    """Check Theorem 1: how K-Means splits two Gaussians of different widths."""
    from openima.theory import check_claims

    console = Console()
    drawn = [] if out is None else _draw_into(out)
    if csv is not None:
        _write_grid(csv)
    console.print(claims_table(check_claims()))
    console.print(simulation_table())
    for path in drawn:
        console.print(f"drawn: {path}", soft_wrap=True)
    if csv is not None:
        console.print(f"written: {csv}", soft_wrap=True)


def claims_table(checks: list[Check]) -> Table:
    """Lay out what was checked, one row a statement."""
    caption = "γ from 1 to 2; slope: σ1 ∂ACC2/∂σ1; ranges are of a grid, ends included"
    table = Table(title="Theorem 1", caption=caption)
    for column in ("statement", "for", "verdict", "found", "worst at"):
        table.add_column(column)
    for check in checks:
        verdict = "holds" if check.holds else "FAILS"
        found = f"{check.quantity} {check.least:.3g} to {check.greatest:.3g}"
        table.add_row(check.statement, check.where, verdict, found, check.worst)
    return table


def simulation_table() -> Table:
    """Lay out accuracies in closed form beside those of K-Means on drawn points."""
    from openima.theory import TwoGaussians, accuracies, simulate

    table = Table(
        title="K-Means on 20,000 points a class",
        caption="ACC1 / ACC2; standard error of one draw up to 0.004",
    )
    for column in ("γ", "α", "closed form", *(f"d = {dimension}" for dimension in DIMENSIONS)):
        table.add_column(column, justify="right")
    for gamma, alpha in SIMULATED:
        seen, novel = accuracies(TwoGaussians.from_rates(gamma, alpha))
        cells = [f"{seen:.4f} / {novel:.4f}"]
        for dimension in DIMENSIONS:
            drawn = simulate(gamma, alpha, dimension=dimension)
            cells.append(f"{drawn.seen:.4f} / {drawn.novel:.4f}")
        table.add_row(f"{gamma:g}", f"{alpha:g}", *cells)
    return table


def _write_grid(path: Path) -> None:
    from openima.theory import accuracy_grid

    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        accuracy_grid().to_csv(path, index=False, float_format="%.6g", lineterminator="\n")


def _draw_into(folder: Path) -> list[Path]:
    try:
        from openima.theory.figures import save_figure
    except ImportError as error:
        raise MissingPackageError(
            "curves need the package 'matplotlib'",
            got=str(error),
            remedy="pip install 'openima[plots]', or leave out --out",
        ) from error
    return save_figure(folder)
