"""Embeddings of all nodes without dropout, layer by layer, in chunks of targets."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from openima.graph.blocks import Neighbourhoods
from openima.nn.encoder import Embedding, Encoder, Hidden
from openima.nn.rows import FeatureStore


@torch.no_grad()
def embed_all(
    encoder: Encoder, store: FeatureStore, near: Neighbourhoods, chunk_size: int = 1 << 16
) -> Embedding:
    """Embed every node with all of its neighbours, (N, d) each of `g` and `z`.

    Each layer is finished before the next begins, so no node is computed twice; beyond the
    output of the first layer, memory is bounded by the chunk and what it reaches.
    """
    chunks = np.split(np.arange(near.n_nodes), range(chunk_size, near.n_nodes, chunk_size))
    outputs = []
    for chunk in chunks:
        reach = near.reach(chunk, (None,)).to(store.device)
        outputs.append(encoder.first(store.rows(reach.inputs), reach.blocks[0], None))
    hidden = tuple(_joined(parts, -2) for parts in zip(*outputs, strict=True))
    parts = []
    for chunk in chunks:
        reach = near.reach(chunk, (None,)).to(store.device)
        rows = hidden if len(reach.inputs) == near.n_nodes else _chosen(hidden, reach.inputs)
        parts.append(encoder.second(rows, reach.blocks[0], None))
    extra = [part.extra for part in parts if part.extra is not None]
    return Embedding(
        _joined([part.g for part in parts]),
        _joined([part.z for part in parts]),
        _joined(extra) if extra else None,
    )


def _chosen(hidden: Hidden, nodes: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Hidden:
    index = torch.from_numpy(nodes).to(hidden[0].device)
    return tuple(tensor.index_select(-2, index) for tensor in hidden)


def _joined(parts: tuple[Tensor, ...] | list[Tensor], dim: int = 0) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(tuple(parts), dim)
