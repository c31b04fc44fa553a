import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from openima.losses.prototypes import looks_novel, moved_prototypes


def unit_rows(n: int, dim: int = 6, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return F.normalize(torch.randn(n, dim, generator=generator, dtype=torch.float64), dim=1)


def one_by_one(prototypes: Tensor, rows: Tensor, classes: Tensor, momentum: float) -> Tensor:
    moved = prototypes.clone()
    for row, c in zip(rows, classes.tolist(), strict=True):
        pulled = momentum * moved[c] + (1 - momentum) * row
        moved[c] = pulled / pulled.norm()
    return moved


CLASSES = {
    "mixed": torch.tensor([2, 0, 0, 4, 2, 2, 0, 4, 0, 2, 2, 1]),
    "one class": torch.full((12,), 3),
    "sorted": torch.arange(12) // 3,
    "all different": torch.tensor([4, 1, 0, 2]),
}


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("name", CLASSES)
def test_equals_pulling_one_row_after_the_other(name: str, momentum: float) -> None:
    classes, prototypes = CLASSES[name], unit_rows(5, seed=1)
    rows = unit_rows(len(classes))
    found = moved_prototypes(prototypes, rows, classes, momentum)
    torch.testing.assert_close(found, one_by_one(prototypes, rows, classes, momentum))


def test_many_rows_of_many_classes() -> None:
    classes = torch.randint(0, 15, (700,), generator=torch.Generator().manual_seed(2))
    rows, prototypes = unit_rows(700), unit_rows(15, seed=1)
    found = moved_prototypes(prototypes, rows, classes, 0.9)
    torch.testing.assert_close(found, one_by_one(prototypes, rows, classes, 0.9))


def test_order_within_a_class_counts_and_order_between_classes_does_not() -> None:
    prototypes, rows = unit_rows(3, seed=1), unit_rows(6)
    classes = torch.tensor([0, 1, 0, 1, 0, 1])
    found = moved_prototypes(prototypes, rows, classes, 0.9)
    apart = torch.tensor([0, 2, 4, 1, 3, 5])
    torch.testing.assert_close(
        moved_prototypes(prototypes, rows[apart], classes[apart], 0.9), found
    )
    backwards = torch.arange(5, -1, -1)
    other = moved_prototypes(prototypes, rows[backwards], classes[backwards], 0.9)
    assert not torch.allclose(other[:2], found[:2])


def test_prototypes_stay_unit_length_and_those_without_rows_stay_where_they_are() -> None:
    prototypes = unit_rows(4, seed=1)
    before = prototypes.clone()
    found = moved_prototypes(prototypes, unit_rows(9), torch.tensor([0, 2] * 4 + [0]), 0.9)
    torch.testing.assert_close(found.norm(dim=1), torch.ones(4).double())
    assert torch.equal(found[[1, 3]], before[[1, 3]])
    assert not torch.isclose(found[[0, 2]], before[[0, 2]]).all(1).any()
    assert torch.equal(prototypes, before)  # the given ones are not touched


def test_without_rows_nothing_moves() -> None:
    prototypes = unit_rows(4)
    found = moved_prototypes(prototypes, unit_rows(0), torch.tensor([], dtype=torch.int64), 0.9)
    assert torch.equal(found, prototypes)


@pytest.mark.parametrize("share", [0.5, 0.7, 0.95])
def test_looks_novel_below_a_percentile_of_labelled_rows(share: float) -> None:
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(50, 5, generator=generator, dtype=torch.float64)
    labelled = torch.randn(21, 5, generator=generator, dtype=torch.float64) + torch.eye(5)[0]

    def seen_score(row: np.ndarray) -> float:
        return float(max((row[c] - row.mean()) / row.std(ddof=1) for c in range(2)))

    threshold = np.percentile([seen_score(row) for row in labelled.numpy()], 100 * (1 - share))
    expected = [seen_score(row) < threshold for row in scores.numpy()]
    found = looks_novel(scores, labelled, 2, share)
    assert found.tolist() == expected
    assert 0 < sum(expected) < 50


def test_how_sure_a_row_is_does_not_count_but_where_it_points_does() -> None:
    labelled = torch.tensor([[3.0, 0.0, 0.0, 0.0], [0.0, 3.0, 0.0, 0.0], [2.0, 1.0, 0.0, 0.0]])
    rows = torch.tensor([[9.0, 0.0, 0.0, 0.0], [0.1, 0.0, 0.0, 0.0], [0.0, 0.0, 4.0, 0.0]])
    assert looks_novel(rows, labelled, 2, 0.7).tolist() == [False, False, True]


def test_without_labelled_rows_none_looks_novel_and_equal_scores_are_finite() -> None:
    rows = torch.zeros(3, 4)
    assert looks_novel(rows, rows[:0], 2, 0.7).tolist() == [False] * 3
    assert looks_novel(rows, rows, 2, 0.7).tolist() == [False] * 3
    assert looks_novel(rows[:0], rows, 2, 0.7).tolist() == []
