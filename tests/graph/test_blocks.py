from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import chisquare

from openima.graph import blocks
from openima.graph.blocks import Neighbourhoods, Reach, sort_by_column
from openima.graph.graph import Graph

Pairs = list[tuple[int, int]]


def graph_of(pairs: Pairs, n_nodes: int, *, directed: bool = True) -> Graph:
    edges = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
    return Graph.from_edges(edges[:, 0], edges[:, 1], np.zeros((n_nodes, 1)), directed=directed)


def layers_of(reach: Reach) -> tuple[list[dict[int, Counter[int]]], NDArray[np.int64]]:
    """Read the blocks back in the graph's node numbers: who sends to each target, layer by layer.

    Returns the nodes that come out last as well.
    """
    layers, nodes = [], reach.inputs
    for block in reach.blocks:
        assert block.n_sources == len(nodes)
        assert {block.indptr.dtype, block.sources.dtype, block.self_rows.dtype} == {torch.int32}
        assert block.indptr[0] == 0
        assert block.indptr[-1] == block.n_edges
        assert torch.equal(
            block.indptr.diff(), torch.bincount(block.targets, minlength=block.n_targets)
        )
        targets = nodes[block.self_rows.numpy()]
        senders: dict[int, Counter[int]] = {int(t): Counter() for t in targets}
        for source, target in zip(block.sources.tolist(), block.targets.tolist(), strict=True):
            senders[int(targets[target])][int(nodes[source])] += 1
        assert len(senders) == block.n_targets
        assert set(block.sources.tolist()) == set(range(block.n_sources)), "a source without use"
        layers.append(senders)
        nodes = targets
    return layers, nodes


def neighbours(pairs: Pairs, node: int) -> Counter[int]:
    """Whom `node` hears, itself once more than its own loops say."""
    return Counter({s for s, t in pairs if t == node}) + Counter([node])


@st.composite
def small_graphs(draw: st.DrawFn) -> tuple[Pairs, int, list[int]]:
    """Directed edges over a few nodes, loops among them, and some targets in any order."""
    n = draw(st.integers(1, 8))
    node = st.integers(0, n - 1)
    pairs = draw(st.lists(st.tuples(node, node), max_size=30))
    return pairs, n, draw(st.lists(node, min_size=1, max_size=n, unique=True))


@settings(deadline=None, max_examples=150)
@given(case=small_graphs(), n_layers=st.integers(1, 3))
def test_full_reach_is_all_that_a_walk_backwards_finds(
    case: tuple[Pairs, int, list[int]], n_layers: int
) -> None:
    pairs, n, targets = case
    reach = Neighbourhoods(graph_of(pairs, n)).reach(np.array(targets), (None,) * n_layers)
    layers, last = layers_of(reach)
    assert last.tolist() == targets
    wanted = set(targets)
    for senders in reversed(layers):
        assert senders == {t: neighbours(pairs, t) for t in wanted}
        wanted = {s for t in wanted for s in neighbours(pairs, t)}
    assert set(reach.inputs.tolist()) == wanted
    assert len(reach.inputs) == len(wanted)


