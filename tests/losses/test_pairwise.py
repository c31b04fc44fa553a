from collections import Counter
from math import exp, log

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from openima.losses.pairwise import TILE, agreement_loss, nearest_others, same_label_partners


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def softmax(row: list[float]) -> list[float]:
    powers = [exp(o) for o in row]
    return [power / sum(powers) for power in powers]


def test_agreement_equals_a_loop_over_pairs() -> None:
    first, second = 3 * drawn(5, 4), 3 * drawn(5, 4, seed=1)
    losses = []
    for a, b in zip(first.tolist(), second.tolist(), strict=True):
        losses.append(-log(sum(p * q for p, q in zip(softmax(a), softmax(b), strict=True))))
    assert agreement_loss(first, second).item() == pytest.approx(sum(losses) / 5, rel=1e-12)


def test_agreement_teaches_both_sides() -> None:
    first, second = drawn(5, 4).requires_grad_(), drawn(5, 4, seed=1).requires_grad_()
    assert torch.autograd.gradcheck(agreement_loss, (first, second))


def test_a_hopeless_pair_counts_100_at_most_and_stays_finite() -> None:
    first = torch.tensor([[900.0, 0.0], [0.0, 0.0]], requires_grad=True)
    second = torch.tensor([[0.0, 900.0], [0.0, 0.0]])
    loss = agreement_loss(first, second)
    (slope,) = torch.autograd.grad(loss, first)
    assert loss.item() == pytest.approx((100 + log(2)) / 2)
    assert torch.isfinite(slope).all()


@pytest.mark.parametrize("n", [2, 3, 40])
def test_the_nearest_other_is_found_by_a_loop_too(n: int) -> None:
    z = F.normalize(drawn(n, 3))
    expected = []
    for i in range(n):
        others = [j for j in range(n) if j != i]
        expected.append(max(others, key=lambda j: float(z[i] @ z[j])))
    assert nearest_others(z).tolist() == expected


def test_tiles_change_nothing() -> None:
    z = F.normalize(drawn(2 * TILE + 3, 5))
    similarity = z @ z.t()
    similarity.fill_diagonal_(-2.0)
    assert torch.equal(nearest_others(z), similarity.argmax(1))


def test_only_a_tile_of_similarities_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []

    def noted(a: Tensor, b: Tensor) -> Tensor:
        sizes.append(len(a) * b.shape[1])
        return a @ b

    monkeypatch.setattr("openima.losses.pairwise.matmul", noted)
    n = 2 * TILE + 3
    nearest_others(F.normalize(drawn(n, 2)))
    assert sizes == [TILE * n, TILE * n, 3 * n]


def test_the_nearest_is_another_row_even_if_it_is_the_same() -> None:
    z = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    assert nearest_others(z).tolist()[:2] == [1, 0]


def test_a_row_alone_is_its_own() -> None:
    z = torch.ones(1, 1, requires_grad=True)
    assert nearest_others(z).tolist() == [0]
    assert same_label_partners(torch.tensor([5]), torch.Generator()).tolist() == [0]


def test_no_rows_have_no_partners() -> None:
    assert nearest_others(torch.empty(0, 3)).shape == (0,)
    none = torch.empty(0, dtype=torch.int64)
    assert same_label_partners(none, torch.Generator()).shape == (0,)


def test_every_other_row_of_the_label_is_drawn_equally_often() -> None:
    labels = torch.tensor([4, 0, 4, -1, 4, 0, 4, 7])
    generator = torch.Generator().manual_seed(0)
    draws = torch.stack([same_label_partners(labels, generator) for _ in range(3000)])
    for i, label in enumerate(labels.tolist()):
        others = [j for j in range(8) if j != i and labels[j] == label] or [i]
        counts = Counter(draws[:, i].tolist())
        assert set(counts) == set(others)
        # Three standard deviations of a count of 3000 / 3 draws are 77.
        assert all(abs(counts[j] - 3000 / len(others)) < 100 for j in others)


def test_partners_are_drawn_from_the_given_generator_alone() -> None:
    labels = torch.zeros(50, dtype=torch.int64)
    first, again, other = (
        same_label_partners(labels, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
