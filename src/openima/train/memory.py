"""Keep memory that a step frees for the next step, instead of handing it back in between."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Iterator
from contextlib import contextmanager

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX = -1, -2, -4  # numbers of glibc's mallopt
_WHILE_TRAINING = {_MMAP_MAX: 0, _TRIM_THRESHOLD: 2**31 - 1, _TOP_PAD: 64 << 20}
_USUAL = {_MMAP_MAX: 65536, _TRIM_THRESHOLD: 128 << 10, _TOP_PAD: 0}


@contextmanager
def keep_freed_memory() -> Iterator[None]:
    """Let the C library reuse large blocks while the body runs, and give all back after it.

    A step allocates the same gigabyte of temporaries again and again. By default glibc returns
    each large block to the system and the next one must be cleared page by page, which took
    up to 40% of a step. Elsewhere than on glibc nothing happens.
    """
    if platform.libc_ver()[0] != "glibc":
        yield
        return
    libc = ctypes.CDLL(None)
    for option, value in _WHILE_TRAINING.items():
        libc.mallopt(option, value)
    try:
        yield
    finally:
        for option, value in _USUAL.items():
            libc.mallopt(option, value)
        libc.malloc_trim(0)
