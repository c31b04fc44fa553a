from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from openima.graph.blocks import Block, Neighbourhoods
from openima.graph.graph import Graph
from openima.nn.edge_products import edge_products

MakeGraph = Callable[..., Graph]


def assert_products(block: Block) -> None:
    generator = torch.Generator().manual_seed(0)
    targets = torch.randn(block.n_targets, 4, generator=generator)
    sources = torch.randn(block.n_sources, 4, generator=generator)
    ends = zip(block.targets.tolist(), block.sources.tolist(), strict=True)
    expected = torch.tensor([float(targets[t] @ sources[s]) for t, s in ends])
    found = edge_products(targets, sources, block.indptr, block.sources)
    torch.testing.assert_close(found, expected)


def test_each_edge_has_the_product_of_its_ends(make_graph: MakeGraph) -> None:
    near = Neighbourhoods(make_graph(0.5))
    assert_products(near.everything(1).blocks[0])
    assert_products(near.reach(np.array([5, 2]), (None,)).blocks[0])


def test_more_edges_than_pairs_and_none_at_all() -> None:
    """A node with a loop of its own has two, from itself to itself."""
    loop = Graph.from_edges([0], [0], np.ones((1, 1)), directed=True)
    assert_products(Neighbourhoods(loop).everything(1).blocks[0])
    empty = torch.zeros(1, dtype=torch.int32)
    assert_products(Block(empty, empty[:0], empty[:0], 3))
