"""Where K-Means with two clusters cuts a mixture of two round Gaussians, in closed form.

The seen class is N(0, σ1² I), the novel class N(D u, σ2² I) with a unit vector u, equally likely.
Only the coordinate along u matters: the others have mean 0 in every half-space across u. `s` is a
place on that axis, a point left of it belongs to the lower cell. Φ and φ are the standard
normal distribution and density. Every function works element by element on arrays of mixtures.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import pi, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from openima.errors import InputError

Array = NDArray[np.float64]

_REACH = 8.0  # widths beyond the means at which the threshold is certainly passed
_CELLS = 128  # steps in which the first root is looked for
_HALVINGS = 60


@dataclass(frozen=True, eq=False)
class TwoGaussians:
    """Mixtures, each of a seen and a novel class: widths and distance of the means, one shape."""

    sigma1: Array
    sigma2: Array
    distance: Array

    @classmethod
    def of(cls, sigma1: ArrayLike, sigma2: ArrayLike, distance: ArrayLike) -> TwoGaussians:
        """Describe mixtures by their widths and distances, which are broadcast."""
        values = {"sigma1": sigma1, "sigma2": sigma2, "distance": distance}
        arrays = [np.asarray(value, dtype=np.float64) for value in values.values()]
        for name, array in zip(values, arrays, strict=True):
            if not (np.isfinite(array) & (array > 0)).all():
                raise InputError(f"{name} of a mixture of two Gaussians", expected="above 0")
        return cls(*np.broadcast_arrays(*arrays))

    @classmethod
    def from_rates(
        cls, gamma: ArrayLike, alpha: ArrayLike, sigma1: ArrayLike = 1.0
    ) -> TwoGaussians:
        """Describe mixtures by imbalance γ = σ2/σ1 and separation α = D/(σ1 + σ2)."""
        narrow = np.asarray(sigma1, dtype=np.float64)
        wide = narrow * np.asarray(gamma, dtype=np.float64)
        return cls.of(narrow, wide, np.asarray(alpha, dtype=np.float64) * (narrow + wide))

    @property
    def gamma(self) -> Array:
        """Imbalance rate σ2/σ1."""
        return self.sigma2 / self.sigma1

    @property
    def alpha(self) -> Array:
        """Separation rate D/(σ1 + σ2)."""
        return self.distance / (self.sigma1 + self.sigma2)


class _Cells(NamedTuple):
    """What a cut leaves: twice the mass and the mean of both cells, twice the density at the cut.

    `a` and `b` are the cut in standard units of the seen and of the novel class.
    """

    a: Array
    b: Array
    lower_mass: Array
    upper_mass: Array
    lower_mean: Array
    upper_mean: Array
    density: Array


def cell_means(mixture: TwoGaussians, s: ArrayLike) -> tuple[Array, Array]:
    """Means of what lies below and what lies above `s`, along the axis."""
    cells = _cells(mixture, s)
    return cells.lower_mean, cells.upper_mean


def excess(mixture: TwoGaussians, s: ArrayLike) -> Array:
    """The function h: how far `s` is above the middle of the cell means; 0 where Lloyd rests."""
    lower, upper = cell_means(mixture, s)
    return np.asarray(s, dtype=np.float64) - (lower + upper) / 2


def lloyd_slope(mixture: TwoGaussians, s: ArrayLike) -> Array:
    """Derivative of Lloyd's step s → middle of the cell means, which is 1 - h'(s); never negative.

    At a root of h it is the factor by which an iteration shrinks the error; above 1, K-Means
    would leave the root.
    """
    cut = np.asarray(s, dtype=np.float64)
    cells = _cells(mixture, cut)
    below = (cut - cells.lower_mean) / cells.lower_mass
    above = (cells.upper_mean - cut) / cells.upper_mass
    return cells.density * (below + above) / 2


def threshold(mixture: TwoGaussians) -> Array:
    """Solve h(s) = 0 for the place at which K-Means comes to rest from the middle of the means.

    Lloyd's step grows with s, so its iterates move in one direction, and stop at the first root
    there. That direction is towards the wider class: in the middle, less of it than of the other
    is on its own side. The root is bracketed by a walk in steps of 1/128 of a stretch at whose
    end h is positive, then halved to full precision.
    """
    seen_is_narrow = mixture.sigma1 <= mixture.sigma2
    narrow = np.minimum(mixture.sigma1, mixture.sigma2)
    wide = np.maximum(mixture.sigma1, mixture.sigma2)
    turned = TwoGaussians(narrow, wide, mixture.distance)
    start = mixture.distance / 2
    step = (start + _REACH * wide) / _CELLS
    low, crossed = start.copy(), excess(turned, start) >= 0
    at_start = crossed.copy()
    for _ in range(_CELLS):
        crossed = crossed | (excess(turned, low + step) >= 0)
        low = np.where(crossed, low, low + step)
    high = np.where(at_start, low, low + step)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        below = excess(turned, middle) < 0
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    root = (low + high) / 2
    return np.where(seen_is_narrow, root, mixture.distance - root)


def count_thresholds(mixture: TwoGaussians, n_places: int = 500) -> NDArray[np.int64]:
    """Count the roots of h on the whole axis, as sign changes between `n_places` places."""
    reach = _REACH * np.maximum(mixture.sigma1, mixture.sigma2)
    places = np.linspace(-reach, mixture.distance + reach, n_places)
    count = np.zeros(mixture.distance.shape, dtype=np.int64)
    below = excess(mixture, places[0]) < 0
    for place in places[1:]:
        before, below = below, excess(mixture, place) < 0
        count += before != below
    return count


def accuracies(mixture: TwoGaussians, s: ArrayLike | None = None) -> tuple[Array, Array]:
    """ACC1 and ACC2, the shares of the seen and the novel class on their own side of `s`.

    Without `s`, of the threshold of K-Means.
    """
    cut = threshold(mixture) if s is None else np.asarray(s, dtype=np.float64)
    return ndtr(cut / mixture.sigma1), ndtr((mixture.distance - cut) / mixture.sigma2)


def accuracy_slopes(
    mixture: TwoGaussians, direction: tuple[ArrayLike, ArrayLike, ArrayLike]
) -> tuple[Array, Array]:
    """Derivatives of ACC1 and ACC2 as (σ1, σ2, D) move along `direction`, with the threshold.

    The threshold follows from h(s; σ1, σ2, D) = 0. At a root, with δ = half the distance of the
    cell means, the partial derivatives of h come out short; that by σ2 follows from the others,
    since h scales with its arguments.
    """
    s = threshold(mixture)
    a, b, lower_mass, upper_mass, lower_mean, upper_mean, _ = _cells(mixture, s)
    half = (upper_mean - lower_mean) / 2
    turn = a * half / mixture.sigma1
    by_sigma1 = _phi(a) * ((1 + turn) / lower_mass - (1 - turn) / upper_mass) / 2
    pull = _phi(b) * half / mixture.sigma2
    by_distance = -((ndtr(b) - pull) / lower_mass + (ndtr(-b) - pull) / upper_mass) / 2
    by_s = 1 - lloyd_slope(mixture, s)
    scaled = s * by_s + mixture.sigma1 * by_sigma1 + mixture.distance * by_distance
    by_sigma2 = -scaled / mixture.sigma2
    d_sigma1, d_sigma2, d_distance = (np.asarray(part, dtype=np.float64) for part in direction)
    moved = -(by_sigma1 * d_sigma1 + by_sigma2 * d_sigma2 + by_distance * d_distance) / by_s
    seen = _phi(a) * (moved - a * d_sigma1) / mixture.sigma1
    novel = _phi(b) * (d_distance - moved + b * d_sigma2) / mixture.sigma2
    return seen, novel


def _cells(mixture: TwoGaussians, s: ArrayLike) -> _Cells:
    a = np.asarray(s) / mixture.sigma1
    b = (np.asarray(s) - mixture.distance) / mixture.sigma2
    at_cut = mixture.sigma1 * _phi(a) + mixture.sigma2 * _phi(b)
    lower, upper = ndtr(a) + ndtr(b), ndtr(-a) + ndtr(-b)
    return _Cells(
        a=a,
        b=b,
        lower_mass=lower,
        upper_mass=upper,
        lower_mean=(mixture.distance * ndtr(b) - at_cut) / lower,
        upper_mean=(mixture.distance * ndtr(-b) + at_cut) / upper,
        density=_phi(a) / mixture.sigma1 + _phi(b) / mixture.sigma2,
    )


def _phi(x: Array) -> Array:
    density: Array = np.exp(-(x**2) / 2) / sqrt(2 * pi)
    return density
