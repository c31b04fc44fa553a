from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from openima.losses.detection import (
    disagreement,
    discord,
    entropies,
    rejected_uniformity,
    uncertainty,
)


def drawn(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64, requires_grad=True)


def probabilities(row: list[float]) -> list[float]:
    total = sum(math.exp(x) for x in row)
    return [math.exp(x) / total for x in row]


def sigmoid(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x))


def cosine(a: list[float], b: list[float]) -> float:
    dot = sum(x * y for x, y in zip(a, b, strict=True))
    return dot / math.sqrt(sum(x * x for x in a)) / math.sqrt(sum(y * y for y in b))


def test_entropies_equal_a_loop() -> None:
    logits = drawn(6, 3)
    expected = [-sum(p * math.log(p) for p in probabilities(row)) for row in logits.tolist()]
    assert entropies(logits).tolist() == pytest.approx(expected)
    assert torch.autograd.gradcheck(entropies, (logits,))


def test_entropy_is_finite_where_the_classifier_is_sure() -> None:
    logits = torch.tensor([[1e4, 0.0], [0.0, 0.0]], requires_grad=True)
    found = entropies(logits)
    assert found.tolist() == pytest.approx([0.0, math.log(2)])
    (gradient,) = torch.autograd.grad(found.sum(), logits)
    assert gradient.isfinite().all()


def test_disagreement_equals_a_loop() -> None:
    scores, entropy = drawn(7, 2), drawn(7, seed=1)
    values = entropy.tolist()
    mean = sum(values) / 7
    std = math.sqrt(sum((x - mean) ** 2 for x in values) / 7)
    unsure = [sigmoid((x - mean) / std) for x in values]
    cosines = [cosine([sigmoid(x) for x in layer], unsure) for layer in scores.T.tolist()]
    assert disagreement(scores, entropy).item() == pytest.approx(-sum(cosines) / 2)
    assert torch.autograd.gradcheck(disagreement, (scores, entropy))


def test_disagreement_is_least_where_scores_follow_entropy() -> None:
    entropy = torch.linspace(0.0, 1.0, 9)
    standard = ((entropy - entropy.mean()) / entropy.std(correction=0))[:, None].repeat(1, 2)
    assert disagreement(standard, entropy).item() == pytest.approx(-1.0)
    assert disagreement(standard, entropy) < disagreement(-standard, entropy) - 0.1


def test_following_the_gradient_turns_scores_towards_entropy() -> None:
    """High scores come to mean high entropy, from scores that say the opposite."""
    entropy = torch.linspace(0.0, 1.0, 9)
    scores = (-3.0 * (entropy - 0.5))[:, None].repeat(1, 2).requires_grad_()
    for _ in range(300):
        (gradient,) = torch.autograd.grad(disagreement(scores, entropy), scores)
        scores = (scores - 10.0 * gradient).detach().requires_grad_()
    assert (scores.diff(dim=0) > 0).all()


@pytest.mark.parametrize("n", [1, 4])
def test_equal_entropies_and_single_nodes_stay_finite(n: int) -> None:
    scores, entropy = torch.randn(n, 2, requires_grad=True), torch.full((n,), 0.3).requires_grad_()
    loss = disagreement(scores, entropy)
    assert loss.isfinite()
    for gradient in torch.autograd.grad(loss, (scores, entropy)):
        assert gradient.isfinite().all()


def test_discord_equals_a_loop() -> None:
    scores = drawn(5, 2)
    assert discord(scores).item() == pytest.approx(-cosine(*scores.T.tolist()))
    assert torch.autograd.gradcheck(discord, (scores,))


def test_only_rejected_nodes_are_made_uniform() -> None:
    logits, novelty = drawn(6, 3), torch.tensor([0.1, 0.6, 0.9, 0.59, 0.7, 0.2]).double()
    terms = []
    for row, score in zip(logits.tolist(), novelty.tolist(), strict=True):
        if score >= 0.6:
            terms.append(-sum(math.log(p) for p in probabilities(row)) / 3)
    assert len(terms) == 3
    found = rejected_uniformity(logits, novelty, 0.6)
    assert found.item() == pytest.approx(sum(terms) / 3)
    assert torch.autograd.gradcheck(lambda x: rejected_uniformity(x, novelty, 0.6), (logits,))
    assert rejected_uniformity(logits, novelty, 0.95).item() == 0.0


def test_uniformity_sends_no_gradient_into_novelty() -> None:
    logits, novelty = drawn(4, 2), torch.ones(4, dtype=torch.float64, requires_grad=True)
    loss = rejected_uniformity(logits, novelty, 0.5)
    gradients = torch.autograd.grad(loss, (logits, novelty), allow_unused=True)
    assert gradients[0].any()
    assert gradients[1] is None


@pytest.mark.parametrize("below", [0.5, 0.75, 1.0])
def test_uncertainty_equals_a_loop_over_unsure_nodes(below: float) -> None:
    logits = drawn(30, 4)
    terms = []
    for row in logits.tolist():
        p = probabilities(row)
        if 0.25 < max(p) < below:
            terms += [x * math.log(x) for x in p]
    assert 0 < len(terms) <= 120
    found = uncertainty(logits, below)
    assert found.item() == pytest.approx(sum(terms) / len(terms))
    (gradient,) = torch.autograd.grad(found, logits)
    (entropy_gradient,) = torch.autograd.grad(entropies(logits).sum(), logits)
    sure = torch.softmax(logits, 1).amax(1) >= below
    assert not gradient[sure].any()
    torch.testing.assert_close(gradient[~sure], -entropy_gradient[~sure] / len(terms))


@pytest.mark.parametrize("n", [0, 1, 20])
def test_with_two_classes_no_node_is_unsure_below_a_half_and_the_loss_is_zero(n: int) -> None:
    logits = torch.randn(n, 2, requires_grad=True)
    loss = uncertainty(logits, 0.5)
    (gradient,) = torch.autograd.grad(loss, logits)
    assert loss.item() == 0.0
    assert not gradient.any()
    if n == 20:
        assert uncertainty(logits, 0.75).item() < 0.0
