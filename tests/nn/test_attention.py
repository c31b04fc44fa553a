from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from openima.graph.blocks import Block
from openima.nn.attention import attend
from openima.nn.csr import Csr
from openima.nn.rows import DenseFactor

Edges = Sequence[tuple[int, int]]
MakeBlock = Callable[[Edges, int, int], Block]
Bend = dict[str, Any]

HEADS = 3
BENDS: list[Bend] = [  # the last but one is -|x|
    {"slope": 0.2},
    {"slope": 0.01},
    {"slope": 1.0, "above": -1.0},
    {"slope": 0.3, "above": -0.7},
]
CASES: dict[str, tuple[Edges, int, int]] = {  # edges, targets, sources
    "no edges": ([], 3, 4),
    "one edge": ([(2, 1)], 3, 4),
    "one node": ([(0, 0)], 1, 1),
    "targets without edges": ([(0, 1), (3, 1), (4, 3), (1, 3), (0, 3)], 5, 6),
    "unsorted sources": ([(5, 0), (2, 0), (4, 0), (3, 1), (0, 1), (5, 1)], 2, 6),
    "loops and parallel edges": (
        [(0, 0), (0, 0), (1, 0), (1, 1), (2, 1), (2, 1), (2, 1), (2, 2), (0, 0)],
        3,
        3,
    ),
    "a hub": ([(s, 1) for s in range(300)], 3, 301),
    "more edges than pairs": ([(0, 0)] * 5 + [(1, 0)] * 4, 1, 2),
}


def inputs(block: Block, *, shared: bool, seed: int = 0, width: int = 4) -> tuple[Tensor, ...]:
    """Draw values and scores in float64: one set of rows a head, or two shared pieces and maps."""
    generator = torch.Generator().manual_seed(seed)
    shapes = [
        (2 if shared else HEADS, block.n_sources, width),
        (block.n_sources, HEADS),
        (block.n_targets, HEADS),
    ]
    if shared:
        shapes.append((HEADS, 2 * width, 5))
    return tuple(
        torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()
        for shape in shapes
    )


