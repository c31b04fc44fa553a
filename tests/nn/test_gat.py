from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import kstest
from torch import Tensor

from openima.errors import InputError
from openima.graph.blocks import Block, Neighbourhoods, Reach
from openima.graph.graph import Graph
from openima.nn.attention import attend
from openima.nn.gat import EncoderConfig, GATEncoder, GATLayer
from openima.nn.rows import DenseRows, FeatureStore

Edges = Sequence[tuple[int, int]]
MakeBlock = Callable[[Edges, int, int], Block]
MakeGraph = Callable[..., Graph]

CPU = torch.device("cpu")
SMALL = EncoderConfig(hidden=6, heads=3)
RANDOM = [(int(s), int(t)) for s, t in np.random.default_rng(0).integers(0, 20, (80, 2))]


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def assert_close(ours: Tensor, theirs: Tensor) -> None:
    """Compare to within 1e-5 of the largest value."""
    scale = float(theirs.detach().abs().max())
    torch.testing.assert_close(ours, theirs, rtol=0.0, atol=1e-5 * scale)


@pytest.mark.parametrize(("n_features", "hidden", "shared"), [(2, 64, True), (64, 2, False)])
def test_a_layer_sums_before_it_maps_where_that_is_less_work(
    make_block: MakeBlock,
    monkeypatch: pytest.MonkeyPatch,
    n_features: int,
    hidden: int,
    shared: bool,
) -> None:
    ways: list[bool] = []

    def noted(*args: Any, **options: Any) -> Tensor:
        ways.append(options["maps"] is not None)
        return attend(*args, **options)

    monkeypatch.setattr("openima.nn.gat.attend", noted)
    block = make_block(RANDOM, 20, 20)
    layer = GATLayer(n_features, EncoderConfig(hidden=hidden, heads=2), seeded(0))
    layer(DenseRows(torch.randn(1, 20, n_features)), block, None)
    assert ways == [shared]


def test_weights_are_drawn_as_in_the_reference() -> None:
    config = EncoderConfig()
    encoder = GATEncoder(300, config, seeded(3))
    heads, width = config.heads, config.hidden
    assert encoder.dim == width
    for layer, n_inputs in zip(encoder.layers, (300, heads * width), strict=True):
        assert isinstance(layer, GATLayer)
        assert layer.weight.shape == (heads, n_inputs, width)
        # Xavier normal, gain sqrt 2: the map as (heads * width, n_inputs), the vectors as
        # (1, heads, width), which counts heads * width in and width out.
        of_map = math.sqrt(2.0) * math.sqrt(2.0 / (n_inputs + heads * width))
        of_attention = math.sqrt(2.0) * math.sqrt(2.0 / (heads * width + width))
        assert kstest(layer.weight.detach().flatten() / of_map, "norm").pvalue > 1e-3
        for vectors in layer.attention.detach():
            assert vectors.shape == (heads, width)
            assert kstest(vectors.flatten() / of_attention, "norm").pvalue > 1e-3
        assert not layer.bias.any()


def test_only_the_given_generator_is_drawn_from(make_graph: MakeGraph) -> None:
    graph = make_graph(0.5)
    near, store = Neighbourhoods(graph), FeatureStore(graph, CPU)
    reach = near.everything(2)
    torch.manual_seed(0)
    before = torch.get_rng_state()
    encoder = GATEncoder(24, SMALL, seeded(4))
    torch.autograd.backward(encoder(store.rows(reach.inputs), reach, seeded(5)).z.sum())
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("density", [0.05, 0.5])
def test_the_seed_decides_every_byte(make_graph: MakeGraph, density: float) -> None:
    graph = make_graph(density)
    near, store = Neighbourhoods(graph), FeatureStore(graph, CPU)

    def bytes_of(weights: int, dropout: int) -> list[bytes]:
        encoder = GATEncoder(24, SMALL, seeded(weights))
        reach = near.reach(np.arange(9, 1, -1), (4, 3), np.random.default_rng(0))
        generator = seeded(dropout)
        views = [encoder(store.rows(reach.inputs), reach, generator).z for _ in range(2)]
        torch.autograd.backward((views[0] * views[1]).sum())
        gradients = [parameter.grad for parameter in encoder.parameters()]
        tensors = [*views, *(x for x in gradients if x is not None)]
        assert len(tensors) == 8
        return [x.detach().numpy().tobytes() for x in tensors]

    run = bytes_of(6, 7)
    assert bytes_of(6, 7) == run
    assert run[0] != run[1], "two views of the same nodes are equal"
    assert all(a != b for a, b in zip(bytes_of(8, 7)[:2], run[:2], strict=True))
    assert all(a != b for a, b in zip(bytes_of(6, 9)[:2], run[:2], strict=True))


