"""The arithmetic of a step of OpenIMA, counted from the sizes of its blocks."""

from __future__ import annotations

import time
from collections import Counter
from itertools import combinations_with_replacement

import numpy as np
import torch
from numpy.typing import NDArray

from openima.graph.blocks import Block
from openima.losses.contrastive import TILE, tiles_are_kept
from openima.nn.gat import GATLayer
from openima.nn.products import matmul
from openima.nn.rows import Rows, SparseRows
from openima.train.trainer import Run


def step_flops(run: Run, nodes: NDArray[np.int64]) -> dict[str, int]:
    """Count the floating-point operations of a step on `nodes` with all three terms of the loss.

    A multiply and an add count as two. Counted are, forward and backward, for both views:

    - `dense`: products of dense matrices, in the order that each layer chooses;
    - `features`: products with sparse features, for the values that dropout keeps;
    - `edges`: weighted sums along the edges that dropout keeps, and the gradients of their weights;
    - `similarities`: tiles of both contrastive terms;
    - `head`: the classifier on the batch, and on the training nodes.

    What is computed twice to save memory counts twice. Element-wise work (softmax, dropout, ELU,
    the optimiser) and the search for the blocks are left out.
    """
    targets = np.union1d(nodes, run.task.train)
    reach = run.near.reach(targets, run.recipe.train.fan_outs, run.rng)
    rows = run.store.rows(reach.inputs)
    products: Counter[str] = Counter()  # multiply-adds
    layers = [layer for layer in run.encoder.layers if isinstance(layer, GATLayer)]
    for layer, block, inputs in zip(layers, reach.blocks, (rows, None), strict=True):
        products["dense"] += 3 * layer.n_vectors * layer.weight.numel()  # folded, for both views
        for _ in range(2):  # views
            products.update(_layer(layer, block, inputs))
    n_rows, n_classes, dim = 2 * len(nodes), run.task.n_classes, run.encoder.dim
    products["similarities"] = _similarities(n_rows, dim) + _similarities(n_rows, n_classes)
    products["head"] = 3 * (n_rows + 2 * len(run.task.train)) * dim * n_classes
    return {name: 2 * count for name, count in products.items()}


def _layer(layer: GATLayer, block: Block, rows: Rows | None) -> dict[str, int]:
    """Count the multiply-adds of a layer; `rows` are its inputs if they are data, None if not.

    Data needs no gradient: its products run twice, forward and for the weights, not three times.
    """
    heads, n_inputs, width = layer.weight.shape
    n_outputs = heads * width
    n_edges = round(block.n_edges * (1.0 - layer.config.attention_dropout))
    if isinstance(rows, SparseRows):
        kept = round(rows.n_stored * (1.0 - layer.config.feature_dropout))
        features = kept * (3 * n_outputs + 2 * 2 * heads)  # mapped rows are made again backward
        return {"features": features, "edges": 3 * n_edges * n_outputs}
    passes = 3 if rows is None else 2
    dense = passes * block.n_sources * n_inputs * 2 * heads
    if layer._sum_first_is_cheaper(block):
        dense += 3 * block.n_targets * n_inputs * n_outputs
        edges = (passes + 1) * n_edges * heads * n_inputs  # sums are made again backward
        return {"dense": dense, "edges": edges}
    dense += passes * block.n_sources * n_inputs * n_outputs
    return {"dense": dense, "edges": 3 * n_edges * n_outputs}


def _similarities(n_rows: int, dim: int) -> int:
    """Count the multiply-adds of a contrastive term.

    Similarities are computed forward and, where they are not kept, again backward; each tile
    sends its gradient to its rows and, off the diagonal, to its columns.
    """
    passes = 1 if tiles_are_kept(torch.empty(n_rows, dim)) else 2
    tile = TILE["cpu"]
    sizes = [min(tile, n_rows - start) for start in range(0, n_rows, tile)]
    tiles = combinations_with_replacement(range(len(sizes)), 2)
    return sum(sizes[i] * sizes[j] * dim * (passes + (1 if i == j else 2)) for i, j in tiles)


def matmul_rate(repeats: int = 20) -> float:
    """Measure the floating-point operations a second of a dense float32 product, best of some."""
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randn(n, 1024, generator=generator) for n in (4096, 1024))
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        matmul(a, b)
        seconds.append(time.perf_counter() - started)
    return 2 * 4096 * 1024 * 1024 / min(seconds)
