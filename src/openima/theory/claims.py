"""The two claims of Theorem 1, checked over a grid of rates.

The theorem speaks of 1 < γ < 2. Accuracies depend on γ and α alone (scaling all lengths changes
nothing), so "ACC2 grows with σ1" needs a word on what stays fixed; each reading is checked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from openima.theory.gaussians import (
    Array,
    TwoGaussians,
    accuracies,
    accuracy_slopes,
    count_thresholds,
    lloyd_slope,
    threshold,
)

NEAR_ONE = 0.05
_SLOPE_NOISE = 1e-9  # slopes below this are rounding


@dataclass(frozen=True)
class Reading:
    """What stays fixed while σ1 grows, and how (σ1, σ2, D) then move."""

    fixed: str
    direction: Callable[[TwoGaussians], tuple[Array, Array, Array]]


READINGS = (
    Reading("σ2 and ‖μ1-μ2‖", lambda m: (_one(m), _zero(m), _zero(m))),
    Reading("σ2 and α", lambda m: (_one(m), _zero(m), m.alpha)),
    Reading("γ and α", lambda m: (_one(m), m.gamma, m.alpha * (1 + m.gamma))),
    Reading("γ and ‖μ1-μ2‖", lambda m: (_one(m), m.gamma, _zero(m))),
)


@dataclass(frozen=True)
class Check:
    """A statement, where it was checked, whether it held everywhere, and the extremes found.

    `least` and `greatest` are values of `quantity`: "slope" is σ1 ∂ACC2/∂σ1, "factor" that of
    Lloyd's error. `worst` is where it was nearest to failing. Everywhere γ goes from 1 to 2.
    """

    statement: str
    quantity: str
    where: str
    holds: bool
    least: float
    greatest: float
    worst: str


def check_claims(n_gamma: int = 101, n_alpha: int = 151) -> list[Check]:
    """Check both claims and what they rest on, at `n_gamma` by `n_alpha` rates each."""
    gamma = np.linspace(1, 2, n_gamma)[:, None]
    between = TwoGaussians.from_rates(gamma, np.linspace(1.5, 3, n_alpha))
    beyond = TwoGaussians.from_rates(gamma, np.linspace(3, 10, n_alpha))
    whole = TwoGaussians.from_rates(gamma, np.linspace(1.5, 10, n_alpha))
    seen, novel = accuracies(beyond)
    return [
        *(_growth(between, reading) for reading in READINGS),
        _near_one(beyond, "ACC1", seen),
        _near_one(beyond, "ACC2", novel),
        _only_root(whole),
        _converges(whole),
    ]


def _growth(mixture: TwoGaussians, reading: Reading) -> Check:
    _, novel = accuracy_slopes(mixture, reading.direction(mixture))
    slope = np.where(np.abs(novel) < _SLOPE_NOISE, 0.0, novel)
    statement = f"ACC2 grows with σ1; fixed: {reading.fixed}"
    return _check(mixture, statement, "slope", slope, slope > 0)


def _near_one(mixture: TwoGaussians, name: str, accuracy: Array) -> Check:
    return _check(
        mixture, f"{name} is within {NEAR_ONE} of 1", name, accuracy, accuracy >= 1 - NEAR_ONE
    )


def _only_root(mixture: TwoGaussians) -> Check:
    roots = count_thresholds(mixture).astype(np.float64)
    return _check(mixture, "h has one root", "roots", roots, roots == 1, -1)


def _converges(mixture: TwoGaussians) -> Check:
    factor = lloyd_slope(mixture, threshold(mixture))
    return _check(mixture, "Lloyd shrinks the error each step", "factor", factor, factor < 1, -1)


def _check(
    mixture: TwoGaussians,
    statement: str,
    quantity: str,
    values: Array,
    held: NDArray[np.bool_],
    better: int = 1,
) -> Check:
    """Sum up one statement over the grid; `better` is -1 where small values are the good ones."""
    worst = np.unravel_index(int((better * values).argmin()), values.shape)
    gamma, alpha = mixture.gamma, mixture.alpha
    return Check(
        statement=statement,
        quantity=quantity,
        where=f"α from {alpha.min():g} to {alpha.max():g}",
        holds=bool(held.all()),
        least=float(values.min()),
        greatest=float(values.max()),
        worst=f"γ = {gamma[worst]:.3g}, α = {alpha[worst]:.3g}",
    )


def _one(mixture: TwoGaussians) -> Array:
    return np.ones_like(mixture.sigma1)


def _zero(mixture: TwoGaussians) -> Array:
    return np.zeros_like(mixture.sigma1)
