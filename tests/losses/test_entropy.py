from math import log

import pytest
import torch
from scipy.stats import entropy as of_scipy

from openima.losses.entropy import entropy


def test_equals_scipy_row_by_row() -> None:
    p = torch.rand(7, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    p = p / p.sum(1, keepdim=True)
    assert entropy(p).tolist() == pytest.approx([of_scipy(row) for row in p.numpy()], rel=1e-12)


def test_it_is_largest_for_classes_of_equal_size_and_vanishes_for_one_class() -> None:
    assert entropy(torch.full((6,), 1 / 6)).item() == pytest.approx(log(6))
    assert entropy(torch.tensor([1.0, 0.0, 0.0])).item() == pytest.approx(0.0, abs=1e-6)


def test_the_slope_is_finite_where_a_class_is_empty() -> None:
    p = torch.tensor([0.0, 0.25, 0.75], requires_grad=True)
    (slope,) = torch.autograd.grad(entropy(p), p)
    assert torch.isfinite(slope).all()
    torch.testing.assert_close(slope[1:], -p[1:].detach().log() - 1)