@pytest.mark.parametrize("which", ["feature_dropout", "attention_dropout"])
def test_each_kind_of_dropout_acts_in_views_and_only_there(
    make_graph: MakeGraph, which: str
) -> None:
    graph = make_graph(0.5)
    reach = Neighbourhoods(graph).everything(2)
    rows = FeatureStore(graph, CPU).rows(reach.inputs)
    none = {"feature_dropout": 0.0, "attention_dropout": 0.0}
    plain = GATEncoder(24, EncoderConfig(hidden=6, heads=3, **none), seeded(1))
    encoder = GATEncoder(24, EncoderConfig(hidden=6, heads=3, **{**none, which: 0.5}), seeded(1))
    expected = plain(rows, reach).g
    assert torch.equal(plain(rows, reach, seeded(0)).g, expected)
    assert torch.equal(encoder(rows, reach).g, expected)
    assert not torch.isclose(encoder(rows, reach, seeded(0)).g, expected).all(1).any()


def test_z_is_g_at_unit_length(make_graph: MakeGraph) -> None:
    graph = make_graph(0.5)
    reach = Neighbourhoods(graph).everything(2)
    rows = FeatureStore(graph, CPU).rows(reach.inputs)
    g, z, _ = GATEncoder(24, SMALL, seeded(1))(rows, reach)
    assert g.shape == z.shape == (40, 6)
    assert (g.norm(dim=1) - 1.0).abs().mean() > 0.01, "g is of unit length itself"
    torch.testing.assert_close(z.norm(dim=1), torch.ones(40))
    torch.testing.assert_close(z * g.norm(dim=1, keepdim=True), g)


def test_sparse_and_dense_features_give_the_same(
    make_graph: MakeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = make_graph(0.05)
    encoder = GATEncoder(24, SMALL, seeded(1))
    reach = Neighbourhoods(graph).reach(np.array([5, 30, 2]), (None, None))
    results = []
    for dense_from in (1.0, 0.0):
        monkeypatch.setattr("openima.nn.rows.DENSE_FROM", dense_from)
        rows = FeatureStore(graph, CPU).rows(reach.inputs)
        assert isinstance(rows, DenseRows) is (dense_from == 0.0)
        encoder.zero_grad()
        g = encoder(rows, reach).g
        torch.autograd.backward(g.square().sum())
        results.append([g.detach(), *(p.grad for p in encoder.parameters() if p.grad is not None)])
    assert len(results[0]) == 7
    for sparse, dense in zip(*results, strict=True):
        assert_close(sparse, dense)


@pytest.mark.parametrize("density", [0.05, 0.5])
def test_targets_are_embedded_as_in_the_whole_graph_and_in_their_order(
    make_graph: MakeGraph, density: float
) -> None:
    graph = make_graph(density)
    near, store = Neighbourhoods(graph), FeatureStore(graph, CPU)
    encoder = GATEncoder(24, SMALL, seeded(1))

    def embed(reach: Reach) -> Tensor:
        g: Tensor = encoder(store.rows(reach.inputs), reach).g
        return g.detach()

    everything = embed(near.everything(2))
    for targets in ([0], [39], [38, 4, 21, 20], list(range(39, -1, -1))):
        found = embed(near.reach(np.array(targets), (None, None)))
        assert_close(found, everything[targets])
    beyond = embed(near.reach(np.array([7, 1]), (40, 40), np.random.default_rng(0)))
    assert_close(beyond, everything[[7, 1]])


@pytest.mark.parametrize("density", [0.05, 0.5])
def test_training_leaves_the_features_as_they_were(make_graph: MakeGraph, density: float) -> None:
    graph = make_graph(density, store_sparse=False)
    before = np.asarray(graph.features).tobytes()
    store, reach = FeatureStore(graph, CPU), Neighbourhoods(graph).everything(2)
    encoder = GATEncoder(24, SMALL, seeded(1))
    torch.autograd.backward(encoder(store.rows(reach.inputs), reach, seeded(2)).z.sum())
    assert np.asarray(graph.features).tobytes() == before
    assert all(p.grad is not None and p.grad.isfinite().all() for p in encoder.parameters())


def test_a_lone_node_with_a_loop_of_its_own_can_be_trained() -> None:
    graph = Graph.from_edges([0], [0], np.ones((2, 3)), directed=True)
    reach = Neighbourhoods(graph).reach(np.array([0]), (None, None))
    encoder = GATEncoder(3, SMALL, seeded(1))
    torch.autograd.backward(encoder(FeatureStore(graph, CPU).rows(reach.inputs), reach).g.sum())
    assert all(p.grad is not None and p.grad.isfinite().all() for p in encoder.parameters())


@pytest.mark.parametrize(
    "setting",
    [{"hidden": 0}, {"heads": -1}, {"feature_dropout": 1.0}, {"attention_dropout": -0.1}],
)
def test_a_shape_without_a_meaning_is_refused(setting: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(setting))):
        EncoderConfig(**setting)
