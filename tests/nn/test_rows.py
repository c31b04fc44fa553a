from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from openima.graph.graph import Graph
from openima.nn.rows import DENSE_FROM, DenseRows, FeatureStore, Rows, SparseRows

CPU = torch.device("cpu")
COUNTS = np.array([[0, 3, 0, 1], [2, 0, 0, 0], [0, 0, 0, 0], [1, 1, 5, 0]])


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def store_of(features: Any) -> FeatureStore:
    return FeatureStore(Graph.from_edges([], [], features, directed=True), CPU)


def matrix_of(rows: Rows) -> torch.Tensor:
    """Read rows back by multiplying them with the identity."""
    n_features = 4 if isinstance(rows, SparseRows) else rows_width(rows)
    return rows.project(torch.eye(n_features)[None])[0]


def rows_width(rows: Rows) -> int:
    pieces = rows.shared_pieces()
    assert pieces is not None
    return pieces.shape[0] * pieces.shape[2]


@pytest.fixture
def sparse_rows() -> Rows:
    """Six stored values in four rows, one of them empty."""
    matrix = sp.csr_array(COUNTS.astype(np.float32))
    indptr, columns = (
        torch.from_numpy(p.astype(np.int32)) for p in (matrix.indptr, matrix.indices)
    )
    return SparseRows(indptr, columns, torch.from_numpy(matrix.data))


@pytest.fixture
def pieces() -> torch.Tensor:
    return torch.randn(3, 5, 4, generator=seeded(0))


def test_pieces_are_columns_side_by_side(pieces: torch.Tensor) -> None:
    rows = DenseRows(pieces)
    joined = torch.cat(list(pieces), dim=1)
    weight = torch.randn(2, 12, 7, generator=seeded(1))
    torch.testing.assert_close(rows.project(weight), joined @ weight)
    torch.testing.assert_close(matrix_of(rows), joined)
    assert rows.shared_pieces() is pieces
    assert rows.n_stored == 60


def test_dense_dropout_keeps_or_doubles_each_value(pieces: torch.Tensor) -> None:
    rows = DenseRows(pieces)
    out = rows.dropout(0.5, seeded(2)).shared_pieces()
    assert out is not None
    dropped = out == 0.0
    assert 0 < int(dropped.sum()) < dropped.numel()
    torch.testing.assert_close(out[~dropped], 2.0 * pieces[~dropped])
    for same in (rows.dropout(0.5, None), rows.dropout(0.0, seeded(0))):
        assert torch.equal(matrix_of(same), matrix_of(rows))


def test_sparse_rows_multiply_as_their_matrix_does(sparse_rows: Rows) -> None:
    weight = torch.randn(3, 4, 2, generator=seeded(1))
    expected = torch.from_numpy(COUNTS).float() @ weight
    torch.testing.assert_close(sparse_rows.project(weight), expected)
    assert sparse_rows.shared_pieces() is None
    assert sparse_rows.n_stored == 6


@pytest.mark.parametrize("p", [0.2, 0.5, 0.9])
def test_sparse_dropout_leaves_a_sound_matrix(p: float) -> None:
    rng = np.random.default_rng(0)
    matrix = sp.csr_array(sp.random_array((200, 50), density=0.2, rng=rng, dtype=np.float32))
    before = matrix.toarray()
    parts = [torch.from_numpy(x.astype(np.int32)) for x in (matrix.indptr, matrix.indices)]
    rows = SparseRows(parts[0], parts[1], torch.from_numpy(matrix.data))
    out = rows.dropout(p, seeded(3))
    assert isinstance(out, SparseRows)
    assert out.indptr.dtype == out.columns.dtype == torch.int32
    assert out.indptr[0] == 0
    assert out.indptr[-1] == out.n_stored == len(out.columns)
    assert (out.indptr.diff() >= 0).all()
    assert (out.indptr.diff() <= rows.indptr.diff()).all()
    after = sp.csr_array((out.values, out.columns, out.indptr), shape=(200, 50)).toarray()
    expected = np.where(after != 0.0, before / (1.0 - p), 0.0)
    np.testing.assert_allclose(after, expected, rtol=1e-6)
    np.testing.assert_allclose(
        rows.project(torch.ones(1, 50, 1))[0, :, 0], before.sum(1), rtol=1e-4, atol=1e-5
    )
    np.testing.assert_allclose(
        out.project(torch.ones(1, 50, 1))[0, :, 0], after.sum(1), rtol=1e-4, atol=1e-4
    )
    kept = out.n_stored
    assert abs(kept - matrix.nnz * (1 - p)) < 5 * math.sqrt(matrix.nnz * p * (1 - p))
    assert matrix.toarray().tobytes() == before.tobytes(), "the original was changed"


