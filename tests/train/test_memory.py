from __future__ import annotations

import platform
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from openima.graph.task import Task
from openima.methods.base import Recipe
from openima.train import memory
from openima.train.trainer import train

FAULTS = """
import resource
import torch
from contextlib import nullcontext
from openima.train.memory import _resident, keep_freed_memory

def faults(context, megabytes=24):  # below the largest block that is usually kept
    with context:
        torch.ones(megabytes << 18)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for _ in range(10):
            torch.ones(megabytes << 18)
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

usual, usual_of_large = faults(nullcontext()), faults(nullcontext(), 96)
before = _resident()
print(usual, faults(keep_freed_memory()), (_resident() - before) >> 20)
print(usual_of_large, faults(keep_freed_memory(), 96))
print(faults(keep_freed_memory(of_any_size=True), 96), (_resident() - before) >> 20)
"""


HANDED_BACK = """
import torch
from openima.train import memory

def handed_back(**how):  # of 192 MB that a step leaves
    with memory.keep_freed_memory(**how) as after_step:
        blocks = [torch.ones(24 << 18) for _ in range(8)]
        del blocks
        before = memory._resident()
        after_step()
        return (before - memory._resident()) >> 20

print(handed_back())
memory.KEPT = 128 << 20
print(handed_back(), handed_back(of_any_size=True))
"""

glibc = pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="only glibc has these settings"
)


def printed(program: str) -> Iterator[int]:
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    return map(int, out.stdout.split())


@glibc
def test_memory_is_kept_while_training_and_handed_back_after() -> None:
    usual, kept, left, large, not_kept, kept_too, left_of_large = printed(FAULTS)
    assert kept < usual / 4
    assert not_kept > large / 4
    assert kept_too < large / 4
    assert max(left, left_of_large) < 16  # megabytes


@glibc
def test_more_than_may_be_kept_is_handed_back_after_a_step() -> None:
    little, much, of_any_size = printed(HANDED_BACK)
    assert abs(little) < 16
    assert much > 160
    assert abs(of_any_size) < 16


@glibc
def test_every_step_is_followed_by_a_look_at_what_it_left(
    tiny_task: Task, tiny: Callable[..., Recipe], monkeypatch: pytest.MonkeyPatch
) -> None:
    trims: list[None] = []
    monkeypatch.setattr(memory, "KEPT", -1)
    monkeypatch.setattr(memory, "_resident", lambda: 0)
    monkeypatch.setattr(memory, "trim", lambda: trims.append(None))
    train(tiny_task, tiny(batch_size=64, epochs=3), progress=False)
    assert len(trims) == 2 * 3 + 1  # the last one when training ends
