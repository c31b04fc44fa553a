import json
import platform
from pathlib import Path

import numpy as np
import pytest
import torch

from openima.study import environment
from openima.study.environment import commit, forget_peak_memory, machine, peak_memory_mb, versions

CPU = torch.device("cpu")


def test_the_peak_of_memory_is_that_since_it_was_forgotten() -> None:
    before = peak_memory_mb(CPU)["peak_memory_mb"]
    large = np.ones(int(before + 200) * 131_072)  # float64: so many MiB
    high = peak_memory_mb(CPU)
    assert high["peak_memory_mb"] > before + 200
    assert high["peak_gpu_memory_mb"] == 0
    del large
    if Path("/proc/self/clear_refs").exists():
        forget_peak_memory(CPU)
        assert peak_memory_mb(CPU)["peak_memory_mb"] < high["peak_memory_mb"] - 200


def test_a_machine_is_described_without_its_name() -> None:
    assert "cores" in machine("cpu")
    assert platform.node() not in machine("cpu")


def test_versions_and_commit() -> None:
    assert json.loads(versions())["torch"] == torch.__version__
    found = commit()
    assert not found or len(found.rstrip("+")) == 12


def test_without_git_there_is_no_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_git(*_: object, **__: object) -> None:
        raise FileNotFoundError("git")

    monkeypatch.setattr("subprocess.run", no_git)
    assert environment._git(Path(), "status") == ""
