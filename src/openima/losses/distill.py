"""Learning from one's own sharper answer."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor


def distillation(
    student: Tensor, teacher: Tensor, student_temperature: float, teacher_temperature: float
) -> Tensor:
    """Return the mean cross-entropy of softmax(student / t_s) to softmax(teacher / t_t).

    Both are logits (n, C). The teacher is taken as it is: no gradient flows into it.
    """
    target = (teacher.detach() / teacher_temperature).softmax(1)
    return F.cross_entropy(student / student_temperature, target)
