import pytest
import torch
from torch import Tensor

from openima.methods.bilevel import gradient_after_step, moved

X = torch.randn(12, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
TARGET = torch.arange(12) % 3
RATE = 0.05


def weights(*shapes: tuple[int, ...]) -> list[Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [
        torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()
        for shape in shapes
    ]


def hidden(theta: list[Tensor]) -> Tensor:
    return (X @ theta[0]).tanh()


def coupling(theta: list[Tensor], omega: list[Tensor]) -> Tensor:
    """Similarities of outputs, against those that a network with weights omega says."""
    h = hidden(theta)
    p = (h @ theta[1]).softmax(1)
    q = ((h @ omega[0]).tanh() @ (h @ omega[1]).T).sigmoid()
    return (p @ p.T - q).square().mean()


def inner(theta: list[Tensor], omega: list[Tensor]) -> Tensor:
    return coupling(theta, omega) + 0.3 * hidden(theta).square().mean()


def outer(theta: list[Tensor]) -> Tensor:
    return torch.nn.functional.cross_entropy(hidden(theta) @ theta[1], TARGET)


def found_by_differences(theta: list[Tensor], omega: list[Tensor]) -> list[Tensor]:
    return gradient_after_step(
        lambda: inner(theta, omega),
        lambda: outer(theta),
        lambda: coupling(theta, omega),
        theta,
        omega,
        RATE,
    )


def after_step(theta: list[Tensor], omega: list[Tensor], create_graph: bool) -> Tensor:
    slopes = torch.autograd.grad(inner(theta, omega), theta, create_graph=create_graph)
    return outer([t - RATE * slope for t, slope in zip(theta, slopes, strict=True)])


@pytest.fixture
def parameters() -> tuple[list[Tensor], list[Tensor]]:
    drawn = weights((4, 5), (5, 3), (5, 5), (5, 5))
    return drawn[:2], drawn[2:]


def test_equals_differentiating_twice(parameters: tuple[list[Tensor], list[Tensor]]) -> None:
    theta, omega = parameters
    exact = torch.autograd.grad(after_step(theta, omega, create_graph=True), omega)
    for gradient, slope in zip(found_by_differences(theta, omega), exact, strict=True):
        scale = float(slope.abs().max())
        assert scale > 1e-6
        torch.testing.assert_close(gradient, slope, rtol=1e-3, atol=1e-3 * scale)


def test_equals_differences_of_the_loss_after_the_step(
    parameters: tuple[list[Tensor], list[Tensor]],
) -> None:
    theta, omega = parameters
    found = found_by_differences(theta, omega)[0]
    scale = float(found.abs().max())
    for at in ((0, 0), (1, 3), (4, 2)):
        sides = []
        for way in (1e-4, -1e-4):
            with torch.no_grad():
                omega[0][at] += way
            sides.append(after_step(theta, omega, create_graph=False).item())
            with torch.no_grad():
                omega[0][at] -= way
        slope = (sides[0] - sides[1]) / 2e-4
        assert found[at].item() == pytest.approx(slope, rel=1e-2, abs=1e-3 * scale)


def test_parameters_are_to_the_bit_what_they_were(
    parameters: tuple[list[Tensor], list[Tensor]],
) -> None:
    theta, omega = parameters
    before = [parameter.detach().clone() for parameter in (*theta, *omega)]
    found_by_differences(theta, omega)
    assert all(torch.equal(p, old) for p, old in zip((*theta, *omega), before, strict=True))
    assert all(parameter.grad is None for parameter in (*theta, *omega))


def test_no_slope_after_the_step_is_no_gradient(
    parameters: tuple[list[Tensor], list[Tensor]],
) -> None:
    theta, omega = parameters
    found = gradient_after_step(
        lambda: inner(theta, omega),
        lambda: (theta[0] * 0.0).sum(),
        lambda: coupling(theta, omega),
        theta,
        omega,
        RATE,
    )
    assert all(torch.equal(gradient, torch.zeros_like(gradient)) for gradient in found)


def test_an_error_on_the_way_leaves_the_parameters_in_place() -> None:
    (parameter,) = weights((3,))
    before = parameter.detach().clone()

    def fail() -> None:
        with moved([parameter], [torch.ones(3)], 2.0):
            torch.testing.assert_close(parameter.detach(), before + 2.0)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert torch.equal(parameter, before)
