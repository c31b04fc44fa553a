from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor

from openima.graph.blocks import Block, Neighbourhoods
from openima.graph.graph import Graph
from openima.nn import mapped_sums as module
from openima.nn.attention import attend
from openima.nn.csr import Csr
from openima.nn.head_edges import HeadEdges
from openima.nn.mapped_sums import gradients, mapped_sums

HEADS, PIECES, WIDTH, D = 3, 2, 4, 5
MakeGraph = Callable[..., Graph]


@pytest.fixture
def block(make_graph: MakeGraph) -> Block:
    near = Neighbourhoods(make_graph(0.5))
    return near.reach(np.arange(3, 33), (6,), np.random.default_rng(0)).blocks[0]


def drawn(block: Block) -> tuple[Tensor, Tensor, Tensor]:
    """Pieces, maps and weights."""
    generator = torch.Generator().manual_seed(0)
    shapes = (PIECES, block.n_sources, WIDTH), (HEADS, PIECES * WIDTH, D), (HEADS, block.n_edges)
    pieces, maps, weights = (torch.randn(shape, generator=generator) for shape in shapes)
    return pieces, maps, weights


def dense(head: Csr, n_columns: int) -> Tensor:
    """Lay a sparse matrix out densely; parallel edges add up."""
    matrix = torch.zeros(len(head.indptr) - 1, n_columns, dtype=torch.float64)
    rows = torch.arange(len(matrix)).repeat_interleave(head.indptr.diff())
    at = rows, head.columns.long()
    return matrix.index_put(at, head.values.double(), accumulate=True)


@pytest.mark.parametrize("part", [None, 1, 7, 30])
def test_sums_and_gradients_are_those_of_dense_matrices(
    block: Block, part: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if part is not None:
        monkeypatch.setattr(module, "LARGE", 1)
        monkeypatch.setattr(module, "PART", part)
    given, given_maps, alpha = drawn(block)
    edges = HeadEdges(block, alpha.t().contiguous(), None, 1.0)
    heads, back = edges.by_target(), edges.by_source_joined()
    pieces, maps = (x.double().requires_grad_() for x in (given, given_maps))
    matrices = [dense(head, block.n_sources).requires_grad_() for head in heads]
    rows = pieces.transpose(0, 1).reshape(block.n_sources, -1)
    pairs = zip(matrices, maps, strict=True)
    expected = torch.stack([matrix @ rows @ of_head for matrix, of_head in pairs])
    found = mapped_sums(given, given_maps, heads)
    torch.testing.assert_close(found, expected.detach().float(), rtol=1e-5, atol=1e-5)

    grad = torch.randn(expected.shape, generator=torch.Generator().manual_seed(1))
    torch.autograd.backward([expected], [grad.double()])
    sent = gradients(grad, given, given_maps, heads, back)
    close = partial(torch.testing.assert_close, rtol=1e-4, atol=1e-4)
    assert pieces.grad is not None
    assert maps.grad is not None
    assert sent.pieces is not None
    close(sent.pieces, pieces.grad.float())
    close(sent.maps, maps.grad.float())
    for weights, matrix in zip(sent.weights, matrices, strict=True):
        assert matrix.grad is not None
        at_edges = matrix.grad[block.targets.long(), block.sources.long()]
        close(weights, at_edges.float())
    assert gradients(grad, given, given_maps, heads, None).pieces is None


def test_parts_of_a_large_block_change_no_byte_of_the_sums(
    block: Block, monkeypatch: pytest.MonkeyPatch
) -> None:
    pieces, maps, weights = drawn(block)
    scores = weights[:, : block.n_sources].t().contiguous(), weights[:, : block.n_targets].t()

    def sums() -> bytes:
        found = attend(pieces, scores[0], scores[1].contiguous(), block, maps=maps)
        return found.numpy().tobytes()

    whole = sums()
    monkeypatch.setattr(module, "LARGE", 1)
    monkeypatch.setattr(module, "PART", 8)
    assert sums() == whole
