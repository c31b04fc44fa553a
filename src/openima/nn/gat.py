"""The graph-attention encoder: two layers, several heads, unit-length embeddings."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from openima.errors import InputError
from openima.graph.blocks import Block
from openima.nn.attention import attend
from openima.nn.dropout import elu_dropout_
from openima.nn.encoder import Embedding, Encoder, Hidden, Layer
from openima.nn.rows import DenseRows, Rows

EDGE_COST = {"cpu": 4.0, "cuda": 64.0}
"""What a multiply-add along an edge costs, in multiply-adds of a dense product, by device."""


@dataclass(frozen=True)
class EncoderShape:
    """What all encoders with attention can be set to; the defaults are the paper's."""

    hidden: int = 128
    heads: int = 8
    feature_dropout: float = 0.5
    attention_dropout: float = 0.5

    def __post_init__(self) -> None:
        """Refuse shapes and shares without a meaning."""
        for name in ("hidden", "heads"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1", got=str(getattr(self, name)))
        for name in ("feature_dropout", "attention_dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise InputError(
                    f"{name} is a share", expected="0 up to 1", got=str(getattr(self, name))
                )


@dataclass(frozen=True)
class EncoderConfig(EncoderShape):
    """The settings of the graph-attention encoder; the defaults are the paper's."""

    negative_slope: float = 0.2


class AttentionLayer(Layer):
    """What layers of attention share: linear map, weighted sum by given scores, bias.

    Scores are made with `n_vectors` attention vectors a head. With W the map of a head and a
    such a vector, a . W x is taken as x . (W a), so scores need no product of their own size, and
    W can be applied before or after the sum, whichever is cheaper.
    """

    n_vectors: int

    def __init__(self, n_inputs: int, config: EncoderShape, generator: torch.Generator) -> None:
        """Draw the weights (Xavier normal, gain sqrt 2) from `generator`."""
        super().__init__()
        self.config = config
        heads, width = config.heads, config.hidden
        gain = math.sqrt(2.0)
        spread = gain * math.sqrt(2.0 / (n_inputs + heads * width))
        attention_spread = gain * math.sqrt(2.0 / (heads * width + width))
        weight = torch.randn(heads, n_inputs, width, generator=generator) * spread
        vectors = torch.randn(self.n_vectors, heads, width, generator=generator)
        self.weight = nn.Parameter(weight)
        self.attention = nn.Parameter(vectors * attention_spread)
        self.bias = nn.Parameter(torch.zeros(heads, 1, width))
        self._folded: Tensor | None = None

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Promise that no weight changes while the body runs, so that views can share work."""
        self._folded = self._fold()
        try:
            yield
        finally:
            self._folded = None

    def _fold(self) -> Tensor:
        """Multiply each head's map by its vectors, (F, n_vectors * H)."""
        return torch.einsum("hfd,khd->fkh", self.weight, self.attention).flatten(1)

    def scored(self, x: Rows) -> tuple[Tensor, Rows]:
        """Multiply each head's map of the rows by its vectors, (n_vectors, n, H).

        With these scores come the rows to go on with.
        """
        scores, x = x.scored(self._fold() if self._folded is None else self._folded)
        return scores.view(len(scores), self.n_vectors, -1).transpose(0, 1), x

    def attended(
        self,
        x: Rows,
        block: Block,
        source_scores: Tensor,
        target_scores: Tensor,
        generator: torch.Generator | None,
        *,
        slope: float,
        above: float = 1.0,
    ) -> Tensor:
        """Return (H, n_targets, D) from the features of the block's sources and their scores.

        A generator switches the dropout of attention weights on; `attend` tells of the rest.
        """
        pieces, factor = x.shared_pieces(), x.factor
        first = pieces is not None and self._sum_first_is_cheaper(block)
        if pieces is not None and first:
            values = pieces
        else:
            values = x.project(self.weight) if factor is None else self.weight
        sums = attend(
            values,
            source_scores,
            target_scores,
            block,
            maps=self.weight if first else None,
            factor=factor,
            slope=slope,
            above=above,
            p=self.config.attention_dropout,
            generator=generator,
        )
        return sums.add_(self.bias)

    def _sum_first_is_cheaper(self, block: Block) -> bool:
        """Count multiply-adds: map every source, or sum inputs and map every target."""
        _, n_inputs, width = self.weight.shape
        along_edges = EDGE_COST[block.sources.device.type] * block.n_edges
        map_first = block.n_sources * n_inputs * width + along_edges * width
        sum_first = block.n_targets * n_inputs * width + along_edges * n_inputs
        return sum_first < map_first


class GATLayer(AttentionLayer):
    """One layer of additive attention.

    With a and b the two attention vectors of a head, of the source and of the target, the score
    of an edge s -> t is LeakyReLU(a . W x_s + b . W x_t).
    """

    n_vectors = 2
    config: EncoderConfig

    def forward(
        self,
        x: Rows,
        block: Block,
        generator: torch.Generator | None,
        scores: Tensor | None = None,
    ) -> Tensor:
        """Return (H, n_targets, D) from the features of the block's sources.

        A generator switches the dropout of attention weights on. `scores` are those of the rows,
        where they are known.
        """
        if scores is None:
            scores, x = self.scored(x)
        of_source, of_target = scores
        of_target = of_target.index_select(0, block.self_rows)
        slope = self.config.negative_slope
        return self.attended(x, block, of_source, of_target, generator, slope=slope)


class GATEncoder(Encoder):
    """Two graph-attention layers: heads joined after the first, averaged after the second."""

    def __init__(self, n_features: int, config: EncoderConfig, generator: torch.Generator) -> None:
        """Draw both layers' weights from `generator`."""
        super().__init__()
        self.config = config
        joined = config.heads * config.hidden
        self.layers = nn.ModuleList(
            GATLayer(n_inputs, config, generator) for n_inputs in (n_features, joined)
        )

    @property
    def dim(self) -> int:
        """The width of the embeddings."""
        return self.config.hidden

    def first(self, x: Rows, block: Block, generator: torch.Generator | None) -> Hidden:
        """Return what each head says of the targets, (H, n_targets, D)."""
        x = x.dropout(self.config.feature_dropout, generator)
        out = self.layers[0](x, block, generator)
        return (elu_dropout_(out, self.config.feature_dropout, generator),)

    def second(self, hidden: Hidden, block: Block, generator: torch.Generator | None) -> Embedding:
        """Embed the targets from the joined heads of the first layer."""
        g = F.elu_(self.layers[1](DenseRows(hidden[0]), block, generator)).mean(0)
        return Embedding(g, F.normalize(g, dim=1))
