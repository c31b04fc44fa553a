"""Theorem 1 of the OpenIMA paper, numerically; docs/theory.md derives what is computed here."""

from openima.theory.claims import READINGS, Check, Reading, check_claims
from openima.theory.gaussians import (
    TwoGaussians,
    accuracies,
    accuracy_slopes,
    cell_means,
    count_thresholds,
    excess,
    lloyd_slope,
    threshold,
)
from openima.theory.grid import accuracy_grid
from openima.theory.simulation import simulate

__all__ = [
    "READINGS",
    "Check",
    "Reading",
    "TwoGaussians",
    "accuracies",
    "accuracy_grid",
    "accuracy_slopes",
    "cell_means",
    "check_claims",
    "count_thresholds",
    "excess",
    "lloyd_slope",
    "simulate",
    "threshold",
]
