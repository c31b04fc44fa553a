from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch
from scipy.stats import chisquare

from openima.graph.blocks import Block
from openima.nn.pairs import links_between_targets, pair_products, random_pairs

Edges = Sequence[tuple[int, int]]
MakeBlock = Callable[[Edges, int, int], Block]
MostBytes = Callable[[Callable[[], object]], int]


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def pairs_of(block: Block) -> list[tuple[int, int]]:
    return list(zip(block.sources.tolist(), block.targets.tolist(), strict=True))


def test_links_are_edges_whose_source_is_a_target_itself(make_block: MakeBlock) -> None:
    # Targets 0, 1 and 2 are sources 5, 4 and 3; sources 0 to 2 are no targets.
    edges = [(5, 0), (4, 0), (0, 0), (1, 1), (4, 1), (5, 2), (3, 2), (4, 2), (4, 2)]
    links = links_between_targets(make_block(edges, 3, 6))
    assert pairs_of(links) == [(1, 0), (0, 2), (1, 2), (1, 2)]
    assert (links.n_targets, links.n_sources) == (3, 3)
    assert links.self_rows.tolist() == [0, 1, 2]


@pytest.mark.parametrize("edges", [[], [(3, 0), (2, 1)], [(0, 0), (1, 1)]])
def test_there_may_be_no_link(make_block: MakeBlock, edges: Edges) -> None:
    links = links_between_targets(make_block(edges, 2, 4))
    assert links.n_edges == 0
    rows = torch.ones(2, 3, requires_grad=True)
    products = pair_products(rows, links)
    assert products.shape == (0,)
    torch.autograd.backward(products.sum())
    assert rows.grad is not None
    assert not rows.grad.any()


def test_random_pairs_are_uniform() -> None:
    pairs = random_pairs(5, 20_000, seeded(0))
    assert pairs.n_edges == 20_000
    counts = np.zeros((5, 5))
    np.add.at(counts, tuple(np.array(pairs_of(pairs)).T), 1)
    assert chisquare(counts.ravel()).pvalue > 1e-3
    assert pairs_of(pairs) == pairs_of(random_pairs(5, 20_000, seeded(0)))
    assert pairs_of(pairs) != pairs_of(random_pairs(5, 20_000, seeded(1)))


@pytest.mark.parametrize("n_pairs", [1, 7, 60])
def test_products_and_their_gradient_equal_a_loop(n_pairs: int) -> None:
    pairs = random_pairs(6, n_pairs, seeded(0))
    rows = torch.randn(6, 3, generator=seeded(1), dtype=torch.float64, requires_grad=True)
    expected = torch.stack([rows[s] @ rows[t] for s, t in pairs_of(pairs)])
    torch.testing.assert_close(pair_products(rows, pairs), expected)
    assert torch.autograd.gradcheck(lambda x: pair_products(x, pairs), (rows,))


def test_nothing_of_pairs_times_width_is_held(most_bytes: MostBytes) -> None:
    n_pairs = 20_000
    pairs = random_pairs(200, n_pairs, seeded(0))
    rows = torch.randn(200, 64, requires_grad=True)

    def step() -> None:
        torch.autograd.backward(pair_products(rows, pairs).sum())

    assert 4 * n_pairs <= most_bytes(step) <= 8 * n_pairs
