"""How good a result is, with and without knowing the true classes."""

from openima.metrics.accuracy import OpenWorldAccuracy, open_world_accuracy, validation_accuracy
from openima.metrics.silhouette import silhouette
from openima.metrics.variance import (
    ClassSpread,
    SeenNovelVariance,
    class_spread,
    imbalance_and_separation,
)

__all__ = [
    "ClassSpread",
    "OpenWorldAccuracy",
    "SeenNovelVariance",
    "class_spread",
    "imbalance_and_separation",
    "open_world_accuracy",
    "silhouette",
    "validation_accuracy",
]
