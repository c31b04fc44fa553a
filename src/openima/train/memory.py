"""Keep memory that a step frees for the next step, instead of handing it back in between."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Iterator
from contextlib import contextmanager

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _MMAP_MAX = -1, -3, -4  # numbers of glibc's mallopt
_WHILE_TRAINING = {_TRIM_THRESHOLD: 2**31 - 1, _MMAP_THRESHOLD: 32 << 20}
_OF_ANY_SIZE = {**_WHILE_TRAINING, _MMAP_MAX: 0}
_USUAL = {_TRIM_THRESHOLD: 128 << 10, _MMAP_THRESHOLD: 128 << 10, _MMAP_MAX: 65536}


SMALL = 48 << 20
"""Bytes for which nothing is handed back: to clear it again would cost a small graph a tenth."""


def trim(before: int = SMALL) -> None:
    """Hand back what is free now, before something else takes so many bytes."""
    if before < SMALL:
        return
    if platform.libc_ver()[0] == "glibc":
        ctypes.CDLL(None).malloc_trim(0)


@contextmanager
def keep_freed_memory(*, of_any_size: bool = False) -> Iterator[None]:
    """Let the C library reuse blocks of up to 32 MB while the body runs; give all back after it.

    A step allocates the same temporaries again and again. By default glibc returns each large
    block to the system and the next one must be cleared page by page, which takes a fifth of a
    step. Larger blocks are returned as usual: keeping them too would gain a few percent and cost
    a tenth of the memory. On large graphs most blocks are larger, and a quarter of a step goes
    into clearing them: `of_any_size` keeps all. Elsewhere than on glibc nothing happens.
    """
    if platform.libc_ver()[0] != "glibc":
        yield
        return
    libc = ctypes.CDLL(None)
    for option, value in (_OF_ANY_SIZE if of_any_size else _WHILE_TRAINING).items():
        libc.mallopt(option, value)
    try:
        yield
    finally:
        for option, value in _USUAL.items():
            libc.mallopt(option, value)
        trim()
