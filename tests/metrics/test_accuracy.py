from itertools import permutations
from math import isnan, nan

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from openima.errors import InputError
from openima.metrics import OpenWorldAccuracy, open_world_accuracy, validation_accuracy

repeatable = settings(derandomize=True, deadline=None, max_examples=80)
nodes = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=40)
seen_classes = st.integers(0, 5)


def every_accuracy(
    pairs: list[tuple[int, int]], n_seen: int
) -> tuple[list[float], set[tuple[float, float]]]:
    """Try all permutations: every reachable All, and (Seen, Novel) of those that are best."""
    size = 1 + max(max(pair) for pair in pairs)
    results = []
    for order in permutations(range(size)):
        right = [order[p] == c for p, c in pairs]
        seen = [ok for ok, (_, c) in zip(right, pairs, strict=True) if c < n_seen]
        novel = [ok for ok, (_, c) in zip(right, pairs, strict=True) if c >= n_seen]
        results.append((share(right), share(seen), share(novel)))
    best = max(r[0] for r in results)
    return [r[0] for r in results], {r[1:] for r in results if r[0] == best}


def share(right: list[bool]) -> float:
    return sum(right) / len(right) if right else -1.0


def or_minus_one(value: float) -> float:
    return -1.0 if isnan(value) else value


@repeatable
@given(nodes, seen_classes)
def test_agrees_with_trying_every_matching(pairs: list[tuple[int, int]], n_seen: int) -> None:
    predicted, labels = np.array(pairs).T
    found = open_world_accuracy(predicted, labels, n_seen)
    reachable, best = every_accuracy(pairs, n_seen)
    assert found.all == pytest.approx(max(reachable), abs=1e-12)
    assert any(
        pytest.approx(parts, abs=1e-12) == (or_minus_one(found.seen), or_minus_one(found.novel))
        for parts in best
    )
    assert validation_accuracy(predicted, labels) == found.all


@repeatable
@given(nodes, seen_classes, st.permutations(range(9)))
def test_names_of_predicted_ids_do_not_matter(
    pairs: list[tuple[int, int]], n_seen: int, names: list[int]
) -> None:
    predicted, labels = np.array(pairs).T
    renamed = np.array(names)[predicted]
    before = open_world_accuracy(predicted, labels, n_seen)
    after = open_world_accuracy(renamed, labels, n_seen)
    assert after.all == before.all
    if len(every_accuracy(pairs, n_seen)[1]) == 1:  # else ties decide between Seen and Novel
        np.testing.assert_equal((after.seen, after.novel), (before.seen, before.novel))


@repeatable
@given(nodes, seen_classes)
def test_all_is_a_share_between_its_parts(pairs: list[tuple[int, int]], n_seen: int) -> None:
    predicted, labels = np.array(pairs).T
    found = open_world_accuracy(predicted, labels, n_seen)
    parts = [share for share in (found.seen, found.novel) if not isnan(share)]
    assert all(0 <= share <= 1 for share in parts)
    assert min(parts) - 1e-12 <= found.all <= max(parts) + 1e-12
    assert isnan(found.seen) == (not (labels < n_seen).any())
    assert isnan(found.novel) == (not (labels >= n_seen).any())


@repeatable
@given(st.lists(st.integers(0, 6), min_size=1, max_size=50), st.permutations(range(7)))
def test_a_perfect_prediction_gives_one(labels: list[int], names: list[int]) -> None:
    found = open_world_accuracy(np.array(names)[labels], labels, n_seen=3)
    assert found.all == 1.0
    assert {found.seen, found.novel} <= {1.0} or isnan(found.seen) or isnan(found.novel)


def test_every_node_counts_the_same() -> None:
    labels = [0] * 8 + [1] * 2
    predicted = [0] * 8 + [1, 0]
    assert open_world_accuracy(predicted, labels, 1) == OpenWorldAccuracy(0.9, 1.0, 0.5)


def test_seen_and_novel_share_one_matching() -> None:
    """Group 0 goes to class 1 (60 nodes), so class 0 has no group left; that must show.

    A matching made for seen nodes alone would give group 0 to class 0 and report 1.0.
    """
    labels = np.repeat([0, 1], [40, 60])
    predicted = np.zeros(100, dtype=np.int64)
    found = open_world_accuracy(predicted, labels, n_seen=1)
    assert found == OpenWorldAccuracy(all=0.6, seen=0.0, novel=1.0)
    alone = open_world_accuracy(predicted[labels == 0], labels[labels == 0], n_seen=1)
    assert alone.seen == 1.0


def test_predicted_ids_of_seen_classes_are_matched_too() -> None:
    found = open_world_accuracy([1, 1, 0, 0, 2], [0, 0, 1, 1, 2], n_seen=2)
    assert found == OpenWorldAccuracy(1.0, 1.0, 1.0)


def test_groups_may_be_more_or_fewer_than_classes() -> None:
    more = open_world_accuracy([0, 0, 1, 2, 3, 3], [0, 0, 0, 0, 1, 1], n_seen=1)
    assert more == OpenWorldAccuracy(4 / 6, 0.5, 1.0)
    fewer = open_world_accuracy([0, 0, 0], [5, 5, 6], n_seen=6)
    assert fewer == OpenWorldAccuracy(2 / 3, 1.0, 0.0)


def test_absent_groups_are_nan() -> None:
    np.testing.assert_equal(vars(open_world_accuracy([0], [0], 1))["novel"], nan)
    np.testing.assert_equal(vars(open_world_accuracy([0], [1], 1))["seen"], nan)
    assert all(isnan(share) for share in vars(open_world_accuracy([], [], 1)).values())
    assert isnan(validation_accuracy([], []))


def test_tensors_are_accepted_and_nothing_is_changed() -> None:
    predicted, labels = torch.tensor([2, 2, 0]), torch.tensor([0, 0, 1], dtype=torch.int32)
    assert open_world_accuracy(predicted.numpy(), labels.numpy(), 1).all == 1.0
    assert validation_accuracy(np.asarray(predicted), np.asarray(labels)) == 1.0
    assert predicted.tolist() == [2, 2, 0]


@pytest.mark.parametrize(
    ("predicted", "labels", "n_seen", "message"),
    [
        ([0, 1], [0], 1, "labels does not fit the nodes.*Expected 2 numbers. Got 1"),
        ([0, 1], [0, -1], 1, "labels of row 1 is -1.*leave out nodes"),
        ([0, 1], [0, 1], -1, "n_seen cannot be negative"),
        ([True, False], [0, 1], 1, "predicted is a list of whole numbers"),
    ],
)
def test_bad_input_is_refused(
    predicted: list[int], labels: list[int], n_seen: int, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        open_world_accuracy(predicted, labels, n_seen)
