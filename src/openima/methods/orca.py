"""ORCA: an uncertainty-adaptive margin and pairwise agreement (Cao et al., ICLR 2022)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from openima.errors import InputError
from openima.losses.entropy import entropy
from openima.losses.margin_ce import margin_cross_entropy
from openima.losses.pairwise import agreement_loss, nearest_others, same_label_partners
from openima.methods.base import Batch, Known, LossOutput, Objective, Recipe, Step, Views, register
from openima.nn.encoder import Embedding
from openima.nn.heads import CosineHead
from openima.predict.predictors import HeadPredictor
from openima.train.batching import EvenBatches
from openima.train.config import TrainConfig
from openima.train.snapshot import Snapshot


@dataclass(frozen=True)
class ORCAConfig:
    """Settings of ORCA.

    - `scale` multiplies the cosines of the head, and the margin with them;
    - `largest_margin` caps the margin; 0 is ORCA with zero margin;
    - `all_labelled` makes a step's cross-entropy one over all training nodes; off, it is over
      those of the batch (the published code, whose batches hold many).
    """

    scale: float = 10.0
    largest_margin: float = 0.5
    all_labelled: bool = True

    def __post_init__(self) -> None:
        """Refuse settings without a meaning."""
        if not self.scale > 0:
            raise InputError("scale must be positive", got=str(self.scale))
        if not 0 <= self.largest_margin <= 1:
            raise InputError(
                "largest_margin caps an uncertainty",
                expected="0 to 1",
                got=str(self.largest_margin),
            )


class ORCA(Objective):
    """Pairs agree, labelled nodes keep their class, and no class is left empty."""

    margin: Tensor
    partners: Tensor

    def __init__(
        self, known: Known, dim: int, config: ORCAConfig, generator: torch.Generator
    ) -> None:
        """Draw the classes' directions."""
        super().__init__()
        self.known = known
        self.config = config
        self.head = CosineHead(dim, known.n_classes, config.scale, generator)
        self.register_buffer("margin", torch.zeros(()))

    @property
    def wants_train_nodes(self) -> bool:
        """Whether cross-entropy is over all training nodes in every step."""
        return self.config.all_labelled

    @property
    def wants_first_look(self) -> bool:
        """The first margin hangs on how uncertain the untrained head is."""
        return self.config.largest_margin > 0

    def on_epoch_start(self, epoch: int, snapshot: Snapshot | None) -> None:
        """Set the margin to how uncertain the head is of the nodes without a label."""
        del epoch
        if snapshot is not None and self.config.largest_margin > 0:
            self.margin.fill_(min(uncertainty(snapshot), self.config.largest_margin))

    def before_step(self, step: Step) -> None:
        """Draw a partner for each labelled node of the batch."""
        labels = self.known.labels[step.batch.nodes]
        self.partners = same_label_partners(labels, step.generator)

    def loss(self, views: Views, batch: Batch) -> LossOutput:
        """Add up pairwise agreement, cross-entropy with margin, and negative entropy."""
        z, other = (view.z.index_select(0, batch.rows) for view in views)
        labels = self.known.labels[batch.nodes]
        partners = torch.where(labels >= 0, self.partners, nearest_others(z))
        logits, of_partners = self.head(z), self.head(other)[partners]
        terms = {
            "pair": agreement_loss(logits, of_partners),
            "ce": self._cross_entropy(logits, views, batch),
            "entropy": -entropy(logits.softmax(1).mean(0)),
        }
        total = torch.stack(list(terms.values())).sum()
        return LossOutput(total, {name: term.item() for name, term in terms.items()})

    def _cross_entropy(self, logits: Tensor, views: Views, batch: Batch) -> Tensor:
        if self.config.all_labelled:
            labels = self.known.labels[self.known.train]
            logits = self.head(views.first.z.index_select(0, batch.train_rows))
        else:
            labels = self.known.labels[batch.nodes]
            logits, labels = logits[labels >= 0], labels[labels >= 0]
        # The margin is of the cosine, so it is scaled like one.
        return margin_cross_entropy(logits, labels, self.config.scale * self.margin)

    def logits(self, embedding: Embedding) -> Tensor:
        """Classify unit-length embeddings by scaled cosines."""
        logits: Tensor = self.head(embedding.z)
        return logits


def uncertainty(snapshot: Snapshot) -> float:
    """Return 1 less the mean probability of the likeliest class, over all but training nodes."""
    if snapshot.logits is None:
        raise ValueError("uncertainty is that of a head")
    nodes = np.concatenate([snapshot.val, snapshot.test])
    probabilities = torch.from_numpy(snapshot.logits[nodes]).softmax(1)
    return 1.0 - probabilities.amax(1).mean().item()


ORCA_RECIPE = register(
    Recipe(
        name="orca",
        title="ORCA",
        paper="Cao et al., Open-World Semi-Supervised Learning, ICLR 2022",
        objective=ORCA,
        config=ORCAConfig(),
        kind="end-to-end",
        cost="as InfoNCE, and one look before the first epoch",
        predictor=HeadPredictor(),
        train=TrainConfig(epochs=50, batching=EvenBatches()),
        by_dataset={
            "ogbn-arxiv": {"batch_size": 4096, "fan_outs": (10, 20)},
            "ogbn-products": {"batch_size": 4096, "fan_outs": (10, 20), "epochs": 10},
        },
    )
)
register(ORCA_RECIPE.variant("orca-zm", "ORCA-ZM", largest_margin=0.0))
