from itertools import chain

import numpy as np
import pytest

from openima.train.batching import (
    BATCHINGS,
    Batching,
    EvenBatches,
    HalfLabelledBatches,
    ShuffledBatches,
    n_steps,
)

N = 100
TRAIN = np.arange(0, N, 7)  # 15 nodes


def drawn(batching: Batching, size: int | None, seed: int = 0) -> list[list[int]]:
    return [b.tolist() for b in batching(TRAIN, N, size, np.random.default_rng(seed))]


@pytest.mark.parametrize("size", [1, 7, 30, 99, 100, 500, None])
@pytest.mark.parametrize("kind", sorted(BATCHINGS))
def test_there_are_as_many_batches_as_steps_and_none_has_a_node_twice(
    kind: str, size: int | None
) -> None:
    batches = drawn(BATCHINGS[kind](), size)
    assert len(batches) == n_steps(N, size)
    for batch in batches:
        assert 0 < len(batch) == len(set(batch)) <= (size or N)
        assert set(batch) <= set(range(N))


@pytest.mark.parametrize("kind", sorted(BATCHINGS))
def test_the_seed_decides(kind: str) -> None:
    batching = BATCHINGS[kind]()
    assert drawn(batching, 30, 1) == drawn(batching, 30, 1) != drawn(batching, 30, 2)


@pytest.mark.parametrize("batching", [ShuffledBatches(), EvenBatches()])
@pytest.mark.parametrize("size", [7, 30, 100, None])
def test_every_node_comes_once(batching: Batching, size: int | None) -> None:
    assert sorted(chain.from_iterable(drawn(batching, size))) == list(range(N))


def test_shuffled_batches_are_full_but_for_the_last() -> None:
    assert [len(batch) for batch in drawn(ShuffledBatches(), 30)] == [30, 30, 30, 10]


def test_even_batches_share_the_labelled_nodes_out() -> None:
    batches = drawn(EvenBatches(), 30)
    assert sorted(len(set(batch) & set(TRAIN.tolist())) for batch in batches) == [3, 4, 4, 4]
    assert {len(batch) for batch in batches} == {25}


@pytest.mark.parametrize(("size", "n_labelled"), [(10, 5), (20, 10), (30, 15), (60, 15)])
def test_half_of_a_batch_has_labels_or_all_that_have_any(size: int, n_labelled: int) -> None:
    batches = drawn(HalfLabelledBatches(), size)
    assert {len(batch) for batch in batches} == {size}
    assert {len(set(batch) & set(TRAIN.tolist())) for batch in batches} == {n_labelled}
    labelled = {tuple(sorted(set(batch) & set(TRAIN.tolist()))) for batch in batches}
    assert len(labelled) == (1 if n_labelled == len(TRAIN) else len(batches))


def test_half_labelled_batches_go_through_the_others_before_any_comes_again() -> None:
    batches = drawn(HalfLabelledBatches(), 34)  # 15 labelled and 19 others, three times
    others = [node for batch in batches for node in batch if node % 7]
    assert len(others) == len(set(others)) == 57


def test_without_other_nodes_all_have_labels() -> None:
    batches = HalfLabelledBatches()(np.arange(10), 10, 4, np.random.default_rng(0))
    assert [len(batch) for batch in batches] == [4, 4, 4]
