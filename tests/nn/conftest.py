"""Fixtures that several tests of the encoder share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from openima.graph.blocks import Block
from openima.graph.graph import Graph

Edges: TypeAlias = Sequence[tuple[int, int]]
MakeBlock: TypeAlias = Callable[[Edges, int, int], Block]
MakeGraph: TypeAlias = Callable[..., Graph]


@pytest.fixture(scope="session")
def make_block() -> MakeBlock:
    """Return a maker of blocks from (source, target) pairs, kept in their order at each target.

    Target `i` is itself the i-th source from the end, so that nothing hangs on equal numbers.
    """

    def make(edges: Edges, n_targets: int, n_sources: int) -> Block:
        pairs = np.asarray(edges, dtype=np.int32).reshape(-1, 2)
        pairs = pairs[np.argsort(pairs[:, 1], kind="stable")]
        counts = np.bincount(pairs[:, 1], minlength=n_targets)
        indptr = np.concatenate([[0], counts.cumsum()]).astype(np.int32)
        self_rows = torch.arange(n_sources - 1, n_sources - 1 - n_targets, -1, dtype=torch.int32)
        sources = torch.from_numpy(pairs[:, 0].copy())
        return Block(torch.from_numpy(indptr), sources, self_rows, n_sources)

    return make


@pytest.fixture(scope="session")
def make_graph() -> MakeGraph:
    """Return a maker of random directed graphs of 40 nodes, the last four of them isolated."""

    def make(density: float, *, n_features: int = 24, store_sparse: bool = True) -> Graph:
        rng = np.random.default_rng(11)
        sources, targets = rng.integers(0, 36, (2, 150))
        features = sp.csr_array(sp.random_array((40, n_features), density=density, rng=rng))
        return Graph.from_edges(
            sources, targets, features if store_sparse else features.toarray(), directed=True
        )

    return make


@pytest.fixture(scope="session")
def most_bytes() -> Callable[[Callable[[], object]], int]:
    """Return a meter: the bytes of the largest tensor that any operation of a step returned."""
    base: Any = TorchDispatchMode

    def measure(step: Callable[[], object]) -> int:
        sizes = [0]

        def note(
            _: object, func: Any, _types: object, args: Any = (), kwargs: Any = None
        ) -> object:
            out = func(*args, **(kwargs or {}))
            for x in out if isinstance(out, tuple | list) else (out,):
                if isinstance(x, Tensor):
                    stored = x.values() if x.layout is torch.sparse_csr else x
                    sizes.append(stored.untyped_storage().nbytes())
            return out

        mode = type("Meter", (base,), {"__torch_dispatch__": note})
        with mode():
            step()
        return max(sizes)

    return measure
