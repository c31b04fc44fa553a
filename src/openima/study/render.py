"""Tables as text: for the terminal, Markdown, CSV and LaTeX."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype
from rich.table import Table as TerminalTable

from openima.methods import recipes
from openima.study.plan import Study
from openima.study.select import RULES
from openima.study.tables import PERCENT

Format = Literal["terminal", "markdown", "csv", "latex"]

_DASH = "-"
_TITLES = {"all": "All", "seen": "Seen", "novel": "Novel", "dataset": "data", "pseudo_share": "rho"}
_TITLES |= {"imbalance_ratio": "imbalance", "imbalance": "max/min", "rule": "chosen by", **RULES}


@dataclass(frozen=True)
class Grid:
    """A table laid out: `words` columns of words, then numbers; `breaks` are rows to part at."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: int
    breaks: frozenset[int] = frozenset()


def title_of(name: str) -> str:
    """Name a column or a rule to a reader."""
    return _TITLES.get(name, name)


def lay_out(study: Study, summary: pd.DataFrame) -> Grid:
    """Put a summary into cells: mean ± standard error, the paper's number, the difference."""
    keys = [*study.rows, *(["rule"] if len(study.rules) > 1 else [])]
    header = [title_of(key) for key in keys]
    for metric in study.metrics:
        header.append(title_of(metric))
        if summary[f"{metric}_paper"].notna().any():
            header += ["paper", "diff."]
    rows, breaks = [], set[int]()
    for number, (_, line) in enumerate(summary.iterrows()):
        if number and line[keys[0]] != summary.iloc[number - 1][keys[0]]:
            breaks.add(number)
        cells = [_name(key, line[key]) for key in keys]
        for metric in study.metrics:
            cells.append(_mean(line, metric))
            if summary[f"{metric}_paper"].notna().any():
                cells.append(_number(line[f"{metric}_paper"], metric))
                cells.append(_number(line[f"{metric}_difference"], metric, sign="+"))
        rows.append((*cells, str(line["seeds"])))
    return Grid(study.title, (*header, "seeds"), tuple(rows), len(keys), frozenset(breaks))


def render(study: Study, summary: pd.DataFrame, format: Format) -> str | TerminalTable:
    """Render a summary: a table for the terminal, or text."""
    if format == "csv":
        return to_csv(summary)
    grid = lay_out(study, summary)
    if format == "terminal":
        return to_terminal(grid)
    return to_markdown(grid) if format == "markdown" else to_latex(grid)


def frame_to_terminal(title: str, frame: pd.DataFrame) -> TerminalTable:
    """Draw any table of words and numbers for the terminal."""
    table = TerminalTable(title=title)
    words = [not is_numeric_dtype(frame[name]) for name in frame.columns]
    for name, is_word in zip(frame.columns, words, strict=True):
        table.add_column(name, justify="left" if is_word else "right")
    for row in frame.itertuples(index=False):
        table.add_row(*(f"{v:.3f}" if isinstance(v, float) else str(v) for v in row))
    return table


def to_terminal(grid: Grid) -> TerminalTable:
    """Draw a table for the terminal."""
    table = TerminalTable(title=grid.title)
    for place, name in enumerate(grid.header):
        is_word = place < grid.words
        table.add_column(name, justify="left" if is_word else "right", no_wrap=not is_word)
    for number, row in enumerate(grid.rows):
        if number in grid.breaks:
            table.add_section()
        table.add_row(*row)
    return table


def to_markdown(grid: Grid) -> str:
    """Write a table as Markdown."""
    rule = ["---"] * grid.words + ["---:"] * (len(grid.header) - grid.words)
    lines = [grid.header, tuple(rule), *grid.rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines) + "\n"


def to_latex(grid: Grid) -> str:
    """Write a table as LaTeX, for the package booktabs."""
    shape = "l" * grid.words + "r" * (len(grid.header) - grid.words)
    lines = [f"\\begin{{tabular}}{{{shape}}}", "\\toprule", _latex_row(grid.header), "\\midrule"]
    for number, row in enumerate(grid.rows):
        if number in grid.breaks:
            lines.append("\\midrule")
        lines.append(_latex_row(row))
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}"]) + "\n"


def to_csv(summary: pd.DataFrame) -> str:
    """Write the numbers of a table, not rounded for readers, as CSV."""
    text: str = summary.to_csv(index=False, float_format="%.6g", lineterminator="\n")
    return text


def _name(key: str, value: object) -> str:
    if key == "method" and value in recipes():
        return recipes()[str(value)].title
    return title_of(str(value))


def _mean(line: pd.Series, metric: str) -> str:
    mean, error = _number(line[metric], metric), line[f"{metric}_se"]
    return mean if np.isnan(error) else f"{mean} ± {_number(error, metric)}"


def _number(value: float, metric: str, sign: str = "") -> str:
    digits = 1 if metric in PERCENT else 3
    return _DASH if np.isnan(value) else f"{value:{sign}.{digits}f}"


def _latex_row(cells: tuple[str, ...]) -> str:
    signs = {"&": "\\&", "%": "\\%", "_": "\\_", "±": "$\\pm$"}
    escaped = ["".join(signs.get(letter, letter) for letter in cell) for cell in cells]
    return " & ".join(escaped) + " \\\\"
