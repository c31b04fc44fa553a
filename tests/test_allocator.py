from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HUGE = Path("/sys/kernel/mm/transparent_hugepage/enabled")
LENT = HUGE.exists() and "[never]" not in HUGE.read_text()

ASK = """
import re, openima, torch
from pathlib import Path
block = torch.zeros(1 << 25)
maps = Path("/proc/self/smaps").read_text()
print(max(int(kb) for kb in re.findall(r"AnonHugePages: +([0-9]+) kB", maps)))
"""


def huge_kb(**settings: str) -> int:
    """Import openima in a fresh process, fill 128 MB, and read the most huge pages of a block."""
    clean = {k: v for k, v in os.environ.items() if k != "THP_MEM_ALLOC_ENABLE"}
    command = [sys.executable, "-c", ASK]
    found = subprocess.run(command, env=clean | settings, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    return int(found.stdout)


@pytest.mark.skipif(not LENT, reason="this system lends no large pages")
def test_large_tensors_lie_on_large_pages_unless_the_user_says_otherwise() -> None:
    assert huge_kb() > 64 << 10
    if "[always]" not in HUGE.read_text():
        assert huge_kb(THP_MEM_ALLOC_ENABLE="0") < 64 << 10
