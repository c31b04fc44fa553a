"""Rows of node features, dense or sparse, behind the few things that a layer does with them."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from openima.graph.graph import Features, Graph, is_mapped
from openima.nn.csr import Csr, Factor, segment_sum
from openima.nn.dropout import counts_before, dropout, keep_mask, places
from openima.nn.products import matmul, project
from openima.nn.sparse import sparse_matmul

DENSE_FROM = 0.1
"""Features with at least this share of non-zeros are multiplied densely, which is then faster."""


class Rows(ABC):
    """A matrix (n, F) of inputs to a layer."""

    @abstractmethod
    def dropout(self, p: float, generator: torch.Generator | None) -> Rows:
        """Drop values with probability p; without a generator nothing is dropped."""

    @abstractmethod
    def normalised(self) -> Rows:
        """Scale each row so that its absolute values add up to 1; rows of zeros stay."""

    @abstractmethod
    def project(self, weight: Tensor) -> Tensor:
        """Multiply by each of the matrices `weight` (H, F, D); returns (H, n, D)."""

    @abstractmethod
    def scored(self, vectors: Tensor) -> tuple[Tensor, Rows]:
        """Multiply by the few columns `vectors` (F, K); returns (n, K) and the rows to go on with.

        What is done with these rows adds to the same gradient, in place.
        """

    @abstractmethod
    def shared_pieces(self) -> Tensor | None:
        """Return the rows as (C, n, W) with C * W = F, or None if they are not dense."""

    @property
    @abstractmethod
    def factor(self) -> Factor | None:
        """The matrix itself if its products had better be made when needed than be kept."""

    @property
    @abstractmethod
    def n_stored(self) -> int:
        """How many values are stored, zeros of a dense matrix included."""


@dataclass(frozen=True)
class DenseRows(Rows):
    """Dense rows in C pieces of W columns each: `pieces` is (C, n, W)."""

    pieces: Tensor

    def dropout(self, p: float, generator: torch.Generator | None) -> Rows:
        """Drop each value on its own."""
        return DenseRows(dropout(self.pieces, p, generator))

    def normalised(self) -> Rows:
        """Divide by the sums over all pieces."""
        totals = torch.linalg.vector_norm(self.pieces, ord=1, dim=(0, 2))
        return DenseRows(self.pieces / _or_one(totals)[:, None])

    def project(self, weight: Tensor) -> Tensor:
        """Multiply by (H, F, D) as one product a head."""
        n_pieces, n, _ = self.pieces.shape
        rows = self.pieces[0] if n_pieces == 1 else self.pieces.transpose(0, 1).reshape(n, -1)
        return project(rows, weight)

    def scored(self, vectors: Tensor) -> tuple[Tensor, Rows]:
        """Multiply piece by piece, without joining them."""
        n_pieces, _, width = self.pieces.shape
        vectors = vectors.view(n_pieces, width, -1)
        if not self.pieces.requires_grad:
            return torch.bmm(self.pieces, vectors).sum(0), self
        scores, pieces = _scored(self.pieces, vectors)
        return scores, DenseRows(pieces)

    def shared_pieces(self) -> Tensor:
        """Return the pieces as they are."""
        return self.pieces

    @property
    def factor(self) -> Factor | None:
        """The rows, if no gradient will need their product a second time."""
        return None if torch.is_grad_enabled() else DenseFactor(self.pieces)

    @property
    def n_stored(self) -> int:
        """How many values there are."""
        return self.pieces.numel()


class _Scored(torch.autograd.Function):
    """Scores of rows, and the rows themselves, so that both gradients meet here.

    That of all later uses, which belongs to nobody else, is added to and not copied.
    """

    @staticmethod
    def forward(ctx: Any, pieces: Tensor, vectors: Tensor) -> tuple[Tensor, Tensor]:
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(pieces, vectors)
        return torch.bmm(pieces, vectors).sum(0), pieces.view_as(pieces)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
        pieces, vectors = ctx.saved_tensors
        d_scores, d_pieces = grads
        if d_scores is None:
            return d_pieces, None
        d_scores = d_scores.expand(len(pieces), *d_scores.shape)
        d_vectors = torch.bmm(pieces.transpose(1, 2), d_scores)
        turned = vectors.transpose(1, 2)
        if d_pieces is None:
            return torch.bmm(d_scores, turned), d_vectors
        return d_pieces.baddbmm_(d_scores, turned), d_vectors


_scored: Callable[..., tuple[Tensor, Tensor]] = _Scored.apply


@dataclass(frozen=True)
class DenseFactor:
    """A dense matrix (n, F) in pieces (C, n, W), multiplied without joining them."""

    pieces: Tensor

    def times(self, dense: Tensor) -> Tensor:
        """Multiply by (F, D), adding up the products of the pieces."""
        parts = dense.view(len(self.pieces), -1, dense.shape[1])
        product = matmul(self.pieces[0], parts[0])
        for piece, part in zip(self.pieces[1:], parts[1:], strict=True):
            product += matmul(piece, part)
        return product

    def transposed(self, n_columns: int) -> DenseFactor:
        """Return the matrix (F, n), in one piece."""
        joined = self.pieces.transpose(0, 1).reshape(-1, n_columns)
        return DenseFactor(joined.t()[None])


@dataclass(frozen=True)
class SparseRows(Rows):
    """CSR rows; only stored values are touched."""

    indptr: Tensor
    columns: Tensor
    values: Tensor

    def dropout(self, p: float, generator: torch.Generator | None) -> Rows:
        """Drop stored values (dropping a zero changes nothing) and close the gaps."""
        if generator is None or p == 0.0:
            return self
        mask = keep_mask(self.values.shape, p, generator)
        kept, indptr = places(mask), counts_before(mask).index_select(0, self.indptr)
        values = self.values.index_select(0, kept).mul_(1.0 / (1.0 - p))
        return SparseRows(indptr, self.columns.index_select(0, kept), values)

    def normalised(self) -> Rows:
        """Divide by the sums of the stored values."""
        totals = _or_one(segment_sum(self.values.abs()[:, None], self.indptr)[:, 0])
        of_value = totals.repeat_interleave(self.indptr.diff(), output_size=len(self.values))
        return SparseRows(self.indptr, self.columns, self.values / of_value)

    def project(self, weight: Tensor) -> Tensor:
        """Multiply by (H, F, D) at a cost in proportion to the stored values."""
        return sparse_matmul(self.indptr, self.columns, self.values, weight)

    def scored(self, vectors: Tensor) -> tuple[Tensor, Rows]:
        """Multiply as a projection of one head."""
        return self.project(vectors[None])[0], self

    def shared_pieces(self) -> None:
        """Sparse rows are always projected first."""
        return

    @property
    def factor(self) -> Csr | None:
        """The rows as a sparse matrix; on a GPU, which has the memory, products are kept."""
        on_cpu = self.values.device.type == "cpu"
        return Csr(self.indptr, self.columns, self.values) if on_cpu else None

    @property
    def n_stored(self) -> int:
        """How many values are stored."""
        return len(self.values)


def _or_one(totals: Tensor) -> Tensor:
    return torch.where(totals > 0, totals, 1.0)


class FeatureStore:
    """Hands out the rows of chosen nodes, dense or sparse by the density of the features.

    Features that are mapped from a file count as dense and stay there: only the rows of chosen
    nodes are read, and made float32.
    """

    def __init__(self, graph: Graph, device: torch.device) -> None:
        """Keep one float32 copy at most; dense features on the CPU are used as they lie.

        On a GPU dense features in memory stay there from the start.
        """
        self.device = device
        self._on_gpu: Tensor | None = None
        features = graph.features
        mapped = is_mapped(features)
        self.is_dense = mapped or graph.density >= DENSE_FROM
        if mapped:
            self._matrix: Features = features
        elif self.is_dense:
            dense = features if isinstance(features, np.ndarray) else features.toarray()
            self._matrix = dense.astype(np.float32, copy=False)
            if device.type != "cpu":
                self._on_gpu = torch.tensor(self._matrix, device=device)
        else:
            self._matrix = sp.csr_array(features.astype(np.float32, copy=False))

    @property
    def whole(self) -> Rows | None:
        """The features of all nodes where they lie, if that takes no copy of them."""
        if self._on_gpu is not None:
            return DenseRows(self._on_gpu[None])
        matrix = self._matrix
        if not isinstance(matrix, np.ndarray) or is_mapped(matrix) or not matrix.flags.c_contiguous:
            return None
        return DenseRows(torch.from_numpy(matrix)[None])

    def rows(self, nodes: NDArray[np.int64]) -> Rows:
        """Return the features of `nodes`, in their order."""
        if self._on_gpu is not None:
            index = torch.from_numpy(nodes).to(self.device)
            return DenseRows(self._on_gpu.index_select(0, index)[None])
        part = self._matrix[nodes]
        if isinstance(part, np.ndarray):
            part = part.astype(np.float32, copy=False)
            return DenseRows(torch.from_numpy(part).to(self.device)[None])
        parts = (part.indptr.astype(np.int32), part.indices.astype(np.int32), part.data)
        return SparseRows(*(torch.from_numpy(p).to(self.device) for p in parts))


# torch says once a process that a graph's features are read-only, as they are to stay.
with warnings.catch_warnings():
    warnings.simplefilter("ignore", UserWarning)
    torch.from_numpy(np.broadcast_to(np.float32(0), 1))
