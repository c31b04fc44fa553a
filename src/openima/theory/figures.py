"""The curves of Theorem 1; needs matplotlib, which only those who draw have."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from openima.theory.claims import NEAR_ONE
from openima.theory.gaussians import TwoGaussians, accuracies

GAMMAS = (1.0, 1.25, 1.5, 2.0)
ALPHAS = (1.5, 2.0, 2.5, 3.0)
_PANEL = 4.2  # inches


def save_figure(folder: Path) -> list[Path]:
    """Write theorem1.png and theorem1.svg into `folder`; the same bytes every time."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / "theorem1.png", folder / "theorem1.svg"]
    with rc_context({"svg.hashsalt": "theorem1"}):
        figure = draw()
        figure.savefig(paths[0], dpi=150, metadata={"Software": None})
        figure.savefig(paths[1], metadata={"Date": None})
    return paths


def draw() -> Figure:
    """Draw accuracies over α, and the loss of ACC2 as the seen class narrows, in two readings."""
    figure = Figure(figsize=(3 * _PANEL, _PANEL), layout="constrained")
    over_alpha, fixed_alpha, fixed_distance = figure.subplots(1, 3)
    _draw_over_alpha(over_alpha)
    narrow = np.linspace(0.5, 1, 101)
    for alpha in ALPHAS:
        _draw_loss(fixed_alpha, TwoGaussians.of(narrow, 1, alpha * (narrow + 1)), f"α = {alpha:g}")
        label = f"α = {alpha:g} at σ1 = σ2"
        _draw_loss(fixed_distance, TwoGaussians.of(narrow, 1, 2 * alpha), label)
    fixed_alpha.set_title("σ2 and α fixed")
    fixed_distance.set_title("σ2 and ‖μ1-μ2‖ fixed")
    for axes in (over_alpha, fixed_alpha, fixed_distance):
        axes.legend()
        axes.grid(alpha=0.3)
    return figure


def _draw_over_alpha(axes: Axes) -> None:
    alpha = np.linspace(1, 4, 301)
    for number, gamma in enumerate(GAMMAS):
        seen, novel = accuracies(TwoGaussians.from_rates(gamma, alpha))
        axes.plot(alpha, novel, color=f"C{number}", label=f"γ = {gamma:g}")
        axes.plot(alpha, seen, color=f"C{number}", linestyle=":")
    axes.axvspan(1.5, 3, color="black", alpha=0.05, linewidth=0)
    axes.axhline(1 - NEAR_ONE, color="black", linewidth=0.8)
    axes.set(xlabel="separation rate α", ylabel="accuracy", ylim=(0.7, 1.005))
    axes.set_title("ACC2 (dotted: ACC1)")


def _draw_loss(axes: Axes, mixture: TwoGaussians, label: str) -> None:
    _, novel = accuracies(mixture)
    axes.semilogy(mixture.sigma1 / mixture.sigma2, 1 - novel, label=label)
    axes.set(xlabel="σ1/σ2 = 1/γ", ylabel="1 - ACC2", ylim=(1e-3, 0.5))
