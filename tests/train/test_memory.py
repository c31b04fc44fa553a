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

def faults(context, megabytes=24):  # below the largest block that is usually kept
    with context:
        torch.ones(megabytes << 18)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for _ in range(10):
            torch.ones(megabytes << 18)
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

print(faults(nullcontext()), faults(keep_freed_memory()), faults(nullcontext()))
print(faults(nullcontext(), 96), faults(keep_freed_memory(), 96))
print(faults(keep_freed_memory(of_any_size=True), 96), faults(nullcontext(), 96))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has these settings")
def test_memory_is_kept_while_training_and_handed_back_after() -> None:
    out = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, check=True)
    usual, kept, after, large, not_kept, kept_too, large_after = map(int, out.stdout.split())
    assert kept < usual / 4
    assert after > usual / 4
    assert not_kept > large / 4
    assert kept_too < large / 4
    assert large_after > large / 4
