"""Fixtures that several test modules share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def data_root() -> Path:
    """Find the folder of the real graphs; skip where they are absent."""
    root = Path(os.environ.get("OPENIMA_DATA", REPOSITORY.parent / "shared" / "data"))
    if not (root / "CiteSeer" / "raw").is_dir():
        pytest.skip(f"the real graphs are not in {root}; set OPENIMA_DATA to their folder")
    return root
