import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from stat import S_IMODE

import pytest
import torch
from safetensors import safe_open

from openima.tensors import save_tensors


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


@pytest.mark.skipif(os.name != "posix", reason="other systems have other permissions")
@pytest.mark.parametrize("mask", [0o022, 0o027, 0o077])
def test_permissions_are_those_of_any_other_file(tmp_path: Path, mask: int) -> None:
    path, other = tmp_path / "a.safetensors", tmp_path / "other"
    with umask(mask):
        for value in (0.0, 1.0):  # the second replaces the first
            save_tensors({"x": torch.full((2,), value)}, path)
        other.touch()
    assert S_IMODE(path.stat().st_mode) == S_IMODE(other.stat().st_mode) == 0o666 & ~mask


def test_any_tensor_and_a_header_come_back(tmp_path: Path) -> None:
    weight = torch.arange(6.0, requires_grad=True).reshape(2, 3).T
    save_tensors({"w": weight}, tmp_path / "a.safetensors", {"run": "{}"})
    with safe_open(tmp_path / "a.safetensors", framework="pt") as file:
        assert file.metadata() == {"run": "{}"}
        assert torch.equal(file.get_tensor("w"), weight)
