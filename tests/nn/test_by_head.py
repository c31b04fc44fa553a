from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from openima.graph.blocks import Neighbourhoods
from openima.graph.graph import Graph
from openima.nn.by_head import embed_by_head
from openima.nn.encoder import Embedding
from openima.nn.gat import EncoderConfig, GATEncoder
from openima.nn.rows import FeatureStore

MakeGraph = Callable[..., Graph]
Meter = Callable[[Callable[[], object]], int]

CPU = torch.device("cpu")
HEADS, HIDDEN, N = 3, 8, 40


def encoder() -> GATEncoder:
    config = EncoderConfig(hidden=HIDDEN, heads=HEADS)
    return GATEncoder(24, config, torch.Generator().manual_seed(1))


def in_one_pass(graph: Graph) -> Embedding:
    reach = Neighbourhoods(graph).everything(2)
    with torch.no_grad():
        found: Embedding = encoder()(FeatureStore(graph, CPU).rows(reach.inputs), reach)
    return found


def assert_equal(found: Embedding, expected: Embedding) -> None:
    torch.testing.assert_close(found.g, expected.g, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(found.z, expected.z, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("heads_at_once", [0, 1, 2, 3, 7])
@pytest.mark.parametrize("chunk_size", [1, 17, 40, 100])
@pytest.mark.parametrize("density", [0.05, 0.5])
def test_any_heads_and_chunks_give_what_one_pass_over_everything_gives(
    make_graph: MakeGraph, density: float, chunk_size: int, heads_at_once: int
) -> None:
    graph = make_graph(density)
    found = embed_by_head(
        encoder(),
        FeatureStore(graph, CPU),
        Neighbourhoods(graph),
        chunk_size,
        held=heads_at_once * N * HIDDEN * 4,
    )
    assert_equal(found, in_one_pass(graph))


@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_features_may_lie_in_a_file(make_graph: MakeGraph, tmp_path: Path, kind: type) -> None:
    graph = make_graph(0.5)
    assert not isinstance(graph.features, np.ndarray)
    features: NDArray[Any] = graph.features.toarray().astype(kind)
    np.save(tmp_path / "x.npy", features)
    mapped = graph.with_features(np.load(tmp_path / "x.npy", mmap_mode="r"))
    held = graph.with_features(features.astype(np.float32))
    store = FeatureStore(mapped, CPU)
    assert store.whole is None
    assert_equal(embed_by_head(encoder(), store, Neighbourhoods(mapped), 7), in_one_pass(held))


def test_the_output_of_the_first_layer_is_never_there_for_all_nodes(peak_bytes: Meter) -> None:
    rng = np.random.default_rng(0)
    n = 4000
    features = rng.standard_normal((n, 24), dtype=np.float32)
    ends = rng.integers(0, n, (2, 4 * n))
    graph = Graph.from_edges(ends[0], ends[1], features, directed=False)
    config = EncoderConfig(hidden=32, heads=8)
    large = GATEncoder(24, config, torch.Generator().manual_seed(1))
    store, near = FeatureStore(graph, CPU), Neighbourhoods(graph)
    whole = 8 * n * 32 * 4
    assert peak_bytes(lambda: embed_by_head(large, store, near, 200, held=1)) < 0.6 * whole
    assert peak_bytes(lambda: embed_by_head(large, store, near, 200, held=whole)) > whole


def test_all_neighbours_may_stand_for_themselves_in_a_sample(make_graph: MakeGraph) -> None:
    graph = make_graph(0.5)
    near, store = Neighbourhoods(graph), FeatureStore(graph, CPU)
    everyone = near.sampled(N, np.random.default_rng(0))
    assert_equal(embed_by_head(encoder(), store, everyone, 9), in_one_pass(graph))
    few = near.sampled(1, np.random.default_rng(0))
    assert not torch.equal(embed_by_head(encoder(), store, few).z, in_one_pass(graph).z)
