from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from openima.nn.dropout import dropout, elu_dropout_, keep_mask


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("p", [0.0, 0.001, 0.1, 0.3, 0.5, 0.9, 0.999])
def test_the_right_share_is_kept(p: float) -> None:
    n = 1_000_003
    mask = keep_mask(torch.Size((n,)), p, seeded(0))
    assert mask.dtype == torch.bool
    slack = 5.0 * math.sqrt(n * p * (1.0 - p)) + n * 2.0**-17
    assert abs(int(mask.sum()) - n * (1.0 - p)) <= slack


def test_almost_nothing_is_kept_where_almost_all_is_dropped() -> None:
    assert keep_mask(torch.Size((1000,)), 1.0 - 2.0**-20, seeded(0)).sum() < 10


@pytest.mark.parametrize("p", [0.2, 0.5])
def test_values_do_not_hang_together(p: float) -> None:
    n = 1 << 20
    deviation = keep_mask(torch.Size((n,)), p, seeded(1)).double() - (1.0 - p)
    variance = p * (1.0 - p)
    for lag in range(1, 13):  # four values share one 64-bit draw
        correlation = float((deviation[lag:] * deviation[:-lag]).mean()) / variance
        assert abs(correlation) < 5.0 / math.sqrt(n)
    # Each of the four places in a draw keeps the same share, and they are independent in pairs.
    lanes = deviation.view(-1, 4)
    assert lanes.mean(0).abs().max() < 5.0 * math.sqrt(4.0 * variance / n)
    between = lanes.t() @ lanes / len(lanes) / variance - torch.eye(4, dtype=torch.float64)
    assert between.abs().max() < 5.0 * math.sqrt(4.0 / n) * max(1.0, (1 - 2 * p) / variance**0.5)


def test_each_value_is_kept_as_often_as_any_other() -> None:
    generator, n_draws, p = seeded(2), 4000, 0.3
    masks = [keep_mask(torch.Size((3, 5)), p, generator) for _ in range(n_draws)]
    share = torch.stack(masks).double().mean(0)
    assert (share - (1.0 - p)).abs().max() < 5.0 * math.sqrt(p * (1.0 - p) / n_draws)


@pytest.mark.parametrize("shape", [(0,), (1,), (7,), (2, 3), (0, 4), (2, 3, 5)])
def test_the_mask_has_the_shape_asked_for(shape: tuple[int, ...]) -> None:
    assert keep_mask(torch.Size(shape), 0.5, seeded(0)).shape == shape


def test_the_state_of_the_generator_decides() -> None:
    generator = seeded(3)
    first, second = (keep_mask(torch.Size((100,)), 0.5, generator) for _ in range(2))
    assert not torch.equal(first, second)
    assert torch.equal(keep_mask(torch.Size((100,)), 0.5, seeded(3)), first)


def test_nothing_to_drop_gives_the_same_tensor_back() -> None:
    x = torch.randn(4, 3)
    assert dropout(x, 0.0, seeded(0)) is x
    assert dropout(x, 0.5, None) is x


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("p", [0.25, 0.5])
def test_what_stays_is_scaled_so_that_the_mean_stays(p: float, dtype: torch.dtype) -> None:
    x = torch.ones(400, 500, dtype=dtype)
    out = dropout(x, p, seeded(4))
    assert out.dtype == dtype
    assert torch.equal(x, torch.ones_like(x))
    kept = out[out != 0.0]
    torch.testing.assert_close(kept, torch.full_like(kept, 1.0 / (1.0 - p)))
    error = math.sqrt(p / (1.0 - p) / x.numel())
    assert abs(float(out.mean()) - 1.0) < 5.0 * error


def test_the_gradient_passes_where_the_value_did() -> None:
    x = torch.randn(50, 40, generator=seeded(5)).requires_grad_()
    out = dropout(x, 0.5, seeded(6))
    gradient = torch.autograd.grad(out.sum(), x)[0]
    assert torch.equal(gradient, torch.where(out == 0.0, 0.0, 2.0))


@pytest.mark.parametrize("p", [0.0, 0.3, 0.5])
def test_elu_and_dropout_in_one_equal_the_two_in_turn(p: float) -> None:
    x = torch.randn(3, 7, 5, generator=seeded(1), dtype=torch.float64)
    x[0, 0] = 0.0  # exactly zero before ELU: kept zeros must not be taken for dropped ones
    own, other = x.clone().requires_grad_(), x.clone().requires_grad_()
    out = elu_dropout_(own * 1.0, p, seeded(2))  # in place, so not on the leaf itself
    expected = dropout(F.elu(other), p, seeded(2))
    torch.testing.assert_close(out, expected)
    upstream = torch.randn(x.shape, generator=seeded(3), dtype=torch.float64)
    torch.autograd.backward([out, expected], [upstream, upstream])
    torch.testing.assert_close(own.grad, other.grad)


def test_elu_without_a_generator_drops_nothing() -> None:
    x = torch.randn(4, 6, generator=seeded(1))
    torch.testing.assert_close(elu_dropout_(x.clone(), 0.5, None), F.elu(x))
