"""Sums over bags of rows: sparse x dense products, and sums over the edges of a node.

Embedding-bag look-ups serve them all: a row of the output is a bag of (weighted) input rows.
"""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping, Sequence
from typing import NamedTuple, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from openima.graph.blocks import sort_by_column

PIECEWISE = ("cuda",)
"""Devices that sum a bag one entry after the other: there, long bags are summed in pieces."""

PIECE = 32
"""Entries of a piece. Nodes with a thousand neighbours no longer hold up all others."""

_KNOWN_PIECES: MutableMapping[Tensor, tuple[Tensor, Tensor]] = WeakTensorKeyDictionary()


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

    def part(self, rows: slice) -> Csr:
        """Return consecutive rows as a matrix of their own."""
        indptr = self.indptr[rows.start : rows.stop + 1]
        entries = slice(int(indptr[0]), int(indptr[-1]))
        return Csr(indptr - entries.start, self.columns[entries], self.values[entries])

    def transposed(self, n_columns: int) -> Csr:
        """Return the same matrix by columns."""
        back = sort_by_column(self.indptr, self.columns, n_columns)
        return Csr(back.indptr, back.rows, self.values.index_select(0, back.entries))


def weighted_sums(rows: Tensor, index: Tensor, indptr: Tensor, weights: Tensor) -> Tensor:
    """Return the rows sum_k weights[k] * rows[index[k]], k in indptr[i]:indptr[i + 1], for all i.

    A sparse x dense product, with (index, indptr, weights) the CSR matrix.
    """
    return _bag_sums(rows, index, indptr, weights)


def sums_by_head(rows: Iterable[Tensor], heads: Sequence[Csr]) -> Tensor:
    """Multiply the matrix of each head (n, n_rows) by its rows (n_rows, D); returns (H, n, D)."""
    indptr, index, _ = heads[0]
    if indptr.device.type not in PIECEWISE:
        out = heads[0].values.new_empty(0)
        for h, (head, of_head) in enumerate(zip(heads, rows, strict=True)):
            if h == 0:
                out = of_head.new_empty(len(heads), len(indptr) - 1, of_head.shape[1])
            out[h] = head.times(of_head)
        return out
    # All heads in one call: a GPU has little to do with one. There they share their edges.
    joined = rows if isinstance(rows, Tensor) else torch.stack(list(rows))
    weights = torch.stack([head.values for head in heads])
    n_heads, n_rows, width = joined.shape
    numbers = torch.arange(n_heads, dtype=index.dtype, device=index.device)[:, None]
    pieces, bags = (_repeated(borders, numbers) for borders in _pieces(indptr))
    index = (index + n_rows * numbers).view(-1)
    sums = _embedding_bag(joined.reshape(-1, width), index, pieces, weights.reshape(-1))
    sums = _embedding_bag(sums, _count_up(len(sums), indptr), bags, None)
    return sums.view(n_heads, -1, width).clone()  # a tensor of its own may be changed in place


def _repeated(borders: Tensor, head: Tensor) -> Tensor:
    """Lay the bags that `borders` part out again for each head."""
    return torch.cat([(borders[:-1] + borders[-1] * head).view(-1), borders[-1:] * len(head)])


def gathered_sum(rows: Tensor, index: Tensor, indptr: Tensor) -> Tensor:
    """Sum rows[index[k]] for k in indptr[i]:indptr[i + 1], for all i."""
    return _bag_sums(rows, index, indptr, None)


def segment_sum(rows: Tensor, indptr: Tensor) -> Tensor:
    """Sum rows[indptr[i]:indptr[i + 1]] for all i."""
    return gathered_sum(rows, _count_up(len(rows), indptr), indptr)


def _bag_sums(rows: Tensor, index: Tensor, indptr: Tensor, weights: Tensor | None) -> Tensor:
    if index.numel() == 0:
        return rows.new_zeros(len(indptr) - 1, rows.shape[1])
    if indptr.device.type not in PIECEWISE:
        return _embedding_bag(rows, index, indptr, weights)
    pieces, bags = _pieces(indptr)
    sums = _embedding_bag(rows, index, pieces, weights)
    return _embedding_bag(sums, _count_up(len(sums), indptr), bags, None)


def _embedding_bag(rows: Tensor, index: Tensor, indptr: Tensor, weights: Tensor | None) -> Tensor:
    return F.embedding_bag(
        index, rows, indptr, per_sample_weights=weights, mode="sum", include_last_offset=True
    )


def _count_up(n: int, like: Tensor) -> Tensor:
    return torch.arange(n, dtype=like.dtype, device=like.device)


def _pieces(indptr: Tensor) -> tuple[Tensor, Tensor]:
    """Cut bags into pieces: where each piece starts, and which pieces are each bag's, both CSR.

    What belongs to an `indptr` is found once and kept for as long as that tensor lives.
    """
    known = _KNOWN_PIECES.get(indptr)
    if known is None:
        counts = (indptr.diff() + (PIECE - 1)) // PIECE
        bags = F.pad(counts.cumsum(0, dtype=indptr.dtype), (1, 0))
        total = int(bags[-1])
        starts = (indptr[:-1] - PIECE * bags[:-1]).repeat_interleave(counts, output_size=total)
        starts += PIECE * _count_up(total, indptr)
        known = torch.cat([starts, indptr[-1:]]), bags
        _KNOWN_PIECES[indptr] = known
    return known
