from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from openima.nn.products import matmul, project


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def medium() -> Iterator[None]:
    """Let float32 products round their factors, as `precision="bfloat16"` does."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    yield
    torch.set_float32_matmul_precision(before)


SIZES = [(5, 3, 4), (1, 1, 1), (64, 129, 33), (0, 3, 2), (3, 0, 2)]


@pytest.mark.parametrize(("n", "k", "m"), SIZES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_product_is_that_of_double_precision(n: int, k: int, m: int, dtype: torch.dtype) -> None:
    a = torch.randn(n, k, generator=seeded(0), dtype=torch.float64).to(dtype)
    b = torch.randn(k, m, generator=seeded(1), dtype=torch.float64).to(dtype)
    expected = (a.double() @ b.double()).to(dtype)
    torch.testing.assert_close(matmul(a, b), expected)
    torch.testing.assert_close(matmul(a.t().contiguous().t(), b.t().contiguous().t()), expected)


@pytest.mark.usefixtures("medium")
def test_rounded_factors_give_the_product_of_rounded_factors() -> None:
    a = torch.randn(40, 300, generator=seeded(0))
    b = torch.randn(300, 20, generator=seeded(1))
    product = matmul(a, b)
    exact = a.double() @ b.double()
    rounded = a.bfloat16().double() @ b.bfloat16().double()
    assert product.dtype == torch.float32
    assert (product - exact).abs().max() > 1e-3  # rounding shows …
    torch.testing.assert_close(product.double(), rounded, rtol=1e-2, atol=1e-1)  # … and is all


def test_a_projection_and_its_gradients_are_those_of_a_batched_product() -> None:
    x = torch.randn(6, 5, generator=seeded(0), dtype=torch.float64, requires_grad=True)
    weight = torch.randn(3, 5, 4, generator=seeded(1), dtype=torch.float64, requires_grad=True)
    out = project(x, weight)
    torch.testing.assert_close(out, torch.matmul(x, weight))
    assert torch.autograd.gradcheck(project, (x, weight))
