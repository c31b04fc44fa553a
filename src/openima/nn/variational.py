"""The encoder of OpenWGL: each node has a mean and a spread in a latent space."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from openima.graph.blocks import Block
from openima.nn.dropout import elu_dropout_
from openima.nn.encoder import Embedding, Encoder, Hidden
from openima.nn.gat import EncoderConfig, GATLayer
from openima.nn.rows import DenseRows, Rows

CUT = 2.0
"""Noise is normal, cut off at this many standard deviations."""

CUT_STD = 0.8796256610342398
"""The standard deviation of such noise."""

LOG_SIGMA_BOUND = 2.0
"""How far log sigma goes; beyond, inner products of samples would drown in their noise."""


@dataclass(frozen=True)
class VariationalConfig(EncoderConfig):
    """The settings of the encoder.

    `normalise` makes the features of each node add up to 1, which is for counts such as words.
    """

    normalise: bool = False


class VariationalEncoder(Encoder):
    """A layer of graph attention for both, then one for the means and one for log sigma.

    Heads are joined after the first layer and averaged after the second, without ELU. The
    embedding g is the mean, and `Embedding.extra` is log sigma, (n, d). What is random about a
    node is drawn by those who sample it.
    """

    def __init__(
        self, n_features: int, config: VariationalConfig, generator: torch.Generator
    ) -> None:
        """Draw the weights of all three layers from `generator`."""
        super().__init__()
        self.config = config
        joined = config.heads * config.hidden
        self.layers = nn.ModuleList(
            GATLayer(n_inputs, config, generator) for n_inputs in (n_features, joined, joined)
        )

    @property
    def dim(self) -> int:
        """The width of the latent space."""
        return self.config.hidden

    def first(self, x: Rows, block: Block, generator: torch.Generator | None) -> Hidden:
        """Return what each head says of the targets, (H, n_targets, D)."""
        x = x.normalised() if self.config.normalise else x
        p = self.config.feature_dropout
        out = self.layers[0](x.dropout(p, generator), block, generator)
        return (elu_dropout_(out, p, generator),)

    def second(self, hidden: Hidden, block: Block, generator: torch.Generator | None) -> Embedding:
        """Return means and log sigmas; the latter are bent softly into their bounds."""
        rows = DenseRows(hidden[0])
        mean, spread = (layer(rows, block, generator).mean(0) for layer in self.layers[1:])
        log_sigma = LOG_SIGMA_BOUND * torch.tanh(spread / LOG_SIGMA_BOUND)
        return Embedding(mean, F.normalize(mean, dim=1), log_sigma)


def sample(mean: Tensor, log_sigma: Tensor, generator: torch.Generator) -> Tensor:
    """Draw a latent vector for each node, (n, d), with noise from a normal that is cut off."""
    noise = nn.init.trunc_normal_(torch.empty_like(mean), a=-CUT, b=CUT, generator=generator)
    return mean + noise * log_sigma.exp()


def mean_of_samples(
    mean: Tensor, log_sigma: Tensor, n_samples: int, generator: torch.Generator
) -> Tensor:
    """Draw the mean of `n_samples` latent vectors of each node, (n, d), in one go.

    The mean of many draws of noise is normal, and its spread is known: no need to make them all.
    """
    shape, device = mean.shape, mean.device
    noise = torch.randn(shape, dtype=mean.dtype, device=device, generator=generator)
    return mean + noise * (CUT_STD / math.sqrt(n_samples)) * log_sigma.exp()
