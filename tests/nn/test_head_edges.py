from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from openima.graph.blocks import Block, Neighbourhoods
from openima.graph.graph import Graph
from openima.nn import csr
from openima.nn.csr import Csr
from openima.nn.head_edges import HeadEdges

MakeGraph = Callable[..., Graph]
HEADS = 3


@pytest.fixture(params=["lists", "all edges"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Leave dropped edges out as on a CPU, then keep them as on a GPU."""
    monkeypatch.setattr(csr, "PIECEWISE", ("cpu",) if request.param == "all edges" else ())
    return str(request.param)


@pytest.fixture
def block(make_graph: MakeGraph) -> Block:
    near = Neighbourhoods(make_graph(0.5))
    return near.reach(np.arange(3, 33), (6,), np.random.default_rng(0)).blocks[0]


def drawn(block: Block, p: float) -> tuple[HeadEdges, Tensor]:
    """Draw weights and what dropout keeps; also return the weights after dropout, (E, H)."""
    generator = torch.Generator().manual_seed(0)
    alpha = torch.rand(block.n_edges, HEADS, generator=generator)
    mask = torch.rand(block.n_edges, HEADS, generator=generator) >= p
    if p == 0.0:
        return HeadEdges(block, alpha, None, 1.0), alpha
    return HeadEdges(block, alpha, mask, 2.0), alpha * mask * 2.0


def dense(matrix: Csr, n_columns: int) -> Tensor:
    out = torch.zeros(len(matrix.indptr) - 1, n_columns)
    rows = torch.arange(len(out)).repeat_interleave(matrix.indptr.diff())
    return out.index_put((rows, matrix.columns.long()), matrix.values, accumulate=True)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("p", [0.0, 0.5, 1.0])
def test_edges_carry_the_weights_that_dropout_left(block: Block, p: float) -> None:
    edges, weights = drawn(block, p)
    n_targets, n_sources = block.n_targets, block.n_sources
    at = block.targets.long(), block.sources.long()
    expected = [
        torch.zeros(n_targets, n_sources).index_put(at, weights[:, h], accumulate=True)
        for h in range(HEADS)
    ]
    for head, matrix in zip(edges.by_target(), expected, strict=True):
        torch.testing.assert_close(dense(head, n_sources), matrix)
    for head, matrix in zip(edges.by_source(), expected, strict=True):
        torch.testing.assert_close(dense(head, n_targets), matrix.t())
    joined = dense(edges.by_source_joined(), HEADS * n_targets)
    torch.testing.assert_close(joined, torch.cat(expected).t())


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("p", [0.0, 0.5])
def test_a_gradient_reaches_the_weights_that_stayed(block: Block, p: float) -> None:
    edges, weights = drawn(block, p)
    heads = edges.by_target()
    # The gradient of sum_e c_e w_e is c_e where the edge stayed, scaled as it was.
    d_alpha = edges.to_alpha([torch.ones_like(head.values) for head in heads])
    torch.testing.assert_close(d_alpha, weights / edges.alpha)


def test_dropped_edges_are_in_no_list(block: Block) -> None:
    edges, weights = drawn(block, 0.5)
    kept = (weights > 0).sum(0).tolist()
    assert [len(head.values) for head in edges.by_target()] == kept
    assert [len(head.values) for head in edges.by_source()] == kept
    assert len(edges.by_source_joined().values) == sum(kept)
