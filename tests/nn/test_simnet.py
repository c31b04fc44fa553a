from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from openima.losses.similarity import similarity_regression
from openima.nn import simnet
from openima.nn.simnet import SimNet, pair_scores


def rows(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def network(dim: int = 5, hidden: int = 7) -> SimNet:
    net = SimNet(dim, hidden, torch.Generator().manual_seed(1)).double()
    with torch.no_grad():
        net.first.bias.copy_(rows(hidden, seed=2))
        net.second.bias.copy_(rows(1, seed=3))
    return net


def pair_by_pair(net: SimNet, g: Tensor) -> Tensor:
    """The network as it is drawn: both embeddings joined, two linear layers."""
    joined = [torch.stack([torch.cat([b, a]) for a in g]) for b in g]
    hidden = [net.first(of_b).relu() for of_b in joined]
    return torch.stack([net.second(of_b)[:, 0].sigmoid() for of_b in hidden])


@pytest.mark.parametrize("tile", [1, 20, 1 << 17])
def test_equals_the_network_on_joined_pairs(tile: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simnet, "_CPU_TILE", tile)
    net, g, weight = network(), rows(9, 5).requires_grad_(), rows(9, 9, seed=4)
    inputs = [g, *net.parameters()]
    expected = pair_by_pair(net, g)
    slopes = torch.autograd.grad((expected * weight).sum(), inputs)
    found = net(g)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    for gradient, slope in zip(
        torch.autograd.grad((found * weight).sum(), inputs), slopes, strict=True
    ):
        torch.testing.assert_close(gradient, slope, rtol=1e-10, atol=1e-12)
    assert not torch.allclose(found, found.T)  # the order of a pair counts


def test_pairs_of_two_sides_need_not_be_square() -> None:
    first, second, weight = (x.requires_grad_() for x in (rows(4, 3), rows(6, 3, seed=1), rows(3)))
    expected = (first[:, None] + second).relu() @ weight
    torch.testing.assert_close(pair_scores(first, second, weight), expected)
    assert torch.autograd.gradcheck(pair_scores, (first, second, weight))


def test_single_precision_is_close_at_several_tiles() -> None:
    first, second, weight = rows(500, 20), rows(500, 20, seed=1), rows(20, seed=2)
    expected = (first[:, None] + second).relu() @ weight
    found = pair_scores(first.float(), second.float(), weight.float())
    torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1e-4)


def test_the_weights_come_from_the_generator() -> None:
    once, again = (SimNet(8, 4, torch.Generator().manual_seed(5)) for _ in range(2))
    assert all(
        torch.equal(one, other)
        for one, other in zip(once.parameters(), again.parameters(), strict=True)
    )
    assert once.first.weight.shape == (4, 16)


def test_nothing_of_pairs_times_hidden_units_is_held(
    peak_bytes: Callable[[Callable[[], object]], int],
) -> None:
    """Eight matrices of 2,048 x 2,048 pairs are 134 MB; their hidden units would be 1.7 GB."""
    n, hidden = 1500, 100
    net = SimNet(128, hidden, torch.Generator().manual_seed(0))
    g, p = rows(n, 128).float().requires_grad_(), rows(n, 6, seed=1).float().softmax(1)
    weight = torch.full((n,), 1 / n)

    def step() -> None:
        torch.autograd.backward(similarity_regression(p, net(g), weight))

    assert 4 * n * n < peak_bytes(step) < 8 * 4 * n * n < 4 * n * n * hidden / 10
