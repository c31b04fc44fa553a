"""Make the next item in the background while the last one is in use."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

Item = TypeVar("Item")


def prefetched(items: Iterable[Item]) -> Generator[Item, None, None]:
    """Yield what `items` yields, in its order, each made while the one before is in use.

    One thread makes the items, one after the other, so whatever they draw at random is drawn in
    the same order as without it, and two of them are in memory at most. What goes wrong there is
    raised here. The thread has ended when the last item is used up and when the iterator is
    closed, which waits for no more than the item that is being made.
    """
    source = iter(items)

    def next_one() -> list[Item]:
        return list(islice(source, 1))

    with ThreadPoolExecutor(1, thread_name_prefix="prefetch") as thread:
        coming = thread.submit(next_one)
        while made := coming.result():
            coming = thread.submit(next_one)
            yield made.pop()  # and keep no hold of it
