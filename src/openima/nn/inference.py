"""Embeddings of all nodes without dropout, layer by layer, in chunks of targets."""

from __future__ import annotations

import numpy as np
import torch

from openima.graph.blocks import Neighbourhoods
from openima.nn.gat import Embedding, GATEncoder
from openima.nn.rows import DenseRows, FeatureStore


@torch.no_grad()
def embed_all(
    encoder: GATEncoder, store: FeatureStore, near: Neighbourhoods, chunk_size: int = 1 << 16
) -> Embedding:
    """Embed every node with all of its neighbours, (N, d) each of `g` and `z`.

    Each layer is finished before the next begins, so no node is computed twice; beyond the
    output of the first layer, memory is bounded by the chunk and what it reaches.
    """
    first, second = encoder.layers
    config = encoder.config
    hidden = torch.empty(config.heads, near.n_nodes, config.hidden, device=store.device)
    chunks = np.split(np.arange(near.n_nodes), range(chunk_size, near.n_nodes, chunk_size))
    for chunk in chunks:
        reach = near.reach(chunk, (None,)).to(store.device)
        out = first(store.rows(reach.inputs), reach.blocks[0], None)
        hidden[:, chunk[0] : chunk[-1] + 1] = encoder.hidden_rows(out, None).pieces
    parts = []
    for chunk in chunks:
        reach = near.reach(chunk, (None,)).to(store.device)
        everything = len(reach.inputs) == near.n_nodes
        index = torch.from_numpy(reach.inputs).to(store.device)
        rows = DenseRows(hidden if everything else hidden.index_select(1, index))
        parts.append(encoder.join_heads(second(rows, reach.blocks[0], None)))
    return Embedding(torch.cat([part.g for part in parts]), torch.cat([part.z for part in parts]))
