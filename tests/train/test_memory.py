from __future__ import annotations

import platform
import subprocess
import sys

import pytest

PROGRAM = """
import resource
import torch
from contextlib import nullcontext
from openima.train.memory import keep_freed_memory

def faults(context):
    with context:
        torch.ones(6 << 20)  # 24 MB, below the largest block that is kept
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for _ in range(10):
            torch.ones(6 << 20)
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

print(faults(nullcontext()), faults(keep_freed_memory()), faults(nullcontext()))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has these settings")
def test_memory_is_kept_while_training_and_handed_back_after() -> None:
    out = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, check=True)
    usual, kept, after = (int(word) for word in out.stdout.split())
    assert kept < usual / 4
    assert after > usual / 4
