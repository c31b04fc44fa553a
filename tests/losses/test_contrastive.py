from collections.abc import Callable
from math import log
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from openima.losses import contrastive as module
from openima.losses.contrastive import BASE_TEMPERATURE, contrastive, tiles_are_kept

TEMPERATURES = (0.07, 0.7)
IDS = {
    "unique in each view": torch.arange(6).repeat(2),
    "all equal": torch.full((12,), 7),
    "labels and unknown": torch.tensor([0, 0, 1, 9, 10, 11]).repeat(2),
    "random": torch.tensor([3, 1, 3, 2, 2, 1, 3, 3, 0, 1, 2, 0]),
    "some alone": torch.tensor([0, 1, 2, 3, 4, 4, 5, 6, 7, 7, 7, 8]),
}


def unit_rows(n: int, dim: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return F.normalize(torch.randn(n, dim, generator=generator, dtype=torch.float64)).to(dtype)


def by_loops(z: Tensor, ids: Tensor, temperature: float) -> Tensor:
    """The formula of the docstring, one pair at a time, unscaled."""
    losses = []
    for i in range(len(z)):
        positives = [j for j in range(len(z)) if j != i and ids[j] == ids[i]]
        if not positives:
            continue
        others = [torch.exp(z[i] @ z[k] / temperature) for k in range(len(z)) if k != i]
        total = torch.stack(others).sum()
        terms = [-torch.log(torch.exp(z[i] @ z[j] / temperature) / total) for j in positives]
        losses.append(torch.stack(terms).mean())
    return torch.stack(losses).mean()


def with_masks(z: Tensor, ids: Tensor, temperature: float) -> Tensor:
    """The same with whole matrices, for sizes that loops take too long for."""
    itself = torch.eye(len(z), dtype=torch.bool)
    logits = (z @ z.T / temperature).masked_fill(itself, -torch.inf)
    log_share = logits - logits.logsumexp(1, keepdim=True)
    positive = (ids[:, None] == ids) & ~itself
    n_positives = positive.sum(1)
    losses = -torch.where(positive, log_share, 0.0).sum(1) / n_positives
    return losses[n_positives > 0].mean()


def value_and_gradient(loss: Callable[..., Tensor], z: Tensor, *args: Any) -> tuple[float, Tensor]:
    z = z.clone().requires_grad_()
    value = loss(z, *args)
    (gradient,) = torch.autograd.grad(value, z)
    return value.item(), gradient


@pytest.mark.parametrize("temperature", TEMPERATURES)
@pytest.mark.parametrize("name", IDS)
def test_equals_a_loop_over_all_pairs(name: str, temperature: float) -> None:
    z, ids = unit_rows(12, 5), IDS[name]
    expected, slope = value_and_gradient(by_loops, z, ids, temperature)
    found, gradient = value_and_gradient(contrastive, z, ids, temperature, None)
    assert found == pytest.approx(expected, rel=1e-10)
    torch.testing.assert_close(gradient, slope, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("n", [1, 2, 1023, 1024, 1025, 2300])
def test_equals_the_matrix_form_at_any_size(n: int) -> None:
    z = unit_rows(n + 1, 6, seed=n)
    ids = torch.randint(0, max(n // 3, 1), (n + 1,), generator=torch.Generator().manual_seed(n))
    ids[-1] = ids[0]  # at least one pair
    expected, slope = value_and_gradient(with_masks, z, ids, 0.5)
    found, gradient = value_and_gradient(contrastive, z, ids, 0.5, None)
    assert found == pytest.approx(expected, rel=1e-10)
    torch.testing.assert_close(gradient, slope, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("temperature", TEMPERATURES)
def test_single_precision_is_close(temperature: float) -> None:
    z, ids = unit_rows(1100, 128), torch.arange(550).repeat(2)
    expected, slope = value_and_gradient(with_masks, z, ids, temperature)
    found, gradient = value_and_gradient(contrastive, z.float(), ids, temperature, None)
    assert found == pytest.approx(expected, rel=1e-5)
    scale = float(slope.abs().max())
    torch.testing.assert_close(gradient.double(), slope, rtol=1e-4, atol=1e-5 * scale)


@pytest.mark.parametrize("temperature", TEMPERATURES)
def test_unique_ids_make_it_info_nce(temperature: float) -> None:
    """InfoNCE as cross-entropy: of all other rows, find the other view."""
    n = 9
    z = unit_rows(2 * n, 4)

    def info_nce(z: Tensor) -> Tensor:
        logits = (z @ z.T / temperature).masked_fill(torch.eye(2 * n, dtype=torch.bool), -1e9)
        return F.cross_entropy(logits, (torch.arange(2 * n) + n) % (2 * n))

    expected, slope = value_and_gradient(info_nce, z)
    ids = torch.arange(100, 100 + n).repeat(2)
    found, gradient = value_and_gradient(contrastive, z, ids, temperature, None)
    assert found == pytest.approx(expected, rel=1e-10)
    torch.testing.assert_close(gradient, slope, rtol=1e-9, atol=1e-11)


def test_derivative_is_that_of_finite_differences() -> None:
    z = unit_rows(8, 3).requires_grad_()
    ids = torch.tensor([0, 1, 2, 0, 0, 1, 5, 6])
    for temperature in TEMPERATURES:
        assert torch.autograd.gradcheck(lambda z, t=temperature: contrastive(z, ids, t), (z,))


@pytest.mark.parametrize("temperature", TEMPERATURES)
def test_scale_is_temperature_over_base(temperature: float) -> None:
    z, ids = unit_rows(12, 5), IDS["random"]
    plain, slope = value_and_gradient(contrastive, z, ids, temperature, None)
    for base in (0.07, 0.5):
        scaled, gradient = value_and_gradient(contrastive, z, ids, temperature, base)
        assert scaled == pytest.approx(plain * temperature / base, rel=1e-12)
        torch.testing.assert_close(gradient, slope * (temperature / base))
    assert BASE_TEMPERATURE == 0.07
    assert contrastive(z, ids, temperature) == contrastive(z, ids, temperature, 0.07)


def test_names_of_ids_do_not_matter() -> None:
    z, ids = unit_rows(12, 5), IDS["random"]
    names = torch.tensor([10**12, -5, 0, 77])
    expected, slope = value_and_gradient(contrastive, z, ids, 0.3)
    found, gradient = value_and_gradient(contrastive, z, names[ids], 0.3)
    assert found == pytest.approx(expected, rel=1e-12)
    torch.testing.assert_close(gradient, slope)


def test_order_of_rows_does_not_matter() -> None:
    z, ids = unit_rows(1500, 5), torch.arange(1500) % 400
    order = torch.randperm(1500, generator=torch.Generator().manual_seed(4))
    expected, slope = value_and_gradient(contrastive, z, ids, 0.3)
    found, gradient = value_and_gradient(contrastive, z[order], ids[order], 0.3)
    assert found == pytest.approx(expected, rel=1e-10)
    torch.testing.assert_close(gradient, slope[order], rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("temperature", TEMPERATURES)
def test_equal_embeddings_are_finite(temperature: float) -> None:
    z = unit_rows(1, 8, dtype=torch.float32).repeat(20, 1)
    loss, gradient = value_and_gradient(contrastive, z, torch.arange(10).repeat(2), temperature)
    assert loss == pytest.approx(temperature / 0.07 * log(19), rel=1e-4)
    assert torch.isfinite(gradient).all()


@pytest.mark.parametrize("temperature", TEMPERATURES)
def test_opposite_embeddings_are_finite(temperature: float) -> None:
    """Every positive is as far away as it can be, and so is nearly everything else."""
    first = unit_rows(1, 8, dtype=torch.float32)
    z = torch.cat([first, -first])
    loss, gradient = value_and_gradient(contrastive, z, torch.tensor([0, 0]), temperature)
    assert loss == pytest.approx(0.0, abs=1e-4)
    assert torch.isfinite(gradient).all()


def test_a_single_pair_of_positives() -> None:
    z, ids = unit_rows(9, 4), torch.tensor([0, 1, 2, 3, 4, 4, 5, 6, 7])
    expected, slope = value_and_gradient(by_loops, z, ids, 0.07)
    found, gradient = value_and_gradient(contrastive, z, ids, 0.07, None)
    assert found == pytest.approx(expected, rel=1e-10)
    torch.testing.assert_close(gradient, slope, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("n", [0, 1, 7])
def test_nothing_is_learned_without_positives(n: int) -> None:
    loss, gradient = value_and_gradient(contrastive, unit_rows(n, 3), torch.arange(n), 0.1)
    assert loss == 0.0
    assert not gradient.any()
    assert gradient.shape == (n, 3)


def test_a_batch_of_one_node_has_nothing_to_tell_apart() -> None:
    loss, gradient = value_and_gradient(contrastive, unit_rows(2, 5), torch.tensor([3, 3]), 0.07)
    assert loss == pytest.approx(0.0, abs=1e-12)
    torch.testing.assert_close(gradient, torch.zeros_like(gradient), rtol=0, atol=1e-12)


def test_gradients_flow_on_through_what_made_the_rows() -> None:
    raw = unit_rows(12, 5) * 3.0
    expected, slope = value_and_gradient(
        lambda x: 2.5 * by_loops(F.normalize(x), IDS["random"], 0.7), raw
    )
    found, gradient = value_and_gradient(
        lambda x: 2.5 * contrastive(F.normalize(x), IDS["random"], 0.7, None), raw
    )
    assert found == pytest.approx(expected, rel=1e-10)
    torch.testing.assert_close(gradient, slope, rtol=1e-8, atol=1e-11)


def test_memory_is_that_of_two_matrices_of_all_pairs_at_most(
    peak_bytes: Callable[[Callable[[], object]], int],
) -> None:
    m = 2400
    matrix = 4 * m * m
    z, ids = unit_rows(m, 4, dtype=torch.float32), torch.arange(m // 2).repeat(2)
    assert peak_bytes(lambda: value_and_gradient(contrastive, z, ids, 0.07)) < 2 * matrix
    # The measure sees what the plain form holds.
    assert peak_bytes(lambda: value_and_gradient(with_masks, z, ids, 0.07)) > 4 * matrix


def test_tiles_that_are_kept_and_tiles_that_are_made_again_give_the_same_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "TILE", {"cpu": 64})
    z, ids = unit_rows(200, 4, dtype=torch.float32), torch.arange(100).repeat(2)
    found = []
    for kept in (0, 1 << 30):
        monkeypatch.setattr(module, "KEPT", kept)
        assert tiles_are_kept(z) == (kept > 0)
        loss, gradient = value_and_gradient(contrastive, z, ids, 0.07)
        found.append((loss, gradient.numpy().tobytes()))
    assert found[0] == found[1]
