"""The layer and the encoder equal GATConv of PyTorch Geometric, in output and gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from openima.graph.blocks import Block, Neighbourhoods
from openima.graph.graph import Graph
from openima.nn.gat import EncoderConfig, GATEncoder, GATLayer
from openima.nn.rows import DenseRows, FeatureStore

Edges = Sequence[tuple[int, int]]
MakeBlock = Callable[[Edges, int, int], Block]
MakeGraph = Callable[..., Graph]

CPU = torch.device("cpu")
SMALL = EncoderConfig(hidden=6, heads=3)
RANDOM = [(int(s), int(t)) for s, t in np.random.default_rng(0).integers(0, 20, (80, 2))]
CASES: dict[str, tuple[Edges, int, int]] = {  # edges, targets, sources
    "a random graph": (RANDOM, 20, 20),
    "fewer targets than sources": ([(s, t % 5) for s, t in RANDOM], 7, 20),
    "no edges": ([], 3, 4),
    "one edge": ([(2, 1)], 3, 4),
    "loops and parallel edges": ([(0, 0), (0, 0), (1, 0), (1, 1), (2, 1), (2, 1), (3, 1)], 4, 4),
    "ten thousand edges into a node": ([(s, 1) for s in range(10_000)] + [(3, 0)], 3, 10_000),
}


@pytest.fixture
def gat_conv() -> Any:
    """Return the layer of PyTorch Geometric that ours has to equal."""
    return pytest.importorskip("torch_geometric.nn").GATConv


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def twin_of(layer: GATLayer, gat_conv: Any) -> Any:
    """Make a GATConv with the weights of `layer`."""
    heads, n_inputs, width = layer.weight.shape
    twin = gat_conv(n_inputs, width, heads, add_self_loops=False).to(layer.weight.dtype)
    with torch.no_grad():
        twin.lin.weight.copy_(layer.weight.transpose(1, 2).reshape(heads * width, n_inputs))
        twin.att_src.copy_(layer.attention[0][None])
        twin.att_dst.copy_(layer.attention[1][None])
        twin.bias.copy_(layer.bias.flatten())
    return twin


def gradients_of(layer: GATLayer, twin: Any) -> list[tuple[str, Tensor, Tensor]]:
    """Pair the gradients of a layer's parameters with those of its twin, in the layer's shapes."""
    heads, n_inputs, width = layer.weight.shape
    weight = twin.lin.weight.grad.view(heads, width, n_inputs).transpose(1, 2)
    attention = torch.cat([twin.att_src.grad, twin.att_dst.grad])
    bias = twin.bias.grad.view(heads, 1, width)
    ours = (layer.weight.grad, layer.attention.grad, layer.bias.grad)
    pairs = []
    for name, own, other in zip(
        ("weight", "attention", "bias"), ours, (weight, attention, bias), strict=True
    ):
        assert own is not None
        pairs.append((name, own, other))
    return pairs


def assert_close(ours: Tensor, theirs: Tensor, tolerance: float, what: str) -> None:
    """Compare to within `tolerance` times the largest value, taken as 0.1 where all are smaller."""
    scale = max(0.1, float(theirs.detach().abs().max()))
    difference = float((ours - theirs).detach().abs().max())
    assert difference <= tolerance * scale, f"{what}: off by {difference:.2e} of {scale:.2e}"


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-12)])
@pytest.mark.parametrize("sum_first", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_a_layer_equals_that_of_pytorch_geometric(
    make_block: MakeBlock,
    gat_conv: Any,
    monkeypatch: pytest.MonkeyPatch,
    case: str,
    sum_first: bool,
    dtype: torch.dtype,
    tolerance: float,
) -> None:
    monkeypatch.setattr(GATLayer, "_sum_first_is_cheaper", lambda *_: sum_first)
    block = make_block(*CASES[case])
    generator = seeded(0)
    layer = GATLayer(5, SMALL, generator)
    torch.nn.init.normal_(layer.bias, generator=generator)
    layer = layer.to(dtype)
    twin = twin_of(layer, gat_conv)
    x = torch.randn(block.n_sources, 5, generator=generator).to(dtype)
    own, other = x.clone().requires_grad_(), x.clone().requires_grad_()

    out = layer(DenseRows(own[None]), block, None)  # (H, n, D)
    edges = torch.stack([block.sources, block.targets]).long()
    theirs = twin((other, other[block.self_rows]), edges)
    theirs = theirs.view(block.n_targets, SMALL.heads, SMALL.hidden).transpose(0, 1)
    assert_close(out, theirs, tolerance, "output")

    upstream = torch.randn(out.shape, generator=generator).to(dtype)
    torch.autograd.backward([out, theirs], [upstream, upstream])
    assert own.grad is not None
    assert other.grad is not None
    assert_close(own.grad, other.grad, tolerance, "inputs")
    for name, gradient, expected in gradients_of(layer, twin):
        assert_close(gradient, expected, tolerance, name)


@pytest.mark.parametrize("targets", [None, [17, 3, 38, 0]])
def test_the_encoder_equals_two_layers_of_pytorch_geometric(
    make_graph: MakeGraph, gat_conv: Any, targets: list[int] | None
) -> None:
    graph = make_graph(0.5, store_sparse=False)
    encoder = GATEncoder(24, SMALL, seeded(1))
    layers = [layer for layer in encoder.layers if isinstance(layer, GATLayer)]
    first, second = (twin_of(layer, gat_conv) for layer in layers)
    near = Neighbourhoods(graph)
    reach = near.reach(np.array(targets), (None, None)) if targets else near.everything(2)
    g, z, _ = encoder(FeatureStore(graph, CPU).rows(reach.inputs), reach)

    nodes = np.arange(40)
    receivers = np.repeat(nodes, graph.in_degrees)
    edges = np.stack([np.r_[graph.sources, nodes], np.r_[receivers, nodes]])
    index = torch.from_numpy(edges).long()
    features = torch.from_numpy(np.asarray(graph.features, dtype=np.float32))
    joined = F.elu(second(F.elu(first(features, index)), index))
    expected = joined.view(40, SMALL.heads, SMALL.hidden).mean(1)[targets or slice(None)]
    assert_close(g, expected, 1e-5, "g")
    assert_close(z, expected / expected.norm(dim=1, keepdim=True), 1e-5, "z")

    upstream = torch.randn(g.shape, generator=seeded(2))
    torch.autograd.backward([g, expected], [upstream, upstream])
    for layer, twin in zip(layers, (first, second), strict=True):
        for name, gradient, other in gradients_of(layer, twin):
            assert_close(gradient, other, 1e-5, name)
