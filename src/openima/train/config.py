"""How to train: the settings that every method shares."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from openima.errors import InputError
from openima.predict.clustering import Clustering, KMeansClustering
from openima.train.batching import Batching, ShuffledBatches


@dataclass(frozen=True)
class TrainConfig:
    """Settings of a training run; the defaults are the paper's for two-stage methods.

    `batch_size` None takes all nodes in one step; `batching` says which nodes come together.
    `fan_outs` says how many neighbours a step looks at in each layer, first layer first; None
    takes all of them. `look_fan_out` does so for the look at all nodes after an epoch, the same
    ones at every look. `clustering` groups the embeddings at the end of every epoch. `precision`
    "bfloat16" lets dense products round their factors to bfloat16 where the hardware gains.
    """

    epochs: int = 20
    batch_size: int | None = 2048
    batching: Batching = field(default_factory=ShuffledBatches)
    learning_rate: float = 1e-3
    weight_decay: float = 1e-4
    seed: int = 0
    fan_outs: tuple[int | None, int | None] = (None, None)
    look_fan_out: int | None = None
    clustering: Clustering = field(default_factory=KMeansClustering)
    device: str = "auto"
    precision: Literal["float32", "bfloat16"] = "float32"

    @property
    def samples(self) -> bool:
        """Whether steps look at samples of neighbours, as they do on large graphs."""
        return any(fan_out is not None for fan_out in self.fan_outs)

    def __post_init__(self) -> None:
        """Refuse settings with which nothing can be learned."""
        for name in ("epochs", "batch_size", "look_fan_out"):
            number = getattr(self, name)
            if number is not None and number < 1:
                raise InputError(f"{name} must be at least 1", got=str(number))
        if not 0 < self.learning_rate < math.inf:
            raise InputError("learning_rate must be positive", got=str(self.learning_rate))
        if not 0 <= self.weight_decay < math.inf:
            raise InputError("weight_decay cannot be negative", got=str(self.weight_decay))
        if not 0 <= self.seed < 1 << 63:
            raise InputError("seed is out of range", expected="0 to 2**63 - 1", got=str(self.seed))
        if len(self.fan_outs) != 2 or any(k is not None and k < 1 for k in self.fan_outs):
            raise InputError(
                "fan_outs says how many neighbours to take in each of the two layers",
                expected="two numbers from 1, None for all",
                got=str(self.fan_outs),
            )
        if self.precision not in ("float32", "bfloat16"):
            raise InputError(
                "unknown precision", expected="float32 or bfloat16", got=str(self.precision)
            )
