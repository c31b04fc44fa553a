"""Figures of a study: how accuracy depends on a setting, and what each selection rule reaches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from openima.errors import InputError, MissingPackageError
from openima.methods import get_recipe
from openima.study.plan import FIGURES, MEAN, Study
from openima.study.render import title_of
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
    kinds: dict[str, Callable[[Study, pd.DataFrame], Figure]]
    kinds = dict(zip(FIGURES, (_sensitivity, _rules), strict=True))
    if study.figure not in kinds:
        raise InputError(
            "this study has no figure",
            where=study.name,
            remedy=f'write figure = "{next(iter(kinds))}" into its file, if that fits its rows',
        )
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
    Path(folder).mkdir(parents=True, exist_ok=True)
    with mpl.rc_context(_STYLE):
        figure = kinds[study.figure](study, summary)
        for path in paths:
            dateless = {"Date": None} if path.suffix == ".svg" else {}
            figure.savefig(path, dpi=150, metadata=dateless)
    return paths


def _sensitivity(study: Study, summary: pd.DataFrame) -> Figure:
    """Draw a panel for each setting among the study's rows, a line for each data set."""
    names = [name for name in study.rows if name not in ("dataset", "method")]
    figure, panels = _panels(len(names), width=4.5)
    for panel, name in zip(panels, names, strict=True):
        for dataset, part in _along(study, summary, name, names):
            order = part.sort_values(name)
            _line(panel, order, name, study.metrics[0], dataset)
        panel.set_xlabel(title_of(name))
    panels[0].set_ylabel(f"{title_of(study.metrics[0])} (%)")
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
    """Draw for each metric a group of bars a method: what each rule reaches."""
    figure, panels = _panels(len(study.metrics), width=4.5)
    summary = summary[summary["dataset"] != MEAN]
    methods = list(dict.fromkeys(summary["method"]))
    width = 0.8 / len(study.rules)
    for panel, metric in zip(panels, study.metrics, strict=True):
        for place, rule in enumerate(study.rules):
            part = summary[summary["rule"] == rule].set_index("method").loc[methods]
            x = np.arange(len(methods)) + (place - (len(study.rules) - 1) / 2) * width
            error = part[f"{metric}_se"].fillna(0.0)
            panel.bar(x, part[metric], width, yerr=error, label=title_of(rule), capsize=2)
        names = [get_recipe(method).title for method in methods]
        panel.set_xticks(range(len(methods)), names, rotation=20, ha="right")
        panel.set_ylabel(f"{title_of(metric)} (%)")
    panels[-1].legend()
    return figure


def _panels(n: int, width: float) -> tuple[Figure, list[Axes]]:
    from matplotlib.figure import Figure as NewFigure

    figure = NewFigure(figsize=(width * n, 3.5), layout="constrained")
    panels = figure.subplots(1, n, squeeze=False)
    return figure, list(panels[0])
