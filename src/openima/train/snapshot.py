"""The state of all nodes at the end of an epoch, computed once for all that want to see it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from openima.predict.clustering import Clustering, Clusters


def _no_nodes() -> NDArray[np.int64]:
    return np.empty(0, dtype=np.int64)


@dataclass(eq=False)
class Snapshot:
    """Embeddings `z` (N, d) and, where the method has a head, `logits` (N, C), without dropout.

    `novelty` (N,) is the score of a method that detects new classes, higher for newer. `val` and
    `test` are the nodes whose labels training does not see; the former are of seen classes.
    """

    epoch: int
    z: NDArray[np.float32]
    logits: NDArray[np.float32] | None
    n_classes: int
    clustering: Clustering
    seed: int
    novelty: NDArray[np.float32] | None = None
    n_seen: int = 0
    val: NDArray[np.int64] = field(default_factory=_no_nodes)
    test: NDArray[np.int64] = field(default_factory=_no_nodes)

    @cached_property
    def clusters(self) -> Clusters:
        """All nodes grouped into as many clusters as there are classes."""
        return self.clustering(self.z, self.n_classes, self.seed)
