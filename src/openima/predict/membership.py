"""How likely a node belongs to each group, from what was learned on other nodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from scipy.special import log_expit, log_softmax

Floats = NDArray[np.float64]

CHUNK = 1 << 16
"""Rows looked at in one go, so that a million nodes take no more memory than some ten thousand."""

_LEAST = 1e-12  # of a temperature: where all nodes lie on their centres, they are certain


@dataclass(frozen=True, eq=False)
class Membership:
    """How likely nodes are in each of G groups; `scores` are logarithms of probabilities.

    - By clusters with `centres` (G, d), p(g | z) is in proportion to
      exp(-‖z - centre_g‖² / temperature). The temperature is the mean of that squared distance
      over the fitted nodes, each to its own centre. So the nearest centre is the likeliest, and
      no label is needed. A group without nodes has no centre (infinity), and gets none.
    - By a head, without `centres`, p is the softmax of its outputs.
    - By a detector, with a `threshold` of its score s too: p(new) is the sigmoid of
      (s - threshold) / spread, which is shared among the `centres` of the last groups as above;
      the rest is shared among the first groups by the head. A node is put into a new group just
      if s is above the threshold. The spread is the standard deviation of s over the fitted nodes.
    """

    centres: NDArray[np.float32] | None = None
    temperature: float = 1.0
    threshold: float | None = None
    spread: float = 1.0

    @classmethod
    def by_clusters(
        cls, z: NDArray[np.float32], groups: NDArray[np.int64], centres: NDArray[np.float32]
    ) -> Membership:
        """Measure how far nodes `z` (N, d) lie from the centres of their `groups` (N,)."""
        empty = np.bincount(groups, minlength=len(centres)) == 0
        centres = np.where(empty[:, None], np.float32(np.inf), centres)
        squares = 0.0
        for start in range(0, len(z), CHUNK):
            part = slice(start, start + CHUNK)
            offset = z[part].astype(np.float64) - centres[groups[part]]
            squares += float(np.vdot(offset, offset))
        return cls(centres, max(squares / max(len(z), 1), _LEAST))

    @classmethod
    def by_rejection(
        cls,
        z: NDArray[np.float32],
        groups: NDArray[np.int64],
        novelty: NDArray[np.float32],
        *,
        n_seen: int,
        n_groups: int,
        threshold: float,
    ) -> Membership:
        """Find the centres of the groups from `n_seen` on, into which rejected nodes were put."""
        new = groups >= n_seen
        rows, own = z[new], groups[new] - n_seen
        sums = np.zeros((n_groups - n_seen, z.shape[1]))
        np.add.at(sums, own, rows)
        sizes = np.bincount(own, minlength=len(sums))
        centres = (sums / np.maximum(sizes, 1)[:, None]).astype(np.float32)
        found = cls.by_clusters(rows, own, centres)
        spread = max(float(novelty.std(dtype=np.float64)), _LEAST)
        return cls(found.centres, found.temperature, threshold, spread)

    def scores(
        self,
        z: NDArray[np.float32],
        logits: NDArray[np.float32] | None,
        novelty: NDArray[np.float32] | None,
    ) -> Floats:
        """Return the log-probability of every group, (n, G), from what is seen of n nodes."""
        if self.threshold is None:
            return self._of_head(logits) if self.centres is None else self._of_clusters(z)
        if novelty is None:
            raise ValueError("a detector's score is needed")
        new = (novelty.astype(np.float64)[:, None] - self.threshold) / self.spread
        parts = self._of_head(logits) + log_expit(-new), self._of_clusters(z) + log_expit(new)
        return np.concatenate(parts, axis=1)

    def groups(self, scores: Floats, novelty: NDArray[np.float32] | None) -> NDArray[np.int64]:
        """Put each node into the likeliest of the groups that are open to it, (n,)."""
        if self.threshold is not None and self.centres is not None and novelty is not None:
            is_new = np.arange(scores.shape[1]) >= scores.shape[1] - len(self.centres)
            closed = is_new != (novelty > self.threshold)[:, None]
            scores = np.where(closed, -np.inf, scores)
        likeliest: NDArray[np.int64] = scores.argmax(axis=1)
        return likeliest

    def _of_clusters(self, z: NDArray[np.float32]) -> Floats:
        if self.centres is None or not np.isfinite(self.centres).any():
            k = 0 if self.centres is None else len(self.centres)
            return np.full((len(z), k), -np.log(max(k, 1)))  # nothing tells them apart
        return _log_softmax(-cdist(z, self.centres, "sqeuclidean") / self.temperature)

    def _of_head(self, logits: NDArray[np.float32] | None) -> Floats:
        if logits is None:
            raise ValueError("the outputs of a head are needed")
        return _log_softmax(logits.astype(np.float64))


def _log_softmax(scores: Floats) -> Floats:
    return np.asarray(log_softmax(scores, axis=1), dtype=np.float64)
