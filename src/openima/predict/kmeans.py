"""Lloyd's K-Means from several k-means++ starts, all of which are improved at once.

All starts share one product with the rows, which is then large enough to run at the machine's full
rate; one start after the other, as libraries do it, takes four times as long.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from openima.nn.products import float32_matmul

MOST_ROUNDS = 300
"""Rounds after which a start is taken as it is."""

TOLERANCE = 1e-4
"""A start is done when its centres' squared moves add up to this share of a column's variance."""

_AT_ONCE = 1 << 19  # scores of rows and centres: two megabytes
_DISTANCES = 1 << 24  # from all rows to the candidates for a centre: 64 megabytes


class Fit(NamedTuple):
    """The best of all starts: `labels` (n,), `centres` (k, d), the sum of squared distances."""

    labels: NDArray[np.int64]
    centres: NDArray[np.float32]
    inertia: float


def kmeans(x: NDArray[np.float32], k: int, n_init: int, rng: np.random.Generator) -> Fit:
    """Put the rows of `x` (n, d) into k groups, each row to its nearest centre.

    Rows with fewer than k distinct values leave groups empty.
    """
    points = Points(x)
    at_once = max(1, _DISTANCES // (_n_candidates(k) * len(x)))
    parts = [min(at_once, n_init - done) for done in range(0, n_init, at_once)]
    return improved(points, torch.cat([_starts(points, k, part, rng) for part in parts]))


def improved(points: Points, starts: Tensor) -> Fit:
    """Move centres (S, k, d) to the means of their rows until they stay; return the best."""
    centres = starts.clone()
    moving = torch.arange(len(centres))
    for _ in range(MOST_ROUNDS):
        before = centres[moving]
        centres[moving] = after = _means(points, before)
        moves = (after - before).square().sum((1, 2))
        moving = moving[moves > TOLERANCE * points.variance]
        if len(moving) == 0:
            break
    inertia = torch.zeros(len(centres), dtype=torch.float64)
    labels = torch.empty(len(centres), points.n, dtype=torch.int32)
    for rows, x in points.chunks(centres.shape[0] * centres.shape[1]):
        top, nearest = _scores(x, centres).max(1)
        labels[:, rows] = nearest.int()
        inertia += points.inertia(rows, top)
    best = int(inertia.argmin())
    found = (centres[best] + points.mean).numpy()
    return Fit(labels[best].numpy().astype(np.int64), found, float(inertia[best]))


class Points:
    """Rows (n, d), seen from their mean, which makes differences of near ones exact."""

    def __init__(self, x: NDArray[np.float32]) -> None:
        """Keep the rows where they are."""
        self._x = torch.from_numpy(np.ascontiguousarray(x, dtype=np.float32))
        self.n = len(x)
        self.mean = self._x.mean(0)
        self.squares = torch.cat([chunk.square().sum(1) for _, chunk in self.chunks(1)])
        self.variance = float(self.squares.mean(dtype=torch.float64)) / x.shape[1]

    def chunks(self, n_centres: int) -> Iterator[tuple[slice, Tensor]]:
        """Cut the rows so that their scores for so many centres stay in the cache."""
        size = max(256, _AT_ONCE // n_centres)
        for start in range(0, self.n, size):
            rows = slice(start, min(start + size, self.n))
            yield rows, self._x[rows] - self.mean

    def rows(self, index: Tensor) -> Tensor:
        """Return the rows at `index` (...), (..., d)."""
        return self._x[index] - self.mean

    def inertia(self, rows: slice, top: Tensor) -> Tensor:
        """Add up the squared distances of `rows` to centres that they score `top` (S, n) for."""
        return (self.squares[rows] - 2.0 * top).clamp_(min=0.0).sum(1, dtype=torch.float64)

    def distances(self, centres: Tensor) -> Tensor:
        """Return the squared distances of all rows to `centres` (m, d), (m, n)."""
        out = torch.empty(len(centres), self.n)
        for rows, x in self.chunks(len(centres)):
            out[:, rows] = self.squares[rows] - 2.0 * _scores(x, centres[None])[0]
        return out.clamp_(min=0.0)


def _scores(x: Tensor, centres: Tensor) -> Tensor:
    """Return x . c - |c|^2 / 2, which is largest for the nearest centre, as (S, k, n)."""
    flat = centres.flatten(0, 1)
    scores = float32_matmul(flat, x.t())
    scores -= flat.square().sum(1, keepdim=True) / 2.0
    return scores.view(*centres.shape[:2], -1)


def _means(points: Points, centres: Tensor) -> Tensor:
    """Give each row to its nearest centre and return the means, (S, k, d).

    Centres without a row move to the rows that are farthest from their own.
    """
    flat = centres.flatten(0, 1)
    sums, counts = torch.zeros_like(flat), torch.zeros(centres.shape[:2])
    for _, x in points.chunks(len(flat)):
        scores = _scores(x, centres)
        member = scores.eq(scores.amax(1, keepdim=True)).to(x.dtype)
        in_each = member.sum(2)
        if in_each.sum() != len(centres) * len(x):  # some are as near to two centres
            nearest = scores.argmax(1, keepdim=True)
            member = torch.zeros_like(scores).scatter_(1, nearest, 1.0)
            in_each = member.sum(2)
        counts += in_each
        sums += float32_matmul(member.view(len(flat), -1), x)
    means = torch.where(
        counts[..., None] > 0, sums.view_as(centres) / counts[..., None].clamp(min=1.0), centres
    )
    for start in (counts == 0).any(1).nonzero().view(-1).tolist():
        empty = counts[start] == 0
        to_own = points.distances(centres[start]).amin(0)
        farthest = to_own.topk(min(int(empty.sum()), points.n))
        chosen = farthest.indices[farthest.values > 0]
        means[start, empty.nonzero().view(-1)[: len(chosen)]] = points.rows(chosen)
    return means


def _starts(points: Points, k: int, n_init: int, rng: np.random.Generator) -> Tensor:
    """Draw centres (n_init, k, d) by greedy k-means++.

    A row is drawn in proportion to its squared distance to the nearest centre so far; of a few
    rows so drawn, the one is taken that leaves the smallest sum of these distances.
    """
    n_tries, own = _n_candidates(k), torch.arange(n_init)
    first = points.rows(torch.from_numpy(rng.integers(points.n, size=n_init)))
    centres = torch.empty(n_init, k, first.shape[1])
    centres[:, 0] = first
    nearest = points.distances(first)
    for c in range(1, k):
        reached = nearest.cumsum(1, dtype=torch.float64)
        drawn = torch.from_numpy(rng.random((n_init, n_tries))) * reached[:, -1:]
        tries = torch.searchsorted(reached, drawn, right=True).clamp_(max=points.n - 1)
        rows = points.rows(tries)
        left = points.distances(rows.flatten(0, 1)).view(n_init, n_tries, -1)
        torch.minimum(left, nearest[:, None], out=left)
        best = left.sum(2, dtype=torch.float64).argmin(1)
        centres[:, c], nearest = rows[own, best], left[own, best]
    return centres


def _n_candidates(k: int) -> int:
    return 2 + int(math.log(k))
