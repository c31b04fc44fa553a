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
    chunks = np.split(np.arange(near.n_nodes), range(chunk_size, near.n_nodes, chunk_size))
    outputs = []
    for chunk in chunks:
        reach = near.reach(chunk, (None,)).to(store.device)
        out = first(store.rows(reach.inputs), reach.blocks[0], None)
        outputs.append(encoder.hidden_rows(out, None).pieces)
    hidden = outputs[0] if len(outputs) == 1 else torch.cat(outputs, dim=1)
    parts = []
    for chunk in chunks:
        reach = near.reach(chunk, (None,)).to(store.device)
        everything = len(reach.inputs) == near.n_nodes
        index = torch.from_numpy(reach.inputs).to(store.device)
        rows = DenseRows(hidden if everything else hidden.index_select(1, index))
        parts.append(encoder.join_heads(second(rows, reach.blocks[0], None)))
    return Embedding(torch.cat([part.g for part in parts]), torch.cat([part.z for part in parts]))
