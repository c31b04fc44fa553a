"""Embeddings of all nodes of a large graph, the second layer a few heads at a time.

The output of the first layer is the largest thing there could be, eight times as wide as an
embedding. It is never there for all nodes: a chunk of it is made, mapped to what the second layer
sums in a few of its heads, and forgotten. Where not all heads fit into memory at once, the first
layer is gone through once more for the next ones, which is cheaper than to write it to a disk.
"""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from openima.graph.blocks import Neighbourhoods
from openima.nn.attention import attend
from openima.nn.encoder import Embedding
from openima.nn.gat import GATEncoder, GATLayer
from openima.nn.rows import DenseRows, FeatureStore, Rows

HELD = 3 << 30
"""Bytes that the mapped rows of some heads may take, for all nodes together."""

CHUNK = 1 << 13
"""Nodes that are computed in one go: what they reach is partly in the cache."""


@torch.no_grad()
def embed_by_head(
    encoder: GATEncoder,
    store: FeatureStore,
    near: Neighbourhoods,
    chunk_size: int = CHUNK,
    held: int = HELD,
) -> Embedding:
    """Embed every node with all of its neighbours, (N, d) each of `g` and `z`.

    Beyond the mapped rows of as many heads as `held` bytes allow (one at least) and the result,
    memory is bounded by a chunk of `chunk_size` nodes and what it reaches.
    """
    first, second = cast("tuple[GATLayer, GATLayer]", tuple(encoder.layers))
    n_heads, _, width = second.weight.shape
    n, slope = near.n_nodes, encoder.config.negative_slope
    at_once = max(1, min(n_heads, held // (4 * n * width)))
    whole = _Whole.of(store, first)
    chunks = [slice(start, min(start + chunk_size, n)) for start in range(0, n, chunk_size)]
    scores = torch.empty(2, n, n_heads, device=store.device)
    g = torch.zeros(n, width, device=store.device)
    for start in range(0, n_heads, at_once):
        heads = slice(start, start + at_once)
        values = torch.empty(len(second.weight[heads]), n, width, device=store.device)
        for chunk in chunks:
            hidden = DenseRows(F.elu_(_first_layer(first, store, near, chunk, whole)))
            values[:, chunk] = hidden.project(second.weight[heads])
            if start == 0:
                scores[:, chunk] = second.scored(hidden)[0]
        of_source, of_target = scores[:, :, heads]
        for chunk in chunks:
            block = near.onto(chunk).to(store.device)
            sums = attend(values, of_source, of_target[chunk], block, slope=slope)
            g[chunk] += F.elu_(sums.add_(second.bias[heads])).sum(0)
        del values
    g /= n_heads
    return Embedding(g, F.normalize(g, dim=1))


class _Whole(NamedTuple):
    """The features of all nodes where they lie, and their scores (2, N, H)."""

    rows: Rows
    scores: Tensor

    @classmethod
    def of(cls, store: FeatureStore, layer: GATLayer) -> _Whole | None:
        return None if store.whole is None else cls(store.whole, layer.scored(store.whole)[0])


def _first_layer(
    layer: GATLayer,
    store: FeatureStore,
    near: Neighbourhoods,
    chunk: slice,
    whole: _Whole | None,
) -> Tensor:
    """Apply the first layer to a chunk, (H, nodes of it, D), without ELU."""
    if whole is not None:
        rows, scores, block = whole.rows, whole.scores, near.onto(chunk)
    else:
        reach = near.reach(np.arange(chunk.start, chunk.stop), (None,))
        rows, scores, block = store.rows(reach.inputs), None, reach.blocks[0]
    out: Tensor = layer(rows, block.to(store.device), None, scores)
    return out
