"""Tensors on disk: safetensors files, which hold nothing that can run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from stat import S_IMODE

from safetensors.torch import save_file
from torch import Tensor


def save_tensors(
    tensors: Mapping[str, Tensor], path: Path, metadata: Mapping[str, str] | None = None
) -> None:
    """Write tensors of any device to a file that those may read who may read its neighbours.

    safetensors leaves a file that its owner alone can read, whatever the umask; the permissions
    are those of a file that is made in the usual way.
    """
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    path.touch()
    usual = S_IMODE(path.stat().st_mode)
    save_file(plain, path, None if metadata is None else dict(metadata))
    if S_IMODE(path.stat().st_mode) != usual:
        path.chmod(usual)
