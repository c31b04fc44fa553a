"""Groups from a detector: what looks new is set aside and clustered, the rest goes to its head.

Where "new" begins is found without any label: from the scores of the nodes to be predicted, and
from which nodes are for validation, which are of seen classes whatever class that is.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from openima.errors import InputError
from openima.predict.membership import Membership
from openima.train.snapshot import Snapshot

Scores: TypeAlias = NDArray[np.float64]

NEWEST = 0.1
"""The share of the test nodes that "midpoint" takes for new."""


@dataclass(frozen=True)
class RejectThenCluster:
    """Groups 0 to n_seen - 1 are classes of the head; those above, clusters of what it rejects.

    A node is rejected if its novelty is above a threshold, which `threshold` says how to find:

    - "mixture": where the upper of two Gaussians fitted to the scores takes over;
    - "mean": the mean score;
    - "quantile": the score that a share `kept` of the validation nodes does not exceed;
    - "midpoint": halfway from the mean of the validation nodes to that of the newest tenth of
      the test nodes.

    Scores are those of validation and test nodes. Where a rule has nothing to go by (scores in
    one heap, no validation nodes), the mean is taken.
    """

    threshold: Literal["mixture", "mean", "quantile", "midpoint"] = "mixture"
    kept: float = 0.9

    def __post_init__(self) -> None:
        """Refuse settings without a meaning."""
        if self.threshold not in RULES:
            raise InputError(
                "unknown threshold",
                expected=f"one of {', '.join(RULES)}",
                got=repr(self.threshold),
            )
        if not 0 < self.kept < 1:
            raise InputError("kept is a share", expected="between 0 and 1", got=str(self.kept))

    def __call__(self, snapshot: Snapshot) -> NDArray[np.int64]:
        """Return the group of every node; fewer rejected nodes than novel classes: fewer groups."""
        if snapshot.logits is None or snapshot.novelty is None:
            raise ValueError("rejection needs an objective with a head and a novelty score")
        groups: NDArray[np.int64] = snapshot.logits.argmax(axis=1)
        rejected = np.flatnonzero(snapshot.novelty > self.threshold_of(snapshot))
        n_clusters = min(snapshot.n_classes - snapshot.n_seen, len(rejected))
        if n_clusters == 1:
            groups[rejected] = snapshot.n_seen
        elif n_clusters > 1:
            clusters = snapshot.clustering(snapshot.z[rejected], n_clusters, snapshot.seed)
            groups[rejected] = snapshot.n_seen + clusters.labels
        return groups

    def membership(self, snapshot: Snapshot) -> Membership:
        """Judge by the score and its threshold, the head, and the clusters of the rejected."""
        if snapshot.novelty is None:
            raise ValueError("rejection needs an objective with a novelty score")
        return Membership.by_rejection(
            snapshot.z,
            self(snapshot),
            snapshot.novelty,
            n_seen=snapshot.n_seen,
            n_groups=snapshot.n_classes,
            threshold=self.threshold_of(snapshot),
        )

    def threshold_of(self, snapshot: Snapshot) -> float:
        """Return the score above which nodes are rejected."""
        if snapshot.novelty is None:
            raise ValueError("a threshold needs an objective with a novelty score")
        scores = snapshot.novelty.astype(np.float64)
        val, test = scores[snapshot.val], scores[snapshot.test]
        found = RULES[self.threshold](val, test, self, snapshot.seed)
        return float(np.concatenate([val, test]).mean()) if found is None else found


def _mixture(val: Scores, test: Scores, _rule: RejectThenCluster, seed: int) -> float | None:
    """Fit the scores at unit scale; between the two means there is one border at most."""
    scores = np.concatenate([val, test])
    mean, std = scores.mean(), scores.std()
    if len(np.unique(scores)) < 3:
        return None
    model: Any = GaussianMixture(2, random_state=seed % 2**32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(((scores - mean) / std)[:, None])
    low, high = model.means_[:, 0].argsort()
    weight, centre, variance = model.weights_, model.means_[:, 0], model.covariances_[:, 0, 0]

    def log_odds(x: float) -> float:
        """Say by how much the upper component is likelier at x."""
        log = np.log(weight) - 0.5 * np.log(variance) - 0.5 * (x - centre) ** 2 / variance
        return float(log[high] - log[low])

    start, stop = float(centre[low]), float(centre[high])
    if not log_odds(start) < 0.0 < log_odds(stop):  # one lies within the other
        return None
    return float(mean + std * brentq(log_odds, start, stop))


def _mean(_val: Scores, _test: Scores, _rule: RejectThenCluster, _seed: int) -> None:
    """Leave it at the mean."""


def _quantile(val: Scores, _test: Scores, rule: RejectThenCluster, _seed: int) -> float | None:
    return float(np.quantile(val, rule.kept)) if len(val) else None


def _midpoint(val: Scores, test: Scores, _rule: RejectThenCluster, _seed: int) -> float | None:
    if not len(val):
        return None
    newest = np.sort(test)[-max(1, round(NEWEST * len(test))) :]
    return float(val.mean() + newest.mean()) / 2.0


RULES: Mapping[str, Callable[[Scores, Scores, RejectThenCluster, int], float | None]] = {
    "mixture": _mixture,
    "mean": _mean,
    "quantile": _quantile,
    "midpoint": _midpoint,
}
"""Every rule, by the name that settings know it by; None where it has nothing to go by."""
