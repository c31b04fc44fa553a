from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from openima.graph.blocks import Block, Neighbourhoods
from openima.graph.graph import Graph
from openima.nn import mapped_sums as module
from openima.nn.attention import attend
from openima.nn.mapped_sums import gradients, mapped_sums, to_pieces

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


def by_matrices(pieces: Tensor, maps: Tensor, weights: Tensor, block: Block) -> Tensor:
    """Sum with one dense matrix a head, in float64."""
    rows = pieces.double().transpose(0, 1).reshape(block.n_sources, -1)
    out = []
    for of_head, weight in zip(maps.double(), weights.double(), strict=True):
        matrix = torch.zeros(block.n_targets, block.n_sources, dtype=torch.float64)
        at = block.targets.long(), block.sources.long()
        out.append(matrix.index_put(at, weight, accumulate=True) @ rows @ of_head)
    return torch.stack(out)


@pytest.mark.parametrize("part", [None, 1, 7, 30])
def test_sums_and_gradients_are_those_of_dense_matrices(
    block: Block, part: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if part is not None:
        monkeypatch.setattr(module, "LARGE", 1)
        monkeypatch.setattr(module, "PART", part)
    parts = drawn(block)
    pieces, maps, weights = (x.clone().requires_grad_() for x in parts)
    expected = by_matrices(pieces, maps, weights, block)
    torch.testing.assert_close(mapped_sums(*parts, block), expected.detach().float())

    grad = torch.randn(expected.shape, generator=torch.Generator().manual_seed(1))
    torch.autograd.backward([expected], [grad.double()])
    found = gradients(grad, *parts, block, to_sums=True)
    assert found.sums is not None
    by_source = parts[2].t().index_select(0, block.by_source.entries)
    d_pieces = to_pieces(found.sums, by_source.contiguous(), block.by_source)
    torch.testing.assert_close(d_pieces, pieces.grad)
    torch.testing.assert_close(found.maps, maps.grad)
    torch.testing.assert_close(found.weights, weights.grad)
    assert gradients(grad, *parts, block, to_sums=False).sums is None


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
