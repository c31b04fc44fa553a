"""From embeddings to classes."""

from openima.predict.align import best_matching, count_matrix

__all__ = ["best_matching", "count_matrix"]
