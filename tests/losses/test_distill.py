from math import exp, log

import pytest
import torch
from torch import Tensor

from openima.losses.distill import distillation


def drawn(seed: int) -> Tensor:
    return torch.randn(4, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def softmax(row: list[float], temperature: float) -> list[float]:
    powers = [exp(o / temperature) for o in row]
    return [power / sum(powers) for power in powers]


@pytest.mark.parametrize("teacher_temperature", [0.07, 0.04, 0.5])
def test_equals_a_loop_over_nodes(teacher_temperature: float) -> None:
    student, teacher = drawn(0), drawn(1)
    losses = []
    for a, b in zip(student.tolist(), teacher.tolist(), strict=True):
        target, found = softmax(b, teacher_temperature), softmax(a, 0.1)
        losses.append(-sum(t * log(p) for t, p in zip(target, found, strict=True)))
    loss = distillation(student, teacher, 0.1, teacher_temperature)
    assert loss.item() == pytest.approx(sum(losses) / 4, rel=1e-10)


def test_the_teacher_is_not_taught() -> None:
    student, teacher = drawn(0).requires_grad_(), drawn(1).requires_grad_()
    torch.autograd.backward(distillation(student, teacher, 0.1, 0.04))
    assert teacher.grad is None
    assert student.grad is not None
    assert student.grad.any()


def test_the_best_student_says_what_the_sharpened_teacher_says() -> None:
    teacher = drawn(1)
    student = (teacher * 0.1 / 0.04).requires_grad_()
    (slope,) = torch.autograd.grad(distillation(student, teacher, 0.1, 0.04), student)
    torch.testing.assert_close(slope, torch.zeros_like(slope), rtol=0, atol=1e-12)
