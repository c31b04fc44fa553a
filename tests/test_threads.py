from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest


def policies(**environment: str) -> set[str]:
    """Ask every OpenMP library that openima loads what its waiting threads do."""
    clean = {k: v for k, v in os.environ.items() if k != "OMP_WAIT_POLICY"}
    done = subprocess.run(
        [sys.executable, "-c", "import openima, torch, sklearn.cluster"],
        env=clean | environment | {"OMP_DISPLAY_ENV": "true"},
        capture_output=True,
        text=True,
        check=True,
    )
    found = set(re.findall(r"OMP_WAIT_POLICY\s*=\s*'(\w+)'", done.stderr))
    if not found:
        pytest.skip("the OpenMP library here does not show its settings")
    return found


def test_waiting_threads_sleep() -> None:
    assert policies() == {"PASSIVE"}


def test_another_choice_is_left_alone() -> None:
    assert policies(OMP_WAIT_POLICY="ACTIVE") == {"ACTIVE"}
