from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from openima.train.prefetch import prefetched


def threads() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("prefetch")]


@pytest.mark.parametrize("n", [0, 1, 2, 17])
def test_items_come_in_their_order_and_the_thread_ends_with_them(n: int) -> None:
    assert list(prefetched(range(n))) == list(range(n))
    assert not threads()


def test_the_next_item_is_made_while_the_last_is_in_use_and_no_further() -> None:
    made: list[int] = []
    started = threading.Semaphore(0)

    def items() -> Iterator[int]:
        for i in range(5):
            made.append(i)
            started.release()
            yield i

    with closing(prefetched(items())) as source:
        for i in source:
            for _ in range(2 if i == 0 else int(i < 4)):
                assert started.acquire(timeout=5), "the next item is not being made"
            assert made == list(range(min(i + 2, 5)))
            assert not started.acquire(timeout=0.01), "items pile up"
    assert not threads()


def test_items_are_made_in_one_other_thread() -> None:
    makers = set(prefetched(threading.get_ident() for _ in range(5)))
    assert len(makers) == 1
    assert threading.get_ident() not in makers


def test_an_error_comes_through_where_its_item_would_have_come() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise KeyError("no such node")

    source = prefetched(items())
    assert next(source) == 1
    with pytest.raises(KeyError, match="no such node"):
        next(source)
    assert not threads()


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_whoever_stops_ends_the_thread_too(error: type[BaseException]) -> None:
    def use() -> None:
        with closing(prefetched(range(10))) as source:
            for i in source:
                if i == 3:
                    raise error

    with pytest.raises(error):
        use()
    assert not threads()
