"""Features of a table of nodes that lie in a .npy file beside it, mapped and not read."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from openima.errors import InputError
from openima.graph.graph import DenseFeatures
from openima.graph.readers.common import damaged, existing_file


def mapped_features(path: Path, n_nodes: int) -> DenseFeatures:
    """Map a matrix of float32 or float16 numbers with a row for each node, in their order."""
    path = existing_file(path)
    try:
        matrix = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise damaged(path, ".npy", error) from error
    if not isinstance(matrix, np.ndarray) or matrix.ndim != 2 or len(matrix) != n_nodes:
        raise InputError(
            "the file of features does not fit the table of nodes",
            where=str(path),
            expected=f"one matrix of {n_nodes:,} rows, in the order of the table",
            got=f"shape {matrix.shape}" if isinstance(matrix, np.ndarray) else "several arrays",
            remedy="write the features of the nodes with np.save, a row each",
        )
    if matrix.dtype not in (np.float32, np.float16):
        raise InputError(
            "the features are of a type that cannot be used where it lies",
            where=str(path),
            expected="float32 or float16",
            got=str(matrix.dtype),
            remedy="convert them: np.save(path, features.astype(np.float32))",
        )
    return matrix
