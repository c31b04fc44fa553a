"""Sums over bags of rows: sparse x dense products, and sums over the edges of a node.

Embedding-bag look-ups serve them all: a row of the output is a bag of (weighted) input rows.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from openima.graph.blocks import sort_by_column


class Factor(Protocol):
    """A constant matrix (n, n_columns) whose products with others are made when needed."""

    def times(self, dense: Tensor) -> Tensor:
        """Multiply by a dense matrix (n_columns, D)."""
        ...

    def transposed(self, n_columns: int) -> Factor:
        """Return the matrix (n_columns, n)."""
        ...


class Csr(NamedTuple):
    """A sparse matrix by rows: row i holds entries indptr[i] to indptr[i + 1]."""

    indptr: Tensor
    columns: Tensor
    values: Tensor

    def times(self, dense: Tensor) -> Tensor:
        """Multiply by a dense matrix (n_columns, D)."""
        return weighted_sums(dense, self.columns, self.indptr, self.values)

    def transposed(self, n_columns: int) -> Csr:
        """Return the same matrix by columns."""
        back = sort_by_column(self.indptr, self.columns, n_columns)
        return Csr(back.indptr, back.rows, self.values.index_select(0, back.entries))


def weighted_sums(rows: Tensor, index: Tensor, indptr: Tensor, weights: Tensor) -> Tensor:
    """Return the rows sum_k weights[k] * rows[index[k]], k in indptr[i]:indptr[i + 1], for all i.

    A sparse x dense product, with (index, indptr, weights) the CSR matrix.
    """
    if index.numel() == 0:
        return rows.new_zeros(len(indptr) - 1, rows.shape[1])
    return F.embedding_bag(
        index, rows, indptr, per_sample_weights=weights, mode="sum", include_last_offset=True
    )


def gathered_sum(rows: Tensor, index: Tensor, indptr: Tensor) -> Tensor:
    """Sum rows[index[k]] for k in indptr[i]:indptr[i + 1], for all i."""
    if index.numel() == 0:
        return rows.new_zeros(len(indptr) - 1, rows.shape[1])
    return F.embedding_bag(index, rows, indptr, mode="sum", include_last_offset=True)


def segment_sum(rows: Tensor, indptr: Tensor) -> Tensor:
    """Sum rows[indptr[i]:indptr[i + 1]] for all i."""
    order = torch.arange(len(rows), dtype=indptr.dtype, device=indptr.device)
    return gathered_sum(rows, order, indptr)
