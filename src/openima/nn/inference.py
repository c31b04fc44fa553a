"""Embeddings of all nodes without dropout, layer by layer, in chunks of targets."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from openima.graph.blocks import Neighbourhoods
from openima.nn.by_head import CHUNK, embed_by_head
from openima.nn.encoder import Embedding, Encoder, Hidden
from openima.nn.gat import GATEncoder
from openima.nn.rows import FeatureStore

ALMOST_ONCE = 1.25
"""Chunks whose neighbourhoods add up to no more than so many times all nodes are apart."""


@torch.no_grad()
def embed_all(
    encoder: Encoder, store: FeatureStore, near: Neighbourhoods, chunk_size: int = 1 << 16
) -> Embedding:
    """Embed every node with all of its neighbours, (N, d) each of `g` and `z`.

    Each layer is finished before the next begins, so no node is computed twice; memory is bounded
    by the chunk and what it reaches, beyond the output of the first layer, the largest by far:

    - where chunks hardly reach beyond themselves, as isolated nodes do, both layers of a chunk
      are computed at once, and that output is never there for all nodes;
    - else, of a graph of more than a chunk, `embed_by_head` holds it a few heads at a time;
    - a small graph's output, and that of an encoder with layers of its own, is held whole.
    """
    chunks = np.split(np.arange(near.n_nodes), range(chunk_size, near.n_nodes, chunk_size))
    apart = _are_apart(near, chunks)
    if not apart and len(chunks) > 1 and isinstance(encoder, GATEncoder):
        return embed_by_head(encoder, store, near, min(chunk_size, CHUNK))
    hidden = () if apart else _hidden_of_all(encoder, store, near, chunks)
    parts = []
    for chunk in chunks:
        if hidden:
            reach = near.reach(chunk, (None,)).to(store.device)
            rows = hidden if len(reach.inputs) == near.n_nodes else _chosen(hidden, reach.inputs)
        else:
            reach = near.reach(chunk, (None, None)).to(store.device)
            rows = encoder.first(store.rows(reach.inputs), reach.blocks[0], None)
        parts.append(encoder.second(rows, reach.blocks[-1], None))
    extra = [part.extra for part in parts if part.extra is not None]
    return Embedding(
        _joined([part.g for part in parts]),
        _joined([part.z for part in parts]),
        _joined(extra) if extra else None,
    )


def _are_apart(near: Neighbourhoods, chunks: list[NDArray[np.int64]]) -> bool:
    """Tell whether chunks hardly reach beyond themselves; a few show where they do."""
    for hops in (1, 2):
        reached = 0
        for chunk in chunks:
            reached += len(near.reach(chunk, (None,) * hops).inputs)
            if reached > ALMOST_ONCE * near.n_nodes:
                return False
    return True


def _hidden_of_all(
    encoder: Encoder,
    store: FeatureStore,
    near: Neighbourhoods,
    chunks: list[NDArray[np.int64]],
) -> Hidden:
    """Apply the first layer to all nodes; what it says of a chunk is written where it belongs."""
    hidden: Hidden = ()
    for chunk in chunks:
        reach = near.reach(chunk, (None,)).to(store.device)
        parts = encoder.first(store.rows(reach.inputs), reach.blocks[0], None)
        if not hidden:
            shapes = ((*part.shape[:-2], near.n_nodes, part.shape[-1]) for part in parts)
            hidden = tuple(part.new_empty(s) for part, s in zip(parts, shapes, strict=True))
        for whole, part in zip(hidden, parts, strict=True):
            whole[..., chunk[0] : chunk[-1] + 1, :] = part
    return hidden


def _chosen(hidden: Hidden, nodes: NDArray[np.int64]) -> Hidden:
    index = torch.from_numpy(nodes).to(hidden[0].device)
    return tuple(tensor.index_select(-2, index) for tensor in hidden)


def _joined(parts: tuple[Tensor, ...] | list[Tensor], dim: int = 0) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(tuple(parts), dim)
