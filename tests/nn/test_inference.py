from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from openima.graph.blocks import Neighbourhoods
from openima.graph.graph import Graph
from openima.nn.gat import EncoderConfig, GATEncoder
from openima.nn.inference import embed_all
from openima.nn.rows import FeatureStore

MakeGraph = Callable[..., Graph]

CPU = torch.device("cpu")


def encoder_of(hidden: int) -> GATEncoder:
    config = EncoderConfig(hidden=hidden, heads=3)
    return GATEncoder(24, config, torch.Generator().manual_seed(1))


@pytest.mark.parametrize("chunk_size", [1, 7, 39, 40, 41, 1 << 16])
@pytest.mark.parametrize("hidden", [6, 30])  # maps before it sums, and the other way round
@pytest.mark.parametrize("density", [0.05, 0.5])
def test_any_chunks_give_what_one_pass_over_everything_gives(
    make_graph: MakeGraph, density: float, hidden: int, chunk_size: int
) -> None:
    graph = make_graph(density)
    near, store, encoder = Neighbourhoods(graph), FeatureStore(graph, CPU), encoder_of(hidden)
    reach = near.everything(2)
    with torch.no_grad():
        expected = encoder(store.rows(reach.inputs), reach)
    found = embed_all(encoder, store, near, chunk_size)
    assert found.g.shape == (40, hidden)
    torch.testing.assert_close(found.g, expected.g, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(found.z, expected.z, rtol=1e-5, atol=1e-6)


def test_a_graph_without_edges_is_embedded_node_by_node() -> None:
    features = np.random.default_rng(0).random((5, 24))
    graph = Graph.from_edges([], [], features, directed=False)
    near, store, encoder = Neighbourhoods(graph), FeatureStore(graph, CPU), encoder_of(6)
    found = embed_all(encoder, store, near, 2)
    for node in range(5):
        reach = near.reach(np.array([node]), (None, None))
        alone = encoder(store.rows(reach.inputs), reach)
        torch.testing.assert_close(found.z[node], alone.z[0])


def test_inference_repeats_itself_and_leaves_no_trace(make_graph: MakeGraph) -> None:
    graph = make_graph(0.5)
    near, store, encoder = Neighbourhoods(graph), FeatureStore(graph, CPU), encoder_of(6)
    before = torch.get_rng_state()
    first, second = (embed_all(encoder, store, near, 16) for _ in range(2))
    assert torch.equal(torch.get_rng_state(), before)
    for a, b in zip(first[:2], second[:2], strict=True):
        assert a.numpy().tobytes() == b.numpy().tobytes()
        assert not a.requires_grad
    assert all(parameter.grad is None for parameter in encoder.parameters())


def test_nodes_apart_never_meet_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks that do not reach each other are finished one after the other."""
    calls: list[str] = []
    for name in ("first", "second"):
        layer = getattr(GATEncoder, name)

        def counted(*parts: Any, layer: Any = layer, name: str = name) -> Any:
            calls.append(name)
            return layer(*parts)

        monkeypatch.setattr(GATEncoder, name, counted)
    features = np.random.default_rng(0).random((40, 24))
    chain = np.arange(39)
    for sources, targets in (([], []), (chain, chain + 1)):
        graph = Graph.from_edges(sources, targets, features, directed=False)
        near, store, encoder = Neighbourhoods(graph), FeatureStore(graph, CPU), encoder_of(6)
        calls.clear()
        found = embed_all(encoder, store, near, 20)
        assert calls == ["first", "second"] * 2
        reach = near.everything(2)
        with torch.no_grad():
            torch.testing.assert_close(found.z, encoder(store.rows(reach.inputs), reach).z)


def test_a_hub_that_all_chunks_reach_is_embedded_once() -> None:
    """One hop from each chunk is little more than the chunk, two hops are everything."""
    features = np.random.default_rng(0).random((40, 24))
    star = np.zeros(39, dtype=np.int64)
    graph = Graph.from_edges(star, np.arange(1, 40), features, directed=False)
    near, store, encoder = Neighbourhoods(graph), FeatureStore(graph, CPU), encoder_of(6)
    reach = near.everything(2)
    with torch.no_grad():
        expected = encoder(store.rows(reach.inputs), reach).z
    torch.testing.assert_close(embed_all(encoder, store, near, 5).z, expected)
