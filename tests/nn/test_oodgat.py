from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from openima.errors import InputError
from openima.graph.blocks import Block, Neighbourhoods
from openima.graph.graph import Graph
from openima.nn.attention import attend
from openima.nn.inference import embed_all
from openima.nn.oodgat import OODGATEncoder, OODGATEncoderConfig, OODGATLayer
from openima.nn.rows import DenseRows, FeatureStore

Edges = Sequence[tuple[int, int]]
MakeBlock = Callable[[Edges, int, int], Block]
MakeGraph = Callable[..., Graph]

CPU = torch.device("cpu")
SMALL = OODGATEncoderConfig(hidden=6, heads=3)
RANDOM = [(int(s), int(t)) for s, t in np.random.default_rng(0).integers(0, 20, (80, 2))]
LOOPS = [(19 - t, t) for t in range(20)]  # target i is the i-th source from the end


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def by_dense_matrices(
    layer: OODGATLayer, x: Tensor, edges: Edges, block: Block
) -> tuple[Tensor, Tensor]:
    """Write a layer out with a full matrix of attention a head, and autograd for its gradient."""
    counts = torch.zeros(block.n_targets, block.n_sources, dtype=x.dtype)
    for s, t in edges:
        counts[t, s] += 1.0
    own = block.self_rows.long()
    sums, scores = [], []
    for h in range(len(layer.weight)):
        mapped = x @ layer.weight[h]
        score = mapped @ layer.attention[0, h]
        gate = torch.sigmoid(score)
        logits = 1.0 - (gate[None, :] - gate[own][:, None]).abs()
        weights = counts * logits.exp()
        weights = weights / weights.sum(1, keepdim=True)
        sums.append(weights @ mapped + layer.bias[h])
        scores.append(score[own])
    return torch.stack(sums), torch.stack(scores).mean(0)[:, None]


@pytest.mark.parametrize(("n_features", "width"), [(2, 64), (64, 2), (5, 5)])
def test_a_layer_and_its_gradient_equal_dense_matrices(
    make_block: MakeBlock, n_features: int, width: int
) -> None:
    edges = [*RANDOM, *LOOPS, *RANDOM[:10]]
    block = make_block(edges, 20, 20)
    layer = OODGATLayer(n_features, OODGATEncoderConfig(hidden=width, heads=3), seeded(0)).double()
    torch.nn.init.normal_(layer.bias, generator=seeded(1))
    x = torch.randn(20, n_features, generator=seeded(2), dtype=torch.float64, requires_grad=True)
    found = layer(DenseRows(x[None]), block, None)
    expected = by_dense_matrices(layer, x, edges, block)
    inputs = [x, *layer.parameters()]
    upstream = [torch.randn(e.shape, generator=seeded(3), dtype=e.dtype) for e in expected]
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)
    ours = torch.autograd.grad(found, inputs, upstream)
    for gradient, wanted in zip(ours, torch.autograd.grad(expected, inputs, upstream), strict=True):
        torch.testing.assert_close(gradient, wanted, rtol=1e-9, atol=1e-9)


def test_a_node_listens_to_nodes_that_score_as_it_does(make_block: MakeBlock) -> None:
    """One target with score 2, sources with scores 2, 0 and -2, read off one-hot rows."""
    block = make_block([(0, 0), (1, 0), (2, 0)], 1, 4)
    gate = torch.sigmoid(torch.tensor([[2.0], [0.0], [-2.0], [2.0]]))
    one_hot = torch.eye(4)[None]
    found = attend(one_hot, gate, -gate[3:], block, slope=1.0, above=-1.0)[0, 0]
    logits = [1.0 - abs(1 / (1 + math.exp(-a)) - 1 / (1 + math.exp(-2.0))) for a in (2, 0, -2)]
    expected = torch.tensor(logits).softmax(0)
    torch.testing.assert_close(found[:3], expected)
    assert found[0] > found[1] > found[2]


def test_both_layers_score_the_targets(make_graph: MakeGraph) -> None:
    graph = make_graph(0.5)
    near, store = Neighbourhoods(graph), FeatureStore(graph, CPU)
    encoder = OODGATEncoder(24, SMALL, seeded(1))
    assert encoder.dim == 6
    targets = np.array([38, 4, 21])
    reach = near.reach(targets, (None, None))
    rows = store.rows(reach.inputs)
    embedding = encoder(rows, reach)
    hidden, of_first = encoder.layers[0](rows, reach.blocks[0], None)
    elu = torch.nn.functional.elu(hidden)
    sums, of_second = encoder.layers[1](DenseRows(elu), reach.blocks[1], None)
    own = reach.blocks[1].self_rows.long()
    torch.testing.assert_close(embedding.g, sums.mean(0))
    torch.testing.assert_close(embedding.z * embedding.g.norm(dim=1, keepdim=True), embedding.g)
    assert embedding.extra is not None
    torch.testing.assert_close(embedding.extra, torch.cat([of_first[own], of_second], dim=1))


@pytest.mark.parametrize("chunk_size", [7, 1 << 16])
def test_chunks_of_nodes_are_embedded_and_scored_as_all_at_once(
    make_graph: MakeGraph, chunk_size: int
) -> None:
    graph = make_graph(0.05)
    near, store = Neighbourhoods(graph), FeatureStore(graph, CPU)
    encoder = OODGATEncoder(24, SMALL, seeded(1))
    reach = near.everything(2)
    expected = encoder(store.rows(reach.inputs), reach)
    for ours, theirs in zip(embed_all(encoder, store, near, chunk_size), expected, strict=True):
        assert ours is not None
        torch.testing.assert_close(ours, theirs.detach(), rtol=1e-4, atol=1e-5)


def test_normalised_counts_do_not_depend_on_their_total(make_graph: MakeGraph) -> None:
    graph = make_graph(0.5)
    reach = Neighbourhoods(graph).everything(2)
    rows = FeatureStore(graph, CPU).rows(reach.inputs)
    pieces = rows.shared_pieces()
    assert pieces is not None
    factors = torch.rand(40, 1, generator=seeded(0)) + 0.5
    for normalise in (True, False):
        config = OODGATEncoderConfig(hidden=6, heads=3, normalise=normalise)
        encoder = OODGATEncoder(24, config, seeded(1))
        g, scaled = encoder(rows, reach).g, encoder(DenseRows(pieces * factors), reach).g
        assert torch.allclose(g, scaled, rtol=1e-4, atol=1e-6) == normalise


def test_dropout_makes_views_differ_and_all_weights_learn(make_graph: MakeGraph) -> None:
    graph = make_graph(0.5)
    reach = Neighbourhoods(graph).everything(2)
    rows = FeatureStore(graph, CPU).rows(reach.inputs)
    encoder, generator = OODGATEncoder(24, SMALL, seeded(1)), seeded(0)
    first, second = (encoder(rows, reach, generator) for _ in range(2))
    assert not torch.equal(first.g, second.g)
    assert first.extra is not None
    torch.autograd.backward(first.g.square().sum() + first.extra.square().sum())
    for parameter in encoder.parameters():
        assert parameter.grad is not None
        assert parameter.grad.isfinite().all()
        assert parameter.grad.any()


@pytest.mark.parametrize("setting", [{"hidden": 0}, {"attention_dropout": 1.0}])
def test_a_shape_without_a_meaning_is_refused(setting: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(setting))):
        OODGATEncoderConfig(**setting)
