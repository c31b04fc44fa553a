"""Figures of a study: how accuracy depends on a setting, and what each selection rule reaches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from openima.errors import InputError, MissingPackageError
from openima.files import writing
from openima.methods import get_recipe
from openima.study.plan import FIGURES, MEAN, Study
from openima.study.render import title_of
from openima.study.tables import PERCENT
from openima.study.trial import Trial

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_STYLE: dict[Any, Any] = {
    "svg.hashsalt": "openima",  # the same figure is the same file
    "svg.fonttype": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "legend.frameon": False,
}


def draw(study: Study, summary: pd.DataFrame, folder: str | Path) -> list[Path]:
    """Draw a study's figure as PNG and SVG; return their paths."""
    refuse_figure(study)
    kinds: dict[str | None, Callable[[Study, pd.DataFrame], Figure]]
    kinds = dict(zip(FIGURES, (_sensitivity, _rules), strict=True))
    metric = study.metrics[0]
    if not summary[metric].notna().any():
        raise InputError("there are no rows to draw", where=study.name, remedy="run the study")
    try:
        import matplotlib as mpl
    except ImportError:
        raise MissingPackageError(
            "figures need matplotlib", remedy='pip install "openima[plots]"'
        ) from None
    paths = [Path(folder) / f"{study.name}.{kind}" for kind in ("png", "svg")]
    with mpl.rc_context(_STYLE), writing(Path(folder)):
        figure = kinds[study.figure](study, summary)
        Path(folder).mkdir(parents=True, exist_ok=True)
        for path in paths:
            dateless = {"Date": None} if path.suffix == ".svg" else {}
            figure.savefig(path, dpi=150, metadata=dateless)
    return paths


def refuse_figure(study: Study) -> None:
    """Refuse a study without a figure, and tables whose lines the figure could not tell apart."""
    if study.figure is None:
        raise InputError(
            "this study has no figure",
            where=study.name,
            remedy=f'write figure = "{FIGURES[0]}" into its file, if that fits its rows',
        )
    settings = set(study.rows) - {"dataset", "method"}
    alone = len({trial.method for trial in study.trials}) == 1
    fits, expected = {
        "sensitivity": ("dataset" in study.rows and settings and alone, "settings, of one method"),
        "rules": ({*study.rows} == {"dataset", "method"}, "method"),
    }[study.figure]
    if not fits:
        raise InputError(
            f"the figure {study.figure!r} does not fit the table",
            where=study.name,
            expected=f"rows of dataset and {expected}",
            got=f"rows of {', '.join(study.rows)}",
        )


def _sensitivity(study: Study, summary: pd.DataFrame) -> Figure:
    """Draw a panel for each setting among the study's rows, a line for each data set."""
    names = [name for name in study.rows if name not in ("dataset", "method")]
    figure, (panels,) = _panels(1, len(names))
    for panel, name in zip(panels, names, strict=True):
        for dataset, part in _along(study, summary, name, names):
            order = part.sort_values(name)
            _line(panel, order, name, study.metrics[0], dataset)
        panel.set_xlabel(title_of(name))
    panels[0].set_ylabel(_with_unit(study.metrics[0]))
    panels[-1].legend()
    return figure


def _along(
    study: Study, summary: pd.DataFrame, name: str, names: Sequence[str]
) -> list[tuple[str, pd.DataFrame]]:
    """Return for each data set the lines that differ from the paper's settings in `name` alone."""
    found = []
    for dataset, part in summary.groupby("dataset", sort=False):
        if dataset == MEAN:
            continue
        first = next(trial for trial in study.trials if trial.dataset == dataset)
        usual = Trial(first.dataset, first.method, first.seed).settings
        for other in names:
            if other != name:
                part = part[part[other] == usual[other]]
        found.append((str(dataset), part))
    return found


def _line(panel: Axes, part: pd.DataFrame, x: str, metric: str, label: str) -> None:
    error = part[f"{metric}_se"].fillna(0.0)
    panel.errorbar(part[x], part[metric], yerr=error, marker="o", capsize=2, label=label)


def _rules(study: Study, summary: pd.DataFrame) -> Figure:
    """Draw for each data set and metric a group of bars a method: what each rule reaches."""
    summary = summary[(summary["dataset"] != MEAN) & (summary["method"] != MEAN)]
    datasets = list(dict.fromkeys(summary["dataset"]))
    figure, panels = _panels(len(datasets), len(study.metrics))
    for line, dataset in zip(panels, datasets, strict=True):
        of_dataset = summary[summary["dataset"] == dataset]
        methods = list(dict.fromkeys(of_dataset["method"]))
        names = [get_recipe(method).title for method in methods]
        for panel, metric in zip(line, study.metrics, strict=True):
            _bars(panel, of_dataset, study.rules, metric)
            panel.set_xticks(range(len(methods)), names, rotation=20, ha="right")
            panel.set_ylabel(_with_unit(metric))
            if len(datasets) > 1:
                panel.set_title(dataset)
    panels[0][-1].legend()
    return figure


def _bars(panel: Axes, summary: pd.DataFrame, rules: Sequence[str], metric: str) -> None:
    width = 0.8 / len(rules)
    for place, rule in enumerate(rules):
        part = summary[summary["rule"] == rule]
        x = np.arange(len(part)) + (place - (len(rules) - 1) / 2) * width
        error = part[f"{metric}_se"].fillna(0.0)
        panel.bar(x, part[metric], width, yerr=error, label=title_of(rule), capsize=2)


def _with_unit(metric: str) -> str:
    return f"{title_of(metric)} (%)" if metric in PERCENT else title_of(metric)


def _panels(n_rows: int, n_columns: int) -> tuple[Figure, list[list[Axes]]]:
    from matplotlib.figure import Figure as NewFigure

    figure = NewFigure(figsize=(4.5 * n_columns, 3.5 * n_rows), layout="constrained")
    panels = figure.subplots(n_rows, n_columns, squeeze=False)
    return figure, [list(line) for line in panels]
