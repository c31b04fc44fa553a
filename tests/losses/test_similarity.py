import pytest
import torch
from torch import Tensor

from openima.losses.similarity import similarity_regression


def by_loops(p: Tensor, q: Tensor, weight: Tensor) -> Tensor:
    total = p.new_zeros(())
    for i in range(len(p)):
        for j in range(len(p)):
            cosine = (p[i] @ p[j]) / (p[i].norm() * p[j].norm())
            total = total + weight[i] * weight[j] * (cosine - q[i, j]) ** 2
    return total


def drawn(n: int = 7) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(n, 4, generator=generator, dtype=torch.float64)
    q = torch.rand(n, n, generator=generator, dtype=torch.float64)
    return logits.softmax(1).requires_grad_(), q.requires_grad_()


@pytest.mark.parametrize("even", [True, False])
def test_equals_a_loop_over_ordered_pairs(even: bool) -> None:
    p, q = drawn()
    weight = torch.full((7,), 1 / 7, dtype=torch.float64)
    if not even:
        weight = torch.tensor([0.25, 0.25, 0.1, 0.1, 0.1, 0.1, 0.1], dtype=torch.float64)
    expected, found = by_loops(p, q, weight), similarity_regression(p, q, weight)
    torch.testing.assert_close(found, expected)
    for gradient, slope in zip(
        torch.autograd.grad(found, (p, q)), torch.autograd.grad(expected, (p, q)), strict=True
    ):
        torch.testing.assert_close(gradient, slope)


def test_equal_weights_make_it_the_mean_over_all_pairs() -> None:
    p, q = drawn()
    direction = p / p.norm(dim=1, keepdim=True)
    expected = (direction @ direction.T - q).square().mean()
    weight = torch.full((7,), 1 / 7, dtype=torch.float64)
    torch.testing.assert_close(similarity_regression(p, q, weight), expected)


def test_nothing_is_lost_where_predictions_are_as_alike_as_they_should_be() -> None:
    p = torch.eye(3)[[0, 0, 1, 2]]
    same = (p @ p.T).clone()
    weight = torch.full((4,), 0.25)
    assert similarity_regression(p, same, weight) == 0.0
    assert similarity_regression(p, 1 - same, weight) == 1.0


def test_a_weight_of_two_counts_like_two_copies() -> None:
    p, q = drawn(4)
    index = torch.tensor([0, 0, 1, 2, 3])
    copies = similarity_regression(p[index], q[index][:, index], torch.full((5,), 0.2).double())
    weight = torch.tensor([0.4, 0.2, 0.2, 0.2], dtype=torch.float64)
    torch.testing.assert_close(similarity_regression(p, q, weight), copies, rtol=1e-6, atol=1e-8)
