from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from openima.graph.blocks import Block
from openima.nn.attention import attend

MakeBlock = Callable[[Sequence[tuple[int, int]], int, int], Block]

HEADS = 3


def edge_weights(block: Block, source: Tensor, target: Tensor, **options: Any) -> Tensor:
    """Read the weights (H, n_targets, n_sources) off the sums of one-hot source rows."""
    one_hot = torch.eye(block.n_sources, dtype=source.dtype).repeat(source.shape[1], 1, 1)
    return attend(one_hot, source, target, block, **options)


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def inputs(block: Block, *, shared: bool) -> tuple[Tensor, ...]:
    """Draw values and scores in float64: one set of rows a head, or two shared pieces and maps."""
    generator = seeded(0)
    rows = (2 if shared else HEADS, block.n_sources, 4)
    shapes = [rows, (block.n_sources, HEADS), (block.n_targets, HEADS)]
    if shared:
        shapes.append((HEADS, 8, 5))
    return tuple(
        torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()
        for shape in shapes
    )


@pytest.fixture
def simple(make_block: MakeBlock) -> Block:
    """Every source once into each of six targets, so that a weight is an edge."""
    return make_block([(s, t) for t in range(6) for s in range(50)], 6, 50)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_dropout_drops_its_share_and_scales_the_rest(simple: Block, p: float) -> None:
    _, source, target = (x.detach() for x in inputs(simple, shared=False))
    kept = edge_weights(simple, source, target)
    assert kept.min() > 0.0
    generator = seeded(3)
    draws = [edge_weights(simple, source, target, p=p, generator=generator) for _ in range(60)]
    ratio = torch.stack(draws) / kept
    is_dropped = ratio == 0.0
    torch.testing.assert_close(
        ratio[~is_dropped], torch.full_like(ratio[~is_dropped], 1.0 / (1.0 - p))
    )
    n = is_dropped.numel()
    assert abs(int(is_dropped.sum()) - n * p) < 5.0 * math.sqrt(n * p * (1.0 - p))
    # Each head, target and source is dropped on its own: no two of them agree by more than chance.
    for axis in (0, 1, 2, 3):
        pair = is_dropped.double().sub(p) * is_dropped.double().sub(p).roll(1, axis)
        assert abs(float(pair.mean())) < 5.0 * p * (1.0 - p) / math.sqrt(n)


def test_dropout_changes_nothing_on_average(simple: Block) -> None:
    values, source, target, _ = (x.detach().float() for x in inputs(simple, shared=True))
    identities = torch.eye(8).repeat(HEADS, 1, 1)
    plain = attend(values, source, target, simple, maps=identities)
    options: dict[str, Any] = {"maps": identities, "p": 0.5, "generator": seeded(4)}
    n_draws = 2000
    draws = torch.stack([attend(values, source, target, simple, **options) for _ in range(n_draws)])
    error = draws.std(0) / math.sqrt(n_draws)
    assert ((draws.mean(0) - plain).abs() / error).max() < 5.0


@pytest.mark.parametrize("shared", [False, True])
def test_the_generator_decides_every_byte(simple: Block, shared: bool) -> None:
    def both(generator: torch.Generator) -> list[bytes]:
        tensors = inputs(simple, shared=shared)
        maps = tensors[3] if shared else None
        values, source, target = tensors[:3]
        out = attend(values, source, target, simple, maps=maps, p=0.5, generator=generator)
        grads = torch.autograd.grad(out.square().sum(), tensors)
        return [x.detach().numpy().tobytes() for x in (out, *grads)]

    generator = seeded(6)
    state = generator.get_state()
    first, second = both(generator), both(generator)
    generator.set_state(state)
    assert both(generator) == first
    assert all(a != b for a, b in zip(first, second, strict=True))


def test_without_generator_nothing_is_dropped(simple: Block) -> None:
    values, source, target = inputs(simple, shared=False)
    plain = attend(values, source, target, simple)
    for options in ({"p": 0.5}, {"p": 0.0, "generator": seeded(0)}):
        assert torch.equal(attend(values, source, target, simple, **options), plain)


def test_the_gradient_flows_through_the_edges_that_stayed(simple: Block) -> None:
    values, source, target = inputs(simple, shared=False)
    options: dict[str, Any] = {"p": 0.5}
    weights = edge_weights(simple, source, target, **options, generator=seeded(8))
    assert (weights == 0.0).any()
    out = attend(values, source, target, simple, **options, generator=seeded(8))
    upstream = torch.randn(out.shape, generator=seeded(9), dtype=torch.float64)
    gradient = torch.autograd.grad(out, values, upstream)[0]
    expected = torch.bmm(weights.transpose(1, 2), upstream)
    torch.testing.assert_close(gradient, expected, rtol=1e-12, atol=1e-12)
