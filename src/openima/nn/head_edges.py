"""The edges that each head sums over: those that dropout kept, by target or by source.

A dropped edge adds nothing to a sum, and its weight has no gradient. So on a CPU each head gets
lists of its own without them, which saves half of the work along edges. A GPU, on which work along
edges is cheap and lists are dear, goes through all edges, with weights of zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from openima.graph.blocks import Block
from openima.nn import csr
from openima.nn.csr import Csr
from openima.nn.dropout import counts_before, masked, places


@dataclass(frozen=True, eq=False)
class HeadEdges:
    """The edges of a block with their weights `alpha` (E, H) before dropout.

    `mask` (E, H) says which ones stay, to be multiplied by `scale`; None keeps all as they are.
    """

    block: Block
    alpha: Tensor
    mask: Tensor | None
    scale: float

    @property
    def _listed(self) -> bool:
        return self.mask is not None and self.alpha.device.type not in csr.PIECEWISE

    def by_target(self) -> list[Csr]:
        """Return for each head the matrix of weights (n_targets, n_sources)."""
        block = self.block
        return self._of_heads(block.indptr, block.sources, self.alpha, self.mask)

    def by_source(self) -> list[Csr]:
        """Return for each head the matrix of weights (n_sources, n_targets)."""
        back = self.block.by_source
        return self._of_heads(back.indptr, back.rows, *self._in_order_of_sources())

    def by_source_joined(self) -> Csr:
        """Return one matrix (n_sources, H * n_targets); target t of head h is h * n_targets + t."""
        back, n_heads = self.block.by_source, self.alpha.shape[1]
        offsets = torch.arange(n_heads, dtype=torch.int32, device=back.rows.device)
        columns = (back.rows[:, None] + offsets * self.block.n_targets).view(-1)
        alpha, mask = self._in_order_of_sources()
        if mask is None or not self._listed:
            weights = alpha if mask is None else masked(alpha, mask, self.scale)
            return Csr(back.indptr * n_heads, columns, weights.reshape(-1))
        kept, indptr = places(mask), counts_before(mask).index_select(0, back.indptr * n_heads)
        values = alpha.view(-1).index_select(0, kept).mul_(self.scale)
        return Csr(indptr, columns.index_select(0, kept), values)

    def to_alpha(self, d_weights: list[Tensor]) -> Tensor:
        """Turn a gradient of the weights in `by_target` into one of `alpha`, (E, H)."""
        if self.mask is None or not self._listed:
            stacked = torch.stack(d_weights).t().contiguous()
            return stacked if self.mask is None else masked(stacked, self.mask, self.scale)
        d_alpha = torch.zeros_like(self.alpha)
        for h, of_head in enumerate(d_weights):
            d_alpha[places(self.mask[:, h].contiguous()), h] = of_head.mul_(self.scale)
        return d_alpha

    def _in_order_of_sources(self) -> tuple[Tensor, Tensor | None]:
        order = self.block.by_source.entries
        mask = None if self.mask is None else self.mask.index_select(0, order)
        return self.alpha.index_select(0, order), mask

    def _of_heads(
        self, indptr: Tensor, columns: Tensor, alpha: Tensor, mask: Tensor | None
    ) -> list[Csr]:
        """Lay out each head's weights (E, H) on its own."""
        if mask is None or not self._listed:
            weights = alpha if mask is None else masked(alpha, mask, self.scale)
            return [Csr(indptr, columns, weight) for weight in weights.t().contiguous()]
        heads = []
        for h in range(alpha.shape[1]):  # one after the other, as their lists are large
            of_head = mask[:, h].contiguous()
            kept, before = places(of_head), counts_before(of_head)
            values = alpha[:, h].index_select(0, kept).mul_(self.scale)
            heads.append(Csr(before.index_select(0, indptr), columns.index_select(0, kept), values))
        return heads