@settings(deadline=None, max_examples=150)
@given(
    case=small_graphs(),
    fan_outs=st.lists(st.one_of(st.none(), st.integers(0, 6)), min_size=1, max_size=3),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_sample_is_so_many_different_neighbours_and_the_node_itself(
    case: tuple[Pairs, int, list[int]], fan_outs: list[int | None], seed: int
) -> None:
    pairs, n, targets = case
    near = Neighbourhoods(graph_of(pairs, n))
    reach = near.reach(np.array(targets), fan_outs, np.random.default_rng(seed))
    layers, last = layers_of(reach)
    assert last.tolist() == targets
    for senders, fan_out in zip(layers, fan_outs, strict=True):
        for target, heard in senders.items():
            everyone = neighbours(pairs, target)
            degree = everyone.total() - 1
            assert heard <= everyone, "a neighbour twice, or no neighbour at all"
            assert heard[target] >= 1, "the node itself is missing"
            assert heard.total() == 1 + (degree if fan_out is None else min(degree, fan_out))


@settings(deadline=None, max_examples=50)
@given(case=small_graphs(), n_layers=st.integers(1, 3))
def test_everything_is_the_reach_of_all_nodes(
    case: tuple[Pairs, int, list[int]], n_layers: int
) -> None:
    pairs, n, _ = case
    near = Neighbourhoods(graph_of(pairs, n))
    everything = near.everything(n_layers)
    assert everything.inputs.tolist() == list(range(n))
    layers, nodes = layers_of(everything)
    assert nodes.tolist() == list(range(n))
    assert layers == layers_of(near.reach(np.arange(n), (None,) * n_layers))[0]


@settings(deadline=None, max_examples=50)
@given(case=small_graphs())
def test_edges_are_found_again_by_source(case: tuple[Pairs, int, list[int]]) -> None:
    pairs, n, targets = case
    (block,) = Neighbourhoods(graph_of(pairs, n)).reach(np.array(targets), (None,)).blocks
    back = block.by_source
    starts = back.indptr.tolist()
    assert len(starts) == block.n_sources + 1
    for source in range(block.n_sources):
        entries = back.entries[starts[source] : starts[source + 1]].tolist()
        assert entries == [e for e, s in enumerate(block.sources.tolist()) if s == source]
    assert torch.equal(back.rows, block.targets[back.entries])
    as_on_a_gpu = blocks._sorted(block.indptr, block.sources, block.n_sources)
    for name in ("indptr", "rows", "entries"):
        assert torch.equal(getattr(as_on_a_gpu, name), getattr(back, name))
    assert {back.indptr.dtype, back.rows.dtype, back.entries.dtype} == {torch.int32}


@pytest.mark.parametrize("sort", [sort_by_column, blocks._sorted])
def test_sorting_by_column_keeps_parallel_entries_and_empty_columns(
    sort: Callable[[torch.Tensor, torch.Tensor, int], blocks.EdgesBySource],
) -> None:
    indptr = torch.tensor([0, 3, 3, 5], dtype=torch.int32)
    columns = torch.tensor([4, 1, 4, 1, 0], dtype=torch.int32)
    back = sort(indptr, columns, 6)
    assert back.indptr.tolist() == [0, 1, 3, 3, 3, 5, 5]
    assert back.entries.tolist() == [4, 1, 3, 0, 2]
    assert back.rows.tolist() == [2, 0, 2, 0, 0]


@pytest.mark.parametrize(("degree", "fan_out"), [(6, 3), (6, 1), (6, 5), (12, 2)])
def test_every_sample_of_neighbours_is_equally_likely(degree: int, fan_out: int) -> None:
    n_targets = 4000
    pairs = [(s, degree + t) for t in range(n_targets) for s in range(degree)]
    near = Neighbourhoods(graph_of(pairs, degree + n_targets))
    rng = np.random.default_rng(1)
    seen: Counter[tuple[int, ...]] = Counter()
    for _ in range(4):
        (senders,), _ = layers_of(near.reach(np.arange(n_targets) + degree, (fan_out,), rng))
        seen.update(tuple(sorted(set(heard) - {t})) for t, heard in senders.items())
    counts = [seen[subset] for subset in combinations(range(degree), fan_out)]
    assert sum(counts) == 4 * n_targets
    assert chisquare(counts).pvalue > 1e-3


def test_each_draw_is_new_for_one_target_and_in_each_layer() -> None:
    pairs = [(s, 0) for s in range(1, 11)]
    near = Neighbourhoods(graph_of(pairs, 11))
    rng = np.random.default_rng(2)
    counts = np.zeros((10, 10))  # first layer's neighbour by second layer's
    for _ in range(4000):
        layers, _ = layers_of(near.reach(np.array([0]), (1, 1), rng))
        first, second = (next(iter(set(senders[0]) - {0})) for senders in layers)
        counts[first - 1, second - 1] += 1
    assert chisquare(counts.ravel()).pvalue > 1e-3


def test_isolated_nodes_hear_themselves_only() -> None:
    near = Neighbourhoods(graph_of([(0, 1)], 4))
    for fan_out in (None, 0, 2):
        reach = near.reach(np.array([3, 2]), (fan_out,) * 2, np.random.default_rng(0))
        layers, last = layers_of(reach)
        assert layers == [{3: Counter([3]), 2: Counter([2])}] * 2
        assert last.tolist() == [3, 2]


def test_a_loop_in_the_graph_stays_beside_the_added_one() -> None:
    near = Neighbourhoods(graph_of([(0, 0), (1, 0)], 2))
    (senders,), _ = layers_of(near.reach(np.array([0]), (None,)))
    assert senders[0] == Counter([0, 0, 1])
    (senders,), _ = layers_of(near.everything(1))
    assert senders == {0: Counter([0, 0, 1]), 1: Counter([1])}


def test_messages_run_along_the_edges_and_not_against_them() -> None:
    pairs = [(0, 1), (1, 2)]
    (senders,), _ = layers_of(Neighbourhoods(graph_of(pairs, 3)).everything(1))
    assert senders == {0: Counter([0]), 1: Counter([0, 1]), 2: Counter([1, 2])}
    (senders,), _ = layers_of(Neighbourhoods(graph_of(pairs, 3, directed=False)).everything(1))
    assert senders == {0: Counter([0, 1]), 1: Counter([0, 1, 2]), 2: Counter([1, 2])}


def test_the_seed_decides_the_sample() -> None:
    pairs = [(s, t) for s in range(30) for t in range(30)]
    near = Neighbourhoods(graph_of(pairs, 30))

    def sample(seed: int) -> list[bytes]:
        reach = near.reach(np.arange(5), (3, 2), np.random.default_rng(seed))
        tensors = [x for b in reach.blocks for x in (b.indptr, b.sources, b.self_rows)]
        return [reach.inputs.tobytes(), *(x.numpy().tobytes() for x in tensors)]

    assert sample(7) == sample(7)
    assert sample(7) != sample(8)


def test_the_graph_is_left_as_it_was() -> None:
    graph = graph_of([(0, 1), (2, 1), (1, 1)], 3)
    before = graph.indptr.tobytes(), graph.sources.tobytes()
    near = Neighbourhoods(graph)
    near.everything(2)
    near.reach(np.array([1]), (1,), np.random.default_rng(0))
    assert (graph.indptr.tobytes(), graph.sources.tobytes()) == before


def test_sampling_needs_a_generator() -> None:
    near = Neighbourhoods(graph_of([(0, 1)], 2))
    with pytest.raises(ValueError, match="random generator"):
        near.reach(np.array([1]), (None, 3))


def test_a_fan_out_beyond_every_degree_takes_all_neighbours() -> None:
    pairs = [(0, 1), (2, 1), (3, 1), (1, 0)]
    near = Neighbourhoods(graph_of(pairs, 4))
    fan_out = 10**15  # more than there is room for, should anyone set that much aside
    reach = near.reach(np.array([1, 0]), (fan_out,), np.random.default_rng(0))
    assert layers_of(reach)[0] == layers_of(near.reach(np.array([1, 0]), (None,)))[0]


def test_a_block_moves_to_a_device_whole() -> None:
    reach = Neighbourhoods(graph_of([(0, 1), (2, 1)], 3)).reach(np.array([1]), (None,) * 2)
    moved = reach.to(torch.device("meta"))
    assert moved.inputs is reach.inputs
    for block, old in zip(moved.blocks, reach.blocks, strict=True):
        tensors = (block.indptr, block.sources, block.self_rows)
        assert {x.device.type for x in tensors} == {"meta"}
        assert (block.n_sources, block.n_targets, block.n_edges) == (
            old.n_sources,
            old.n_targets,
            old.n_edges,
        )


@settings(deadline=None, max_examples=100)
@given(case=small_graphs(), fan_out=st.integers(0, 6), chunk=st.integers(1, 9))
def test_a_sampled_graph_keeps_so_many_neighbours_of_each_node_and_itself(
    case: tuple[Pairs, int, list[int]], fan_out: int, chunk: int
) -> None:
    pairs, n, _ = case
    near = Neighbourhoods(graph_of(pairs, n))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "_CHUNK", chunk)
        kept = near.sampled(fan_out, np.random.default_rng(0))
    (heard,), nodes = layers_of(kept.everything(1))
    assert nodes.tolist() == list(range(n))
    for node in range(n):
        everyone = neighbours(pairs, node)
        assert heard[node] <= everyone
        assert heard[node][node] >= 1
        assert heard[node].total() == 1 + min(everyone.total() - 1, fan_out)
    assert layers_of(near.everything(1))[0] == [{t: neighbours(pairs, t) for t in range(n)}]


