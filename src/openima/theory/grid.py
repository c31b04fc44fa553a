"""ACC1 and ACC2 over a grid of widths and rates, as a table."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from openima.theory.gaussians import TwoGaussians, accuracies, threshold

SIGMAS = (0.5, 1.0, 2.0)
GAMMAS = np.linspace(1, 2, 11)
ALPHAS = np.linspace(1.5, 5, 36)


def accuracy_grid(
    sigma1: ArrayLike = SIGMAS, gamma: ArrayLike = GAMMAS, alpha: ArrayLike = ALPHAS
) -> pd.DataFrame:
    """Return a row for each combination: where K-Means cuts, and both accuracies there."""
    axes = np.meshgrid(sigma1, gamma, alpha, indexing="ij")
    widths, imbalance, separation = (axis.ravel() for axis in axes)
    mixture = TwoGaussians.from_rates(imbalance, separation, widths)
    seen, novel = accuracies(mixture)
    columns = {
        "sigma1": widths,
        "gamma": imbalance,
        "alpha": separation,
        "threshold": threshold(mixture),
        "acc1": seen,
        "acc2": novel,
    }
    return pd.DataFrame(columns)
