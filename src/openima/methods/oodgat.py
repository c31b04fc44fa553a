"""OODGAT, a detector of new classes on graphs, extended to tell them apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from openima.errors import InputError
from openima.losses.detection import disagreement, discord, entropies, rejected_uniformity
from openima.methods.base import Batch, Known, LossOutput, Objective, Recipe, Views, register
from openima.nn.encoder import Embedding
from openima.nn.heads import linear_head
from openima.nn.oodgat import OODGATEncoder, OODGATEncoderConfig
from openima.predict.rejection import RejectThenCluster
from openima.train.config import TrainConfig
from openima.train.snapshot import Snapshot


@dataclass(frozen=True)
class OODGATConfig:
    """Settings of OODGAT; the defaults are those of its authors for Cora.

    - `consistency` weighs the agreement of scores with the classifier's uncertainty;
    - `layers` weighs the agreement of the scores of both layers;
    - `uniform` weighs uniform predictions on nodes with a novelty from `margin`;
    - `score` says what novelty is: the attention's score, or the entropy of the prediction.

    All three weights fall with the epochs, by a tenth in a hundred.
    """

    consistency: float = 2.0
    layers: float = 0.005
    uniform: float = 0.05
    margin: float = 0.6
    score: Literal["attention", "entropy"] = "attention"

    def __post_init__(self) -> None:
        """Refuse settings without a meaning."""
        for name in ("consistency", "layers", "uniform"):
            if not getattr(self, name) >= 0:
                raise InputError(f"{name} cannot be negative", got=str(getattr(self, name)))
        if not 0 <= self.margin <= 1:
            raise InputError("margin is a novelty", expected="0 to 1", got=str(self.margin))
        if self.score not in ("attention", "entropy"):
            raise InputError(
                "unknown score", expected="'attention' or 'entropy'", got=repr(self.score)
            )


class OODGAT(Objective):
    """Cross-entropy on the training nodes, and scores that follow the classifier's uncertainty."""

    n_views = 1

    def __init__(
        self, known: Known, dim: int, config: OODGATConfig, generator: torch.Generator
    ) -> None:
        """Draw the weights of a classifier of the seen classes."""
        super().__init__()
        self.known = known
        self.config = config
        self.head = linear_head(dim, known.n_seen, generator)
        self.decay = 1.0

    @property
    def wants_train_nodes(self) -> bool:
        """Cross-entropy is over all training nodes in every step."""
        return True

    def on_epoch_start(self, epoch: int, snapshot: Snapshot | None) -> None:
        """Lower the weights of all terms but cross-entropy."""
        del snapshot
        self.decay = 0.9 ** (0.01 * epoch)

    def loss(self, views: Views, batch: Batch) -> LossOutput:
        """Add up the terms: cross-entropy over the training nodes, the others over the batch."""
        config, known = self.config, self.known
        every_logit, every_score = self.head(views.first.g), layer_scores(views.first)
        logits, scores = (x.index_select(0, batch.rows) for x in (every_logit, every_score))
        of_train = every_logit.index_select(0, batch.train_rows)
        uniform = rejected_uniformity(logits, novelty_of(scores), config.margin)
        terms = {
            "ce": F.cross_entropy(of_train, known.labels[known.train]),
            "consistency": self.decay
            * config.consistency
            * disagreement(scores, entropies(logits)),
            "layers": self.decay * config.layers * discord(scores),
            "uniform": self.decay * config.uniform * uniform,
        }
        total = torch.stack(list(terms.values())).sum()
        return LossOutput(total, {name: term.item() for name, term in terms.items()})

    def logits(self, embedding: Embedding) -> Tensor:
        """Classify raw embeddings as one of the seen classes."""
        logits: Tensor = self.head(embedding.g)
        return logits

    def novelty(self, embedding: Embedding) -> Tensor:
        """Return the score of attention, or the entropy of the prediction."""
        if self.config.score == "entropy":
            return entropies(self.logits(embedding))
        return novelty_of(layer_scores(embedding))


def layer_scores(embedding: Embedding) -> Tensor:
    """Return the scores (n, 2) that an encoder of OODGAT gives nodes in its layers."""
    if embedding.extra is None:
        raise ValueError("OODGAT needs an encoder that scores nodes")
    return embedding.extra


def novelty_of(scores: Tensor) -> Tensor:
    """Turn the scores of both layers (n, 2) into a novelty from 0 to 1, (n,)."""
    return torch.sigmoid(scores.mean(1))


def _settings(
    consistency: float, uniform: float, margin: float, *, normalise: bool = True
) -> dict[str, float]:
    """Citeseer's features are normalised as they come."""
    weights = {"consistency": consistency, "uniform": uniform, "margin": margin}
    return {**weights, "normalise": normalise}


OODGAT_RECIPE = register(
    Recipe(
        name="oodgat",
        title="OODGAT†",
        paper="Song and Wang, Learning on Graphs with Out-of-Distribution Nodes, KDD 2022",
        objective=OODGAT,
        config=OODGATConfig(),
        kind="detector",
        predictor=RejectThenCluster(),
        train=TrainConfig(epochs=100, batch_size=None, learning_rate=1e-2),
        encoder=OODGATEncoderConfig(),
        build_encoder=OODGATEncoder,
        by_dataset={
            "citeseer": _settings(2.0, 0.05, 0.6, normalise=False),
            "photo": _settings(3.0, 0.1, 0.4),
            "computers": _settings(2.0, 0.05, 0.4),
            "cs": _settings(4.0, 0.05, 0.6),
            "physics": _settings(4.0, 0.05, 0.6),
        },
    )
)
