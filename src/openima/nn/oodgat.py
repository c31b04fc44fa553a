"""The encoder of OODGAT: nodes score themselves, and attend to nodes that score alike."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from openima.graph.blocks import Block
from openima.nn.dropout import elu_dropout_
from openima.nn.encoder import Embedding, Encoder, Hidden
from openima.nn.gat import AttentionLayer, EncoderShape
from openima.nn.rows import DenseRows, Rows


@dataclass(frozen=True)
class OODGATEncoderConfig(EncoderShape):
    """The settings of the encoder.

    `normalise` makes the features of each node add up to 1, which is for counts such as words.
    """

    attention_dropout: float = 0.6
    normalise: bool = False


class OODGATLayer(AttentionLayer):
    """One layer of attention by likeness of scores.

    With q the attention vector of a head, node i scores a_i = q . W x_i. The score of an edge
    s -> t is 1 - |sigmoid(a_s) - sigmoid(a_t)|; the softmax does not see the 1, so it is left out.
    """

    n_vectors = 1

    def forward(
        self, x: Rows, block: Block, generator: torch.Generator | None
    ) -> tuple[Tensor, Tensor]:
        """Return (H, n_targets, D) and the targets' own scores a, mean over heads, (n_targets, 1).

        A generator switches the dropout of attention weights on.
        """
        (of_source,), x = self.scored(x)
        of_target = of_source.index_select(0, block.self_rows)
        here, there = torch.sigmoid(of_source), -torch.sigmoid(of_target)
        sums = self.attended(x, block, here, there, generator, slope=1.0, above=-1.0)
        return sums, of_target.mean(1, keepdim=True)


class OODGATEncoder(Encoder):
    """Two such layers: heads joined after the first, averaged after the second.

    `Embedding.extra` holds the scores of both layers, (n, 2).
    """

    def __init__(
        self, n_features: int, config: OODGATEncoderConfig, generator: torch.Generator
    ) -> None:
        """Draw both layers' weights from `generator`."""
        super().__init__()
        self.config = config
        joined = config.heads * config.hidden
        self.layers = nn.ModuleList(
            OODGATLayer(n_inputs, config, generator) for n_inputs in (n_features, joined)
        )

    @property
    def dim(self) -> int:
        """The width of the embeddings."""
        return self.config.hidden

    def first(self, x: Rows, block: Block, generator: torch.Generator | None) -> Hidden:
        """Return what each head says of the targets, (H, n_targets, D), and their scores."""
        x = x.normalised() if self.config.normalise else x
        p = self.config.feature_dropout
        sums, scores = self.layers[0](x.dropout(p, generator), block, generator)
        return elu_dropout_(sums, p, generator), scores

    def second(self, hidden: Hidden, block: Block, generator: torch.Generator | None) -> Embedding:
        """Embed the targets; this layer has no ELU, as it is the last in OODGAT."""
        joined, first_scores = hidden
        sums, scores = self.layers[1](DenseRows(joined), block, generator)
        g = sums.mean(0)
        own = first_scores.index_select(0, block.self_rows)
        return Embedding(g, F.normalize(g, dim=1), torch.cat([own, scores], dim=1))
