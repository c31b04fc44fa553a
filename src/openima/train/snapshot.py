"""The state of all nodes at the end of an epoch, computed once for all that want to see it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from openima.predict.clustering import Clustering, Clusters


@dataclass(eq=False)
class Snapshot:
    """Embeddings `z` (N, d) and, where the method has a head, `logits` (N, C), without dropout."""

    epoch: int
    z: NDArray[np.float32]
    logits: NDArray[np.float32] | None
    n_classes: int
    clustering: Clustering
    seed: int

    @cached_property
    def clusters(self) -> Clusters:
        """All nodes grouped into as many clusters as there are classes."""
        return self.clustering(self.z, self.n_classes, self.seed)
