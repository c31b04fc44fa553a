"""Where tensors live and how finely dense products are computed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from openima.errors import InputError


def pick_device(name: str) -> torch.device:
    """Return the device of that name; "auto" is a GPU where there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError):  # torch raises the latter where it lacks CUDA
        device = None
    if device is None or device.type not in ("cpu", "cuda"):
        raise InputError(
            f"the device {name!r} cannot be used here",
            expected="auto, cpu or, with a GPU that torch can use, cuda",
            remedy="leave it at auto",
        )
    return device


@contextmanager
def matmul_precision(precision: str) -> Iterator[None]:
    """Let dense products round their factors to bfloat16 while the body runs, if that is named."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium" if precision == "bfloat16" else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
