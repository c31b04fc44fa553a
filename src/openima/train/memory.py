"""Keep memory that a step frees for the next step, instead of handing it back in between."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from mmap import PAGESIZE
from pathlib import Path

KEPT = 768 << 20
"""Bytes of freed memory that may be kept: what a step on most of the paper's graphs leaves."""

SMALL = 48 << 20
"""Bytes for which nothing is handed back: to clear it again would cost a small graph a tenth."""

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _MMAP_MAX = -1, -3, -4  # numbers of glibc's mallopt
_WHILE_TRAINING = {_TRIM_THRESHOLD: 2**31 - 1, _MMAP_THRESHOLD: 32 << 20}
_OF_ANY_SIZE = {**_WHILE_TRAINING, _MMAP_MAX: 0}
_USUAL = {_TRIM_THRESHOLD: 128 << 10, _MMAP_THRESHOLD: 128 << 10, _MMAP_MAX: 65536}


def trim(before: int = SMALL) -> None:
    """Hand back what is free now, before something else takes so many bytes."""
    if before < SMALL:
        return
    if platform.libc_ver()[0] == "glibc":
        ctypes.CDLL(None).malloc_trim(0)


@contextmanager
def keep_freed_memory(*, of_any_size: bool = False) -> Iterator[Callable[[], None]]:
    """Let the C library reuse blocks of up to 32 MB while the body runs; give all back after it.

    A step allocates the same temporaries again and again. By default glibc returns each large
    block to the system and the next one must be cleared page by page, which takes a fifth of a
    step. Larger blocks are returned as usual: keeping them too would gain a few percent and cost
    a tenth of the memory. On large graphs most blocks are larger, and a quarter of a step goes
    into clearing them: `of_any_size` keeps all. Elsewhere than on glibc nothing happens.

    The body gets a function to call after every step. Steps differ in size, so gaps that one
    leaves do not fit the next, and add up to gigabytes: once more than `KEPT` has come together,
    the function hands all back. With `of_any_size` it does nothing.
    """
    if platform.libc_ver()[0] != "glibc":
        yield _nothing
        return
    libc = ctypes.CDLL(None)
    for option, value in (_OF_ANY_SIZE if of_any_size else _WHILE_TRAINING).items():
        libc.mallopt(option, value)
    try:
        yield _nothing if of_any_size else _trimming()
    finally:
        for option, value in _USUAL.items():
            libc.mallopt(option, value)
        trim()


def _nothing() -> None:
    pass


def _trimming() -> Callable[[], None]:
    """Return a function that trims whenever `KEPT` has come on top of what is in use."""
    in_use = _resident()

    def after_step() -> None:
        nonlocal in_use
        if _resident() - in_use > KEPT:
            trim()
            in_use = _resident()

    return after_step


def _resident() -> int:
    """Count the bytes of this process that are in memory and not mapped from files."""
    try:
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()
    except OSError:  # a system that does not tell
        return 0
    return (int(pages[1]) - int(pages[2])) * PAGESIZE