@settings(deadline=None, max_examples=50)
@given(case=small_graphs(), start=st.integers(0, 7), length=st.integers(1, 9))
def test_edges_onto_consecutive_nodes_keep_the_numbers_of_the_graph(
    case: tuple[Pairs, int, list[int]], start: int, length: int
) -> None:
    pairs, n, _ = case
    block = Neighbourhoods(graph_of(pairs, n)).onto(slice(start, start + length))
    nodes = list(range(min(start, n), min(start + length, n)))
    assert block.self_rows.tolist() == nodes
    assert (block.n_targets, block.n_sources) == (len(nodes), n)
    heard: dict[int, Counter[int]] = {node: Counter() for node in nodes}
    for source, target in zip(block.sources.tolist(), block.targets.tolist(), strict=True):
        heard[nodes[target]][source] += 1
    assert heard == {node: neighbours(pairs, node) for node in nodes}


def test_a_step_on_a_large_graph_draws_no_neighbour_twice_and_all_of_the_few() -> None:
    """Degrees from 0 to 60 at once, as in graphs with hubs, and a fan-out between them."""
    degrees = np.arange(61).repeat(50)
    targets = np.repeat(np.arange(len(degrees)), degrees)
    rank = np.concatenate([np.arange(d) for d in degrees])
    n = len(degrees)
    graph = Graph.from_edges((targets + 1 + rank) % n, targets, np.zeros((n, 1)), directed=True)
    (block,) = Neighbourhoods(graph).reach(np.arange(n), (20,), np.random.default_rng(0)).blocks
    assert block.indptr.diff().tolist() == (np.minimum(degrees, 20) + 1).tolist()
    drawn = set(zip(block.targets.tolist(), block.sources.tolist(), strict=True))
    assert len(drawn) == block.n_edges