def identities(width: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """Return maps that leave the joined sums as they are."""
    return torch.eye(width, dtype=dtype).repeat(HEADS, 1, 1)


def attended(
    block: Block,
    values: Tensor,
    source: Tensor,
    target: Tensor,
    maps: Tensor | None = None,
    **options: Any,
) -> Tensor:
    """Call `attend` with what `inputs` drew."""
    return attend(values, source, target, block, maps=maps, **options)


def by_double_loop(
    block: Block,
    values: Tensor,
    source: Tensor,
    target: Tensor,
    maps: Tensor | None = None,
    *,
    slope: float,
    above: float = 1.0,
) -> Tensor:
    """Write the definition out, one target and one head at a time; each row is mapped alone."""
    v, a, b = (x.detach().numpy() for x in (values, source, target))
    m = None if maps is None else maps.detach().numpy()
    out = np.zeros((HEADS, block.n_targets, v.shape[2] if m is None else m.shape[2]))
    for t in range(block.n_targets):
        edges = range(int(block.indptr[t]), int(block.indptr[t + 1]))
        of_edge = [int(block.sources[e]) for e in edges]
        for h in range(HEADS):
            raw = [a[s, h] + b[t, h] for s in of_edge]
            scores = [above * r if r > 0 else slope * r for r in raw]
            total = sum(math.exp(s) for s in scores)
            for s, score in zip(of_edge, scores, strict=True):
                row = v[h, s] if m is None else np.concatenate([piece[s] for piece in v]) @ m[h]
                out[h, t] += math.exp(score) / total * row
    return torch.from_numpy(out)


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def simple(make_block: MakeBlock) -> Block:
    """Every source once into each of six targets, so that a weight is an edge."""
    return make_block([(s, t) for t in range(6) for s in range(50)], 6, 50)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("bend", BENDS)
@pytest.mark.parametrize("case", CASES)
def test_equals_a_double_loop(make_block: MakeBlock, case: str, bend: Bend, shared: bool) -> None:
    block = make_block(*CASES[case])
    tensors = inputs(block, shared=shared)
    result = attended(block, *tensors, **bend)
    expected = by_double_loop(block, *tensors, **bend)
    torch.testing.assert_close(result, expected, rtol=1e-12, atol=1e-12)
    empty = block.indptr.diff() == 0
    assert not result[:, empty].any()


@settings(deadline=None, max_examples=60)
@given(data=st.data(), shared=st.booleans())
def test_equals_a_double_loop_on_any_block(
    make_block: MakeBlock, data: st.DataObject, shared: bool
) -> None:
    n_targets = data.draw(st.integers(1, 4))
    n_sources = data.draw(st.integers(n_targets, 6))
    edge = st.tuples(st.integers(0, n_sources - 1), st.integers(0, n_targets - 1))
    block = make_block(data.draw(st.lists(edge, max_size=12)), n_targets, n_sources)
    tensors = inputs(block, shared=shared, seed=data.draw(st.integers(0, 100)))
    result = attended(block, *tensors)
    expected = by_double_loop(block, *tensors, slope=0.2)
    torch.testing.assert_close(result, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("bend", [{"slope": 0.2}, {"slope": 1.0, "above": -1.0}])
@pytest.mark.parametrize("p", [0.0, 0.4])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("case", [case for case in CASES if case != "a hub"])
def test_gradients_equal_finite_differences(
    make_block: MakeBlock, case: str, shared: bool, p: float, bend: Bend
) -> None:
    block = make_block(*CASES[case])

    def reseeded(*tensors: Tensor) -> Tensor:
        return attended(block, *tensors, p=p, generator=seeded(5), **bend)

    assert torch.autograd.gradcheck(reseeded, inputs(block, shared=shared, width=2))


@pytest.mark.parametrize("identity", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_shared_rows_are_rows_repeated_for_each_head(
    make_block: MakeBlock, case: str, identity: bool
) -> None:
    block = make_block(*CASES[case])
    pieces, source, target, maps = inputs(block, shared=True)
    if identity:
        maps = identities(8).requires_grad_()
    shared = attend(pieces, source, target, block, maps=maps)
    upstream = torch.randn(shared.shape, generator=seeded(1), dtype=torch.float64)
    expected = torch.autograd.grad(shared, (pieces, source, target, maps), upstream)

    rows = pieces.transpose(0, 1).reshape(1, block.n_sources, -1).expand(HEADS, -1, -1)
    repeated = attend(rows, source, target, block)  # (H, n, C * W)
    if identity:
        torch.testing.assert_close(shared, repeated, rtol=1e-12, atol=1e-12)
    mapped = torch.bmm(repeated, maps)
    torch.testing.assert_close(mapped, shared, rtol=1e-12, atol=1e-12)
    gradients = torch.autograd.grad(mapped, (pieces, source, target, maps), upstream)
    for gradient, other in zip(gradients, expected, strict=True):
        torch.testing.assert_close(gradient, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shared", [False, True])
def test_huge_scores_pick_the_largest_and_stay_finite(make_block: MakeBlock, shared: bool) -> None:
    block = make_block([(0, 0), (1, 0), (2, 0), (0, 1), (2, 1)], 3, 4)
    values = inputs(block, shared=shared)[0].detach().float().requires_grad_()
    source = torch.tensor([-1e4, 1e4, 0.0, 0.0])[:, None].repeat(1, HEADS).requires_grad_()
    target = torch.tensor([1e4, -1e4, 0.0])[:, None].repeat(1, HEADS).requires_grad_()
    tensors = [values, source, target]
    if shared:
        tensors.append(identities(8, torch.float32).requires_grad_())
    out = attended(block, *tensors)
    picked = values.detach()[:, [1, 2]]
    expected = torch.cat(list(picked), 1).expand(HEADS, -1, -1) if shared else picked
    assert torch.equal(out[:, :2], expected)
    for gradient in torch.autograd.grad(out.sum(), tensors):
        assert gradient.isfinite().all()


@pytest.mark.parametrize("shared", [False, True])
def test_inputs_are_left_as_they_were(simple: Block, shared: bool) -> None:
    tensors = inputs(simple, shared=shared)
    before = [x.detach().clone() for x in tensors]
    torch.autograd.backward(attended(simple, *tensors, p=0.5, generator=seeded(0)).sum())
    for now, then in zip(tensors, before, strict=True):
        assert torch.equal(now.detach(), then)


def test_scores_and_maps_learn_where_values_do_not(simple: Block) -> None:
    values, *learnt = inputs(simple, shared=True)
    upstream = torch.randn(HEADS, 6, 5, generator=seeded(2), dtype=torch.float64)
    wanted = torch.autograd.grad(attended(simple, values, *learnt), learnt, upstream)
    found = torch.autograd.grad(attended(simple, values.detach(), *learnt), learnt, upstream)
    for gradient, other in zip(found, wanted, strict=True):
        assert torch.equal(gradient, other)


@pytest.mark.parametrize("dense", [False, True])
def test_products_made_on_the_way_equal_products_made_before(
    make_block: MakeBlock, dense: bool
) -> None:
    block = make_block([(0, 0), (1, 0), (2, 1), (3, 1), (3, 0), (3, 2)], 3, 4)
    x = torch.randn(4, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    x[x.abs() < 0.5] = 0.0
    csr = x.to_sparse_csr()
    parts = (csr.crow_indices().int(), csr.col_indices().int(), csr.values())
    factor = DenseFactor(x[None]) if dense else Csr(*parts)
    weight = torch.randn(2, 5, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    scores = torch.randn(7, 2, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    upstream = torch.randn(2, 3, 3, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    gradients = []
    for made_before in (False, True):
        w, s = weight.clone().requires_grad_(), scores.clone().requires_grad_()
        values, made = (x @ w, None) if made_before else (w, factor)
        out = attend(
            values,
            s[:4],
            s[4:],
            block,
            factor=made,
            p=0.5,
            generator=torch.Generator().manual_seed(4),
        )
        gradients.append((out, *torch.autograd.grad(out, (w, s), upstream)))
    for ours, expected in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, expected)
