from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from openima.nn.sparse import sparse_matmul


def product_of(rows: Sequence[Sequence[tuple[int, float]]], weight: Tensor) -> Tensor:
    """Multiply rows of (column, value), stored as they come: unsorted, and twice if given twice."""
    lengths = torch.tensor([0, *(len(row) for row in rows)])
    entries = [entry for row in rows for entry in row]
    columns = torch.tensor([column for column, _ in entries], dtype=torch.int32)
    values = torch.tensor([value for _, value in entries], dtype=weight.dtype)
    return sparse_matmul(lengths.cumsum(0).to(torch.int32), columns, values, weight)


def dense_of(rows: Sequence[Sequence[tuple[int, float]]], n_columns: int) -> Tensor:
    dense = torch.zeros(len(rows), n_columns, dtype=torch.float64)
    for i, row in enumerate(rows):
        for column, value in row:
            dense[i, column] += value
    return dense


def weights(n_columns: int, heads: int = 2, width: int = 3) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    shape = (heads, n_columns, width)
    return torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()


CASES: dict[str, list[list[tuple[int, float]]]] = {
    "empty rows": [[], [(1, 2.0), (3, -1.0)], [], [(0, 0.5)], []],
    "nothing stored": [[], [], []],
    "no rows": [],
    "a column twice in a row": [[(2, 1.0), (0, 3.0), (2, 4.0)], [(2, -1.0)]],
    "a zero stored": [[(1, 0.0)], [(1, 0.0), (3, 1.0)]],
    "one value": [[(3, -2.5)]],
}


@pytest.mark.parametrize("case", CASES)
def test_equals_the_dense_product_and_its_gradient(case: str) -> None:
    rows = CASES[case]
    weight = weights(4)
    product = product_of(rows, weight)
    expected = dense_of(rows, 4) @ weight
    torch.testing.assert_close(product, expected)
    upstream = torch.randn_like(product)
    (gradient,) = torch.autograd.grad(product, weight, upstream)
    (wanted,) = torch.autograd.grad(expected, weight, upstream)
    torch.testing.assert_close(gradient, wanted)


@settings(deadline=None, max_examples=60)
@given(data=st.data(), n_columns=st.integers(1, 6))
def test_equals_the_dense_product_for_any_matrix(data: st.DataObject, n_columns: int) -> None:
    entry = st.tuples(st.integers(0, n_columns - 1), st.floats(-10, 10))
    rows = data.draw(st.lists(st.lists(entry, max_size=5), max_size=6))
    weight = weights(n_columns)
    product = product_of(rows, weight)
    expected = dense_of(rows, n_columns) @ weight
    torch.testing.assert_close(product, expected, rtol=1e-10, atol=1e-12)
    gradient = torch.autograd.grad(product.square().sum(), weight)[0]
    wanted = torch.autograd.grad(expected.square().sum(), weight)[0]
    torch.testing.assert_close(gradient, wanted, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("case", [case for case in CASES if case != "no rows"])
def test_the_gradient_equals_finite_differences(case: str) -> None:
    rows = CASES[case]
    assert torch.autograd.gradcheck(lambda weight: product_of(rows, weight), (weights(4),))


def test_a_gradient_that_is_one_number_repeated_is_understood() -> None:
    weight = weights(4)
    rows = CASES["empty rows"]
    gradient = torch.autograd.grad(product_of(rows, weight).sum(), weight)[0]
    expected = dense_of(rows, 4).sum(0)[None, :, None].expand_as(weight)
    torch.testing.assert_close(gradient, expected)