def test_sparse_dropout_changes_nothing_on_average(sparse_rows: Rows) -> None:
    generator, n_draws = seeded(4), 3000
    draws = torch.stack([matrix_of(sparse_rows.dropout(0.5, generator)) for _ in range(n_draws)])
    matrix = torch.from_numpy(COUNTS).float()
    # A value x is 0 or 2 x with equal chance, so its standard deviation is |x|.
    assert ((draws.mean(0) - matrix).abs() <= 5.0 * matrix / math.sqrt(n_draws)).all()
    assert not draws[:, matrix == 0.0].any()


def test_sparse_rows_without_dropout_stay_as_they_are(sparse_rows: Rows) -> None:
    assert sparse_rows.dropout(0.5, None) is sparse_rows
    assert sparse_rows.dropout(0.0, seeded(0)) is sparse_rows


def test_rows_that_lost_everything_are_zero() -> None:
    nothing = torch.tensor([0, 0, 0], dtype=torch.int32)
    empty = SparseRows(nothing, nothing[:0], torch.zeros(0))
    assert torch.equal(matrix_of(empty.dropout(0.5, seeded(0))), torch.zeros(2, 4))
    one = SparseRows(
        torch.tensor([0, 1], dtype=torch.int32), torch.tensor([2], dtype=torch.int32), torch.ones(1)
    )
    generator = seeded(1)
    seen = {float(matrix_of(one.dropout(0.5, generator)).sum()) for _ in range(20)}
    assert seen == {0.0, 2.0}


@pytest.mark.parametrize("stored_as", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("per_mille", [0, 40, 99, 100, 400])
def test_the_density_decides_and_not_the_storage(
    stored_as: Callable[[Any], Any], per_mille: int
) -> None:
    features = np.zeros((100, 10), dtype=np.float32)
    features.ravel()[:per_mille] = np.arange(per_mille) + 1.0
    rows = store_of(stored_as(features)).rows(np.arange(100))
    assert isinstance(rows, DenseRows if per_mille / 1000 >= DENSE_FROM else SparseRows)
    assert torch.equal(rows.project(torch.eye(10)[None])[0], torch.from_numpy(features))


@pytest.mark.parametrize("stored_as", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.bool_, np.float64])
def test_features_of_any_type_become_float32(
    monkeypatch: pytest.MonkeyPatch, stored_as: Callable[[Any], Any], dtype: Any
) -> None:
    counts = COUNTS.astype(dtype)
    expected = torch.from_numpy(counts[[3, 0]].astype(np.float32))
    for dense_from in (0.0, 1.0):
        monkeypatch.setattr("openima.nn.rows.DENSE_FROM", dense_from)
        rows = store_of(stored_as(counts)).rows(np.array([3, 0]))
        assert isinstance(rows, DenseRows) is (dense_from == 0.0)
        product = rows.project(torch.eye(4)[None])[0]
        assert product.dtype == torch.float32
        assert torch.equal(product, expected)


def test_dense_features_of_half_precision_may_be_mostly_zero() -> None:
    features = np.zeros((30, 4), dtype=np.float16)
    features[3, 1] = 0.5
    rows = store_of(features).rows(np.array([3]))
    assert torch.equal(matrix_of(rows), torch.tensor([[0.0, 0.5, 0.0, 0.0]]))


@pytest.mark.parametrize("dense_from", [0.0, 1.0])
def test_rows_come_in_the_order_asked_for(
    monkeypatch: pytest.MonkeyPatch, dense_from: float
) -> None:
    monkeypatch.setattr("openima.nn.rows.DENSE_FROM", dense_from)
    store = store_of(COUNTS)
    for nodes in ([2, 0, 3, 1], [1], [0, 1, 2, 3], [3, 3], []):
        rows = store.rows(np.array(nodes, dtype=np.int64))
        expected = torch.from_numpy(COUNTS[nodes]).float().reshape(-1, 4)
        assert torch.equal(matrix_of(rows), expected)


def test_a_view_does_not_write_into_the_features() -> None:
    features = np.ones((6, 5), dtype=np.float32)
    rows = store_of(features).rows(np.arange(6))
    rows.dropout(0.5, seeded(0)).project(torch.ones(1, 5, 2))
    assert (features == 1.0).all()


def test_normalised_rows_add_up_to_one_and_empty_ones_stay(sparse_rows: Rows) -> None:
    expected = torch.tensor([[0, 0.75, 0, 0.25], [1, 0, 0, 0], [0, 0, 0, 0], [1, 1, 5, 0]])
    expected[3] /= 7.0
    dense = DenseRows(torch.from_numpy(COUNTS.astype(np.float32)).view(4, 2, 2).transpose(0, 1))
    for rows in (sparse_rows, dense):
        torch.testing.assert_close(matrix_of(rows.normalised()), expected)
        assert torch.equal(matrix_of(rows), torch.from_numpy(COUNTS).float())
        torch.testing.assert_close(matrix_of(rows.normalised().normalised()), expected)


def test_normalising_counts_values_by_their_size(pieces: torch.Tensor) -> None:
    found = matrix_of(DenseRows(pieces).normalised())
    joined = torch.cat(list(pieces), dim=1)
    torch.testing.assert_close(found, joined / joined.abs().sum(1, keepdim=True))
