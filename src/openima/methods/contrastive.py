"""The two-stage baselines: InfoNCE, with SupCon on the labelled nodes, with cross-entropy too."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from openima.errors import InputError
from openima.losses.contrastive import BASE_TEMPERATURE, contrastive
from openima.methods.base import Batch, Known, LossOutput, Objective, Recipe, Views, register
from openima.methods.openima import OPENIMA, refuse_temperatures, train_cross_entropy
from openima.nn.encoder import Embedding
from openima.nn.heads import linear_head


@dataclass(frozen=True)
class ContrastiveConfig:
    """Weights of the terms added to InfoNCE; a weight of 0 leaves the term out.

    SupCon is over all training nodes in both views, its denominator too.
    """

    temperature: float = 0.7
    supcon: float = 0.0
    ce: float = 0.0
    base_temperature: float | None = BASE_TEMPERATURE

    def __post_init__(self) -> None:
        """Refuse settings without a meaning."""
        refuse_temperatures(self.temperature, self.base_temperature)
        if not (self.supcon >= 0 and self.ce >= 0):
            raise InputError("a weight cannot be negative", got=f"{self.supcon}, {self.ce}")


class Contrastive(Objective):
    """InfoNCE on all nodes, plus SupCon and cross-entropy on the training nodes."""

    def __init__(
        self, known: Known, dim: int, config: ContrastiveConfig, generator: torch.Generator
    ) -> None:
        """Draw a classifier's weights if cross-entropy is used."""
        super().__init__()
        self.known = known
        self.config = config
        self.head = linear_head(dim, known.n_classes, generator) if config.ce else None

    @property
    def wants_train_nodes(self) -> bool:
        """Both added terms are over all training nodes in every step."""
        return self.config.supcon > 0 or self.config.ce > 0

    def loss(self, views: Views, batch: Batch) -> LossOutput:
        """Add up the terms."""
        config = self.config
        terms = {"infonce": self._contrast(views, batch.rows, batch.nodes)}
        if config.supcon:
            labels = self.known.labels[self.known.train]
            terms["supcon"] = config.supcon * self._contrast(views, batch.train_rows, labels)
        if self.head is not None:
            terms["ce"] = config.ce * train_cross_entropy(self.head, views, batch, self.known)
        total = torch.stack(list(terms.values())).sum()
        return LossOutput(total, {name: term.item() for name, term in terms.items()})

    def _contrast(self, views: Views, rows: Tensor, ids: Tensor) -> Tensor:
        z = torch.cat([view.z.index_select(0, rows) for view in views])
        config = self.config
        return contrastive(z, ids.repeat(2), config.temperature, config.base_temperature)

    def logits(self, embedding: Embedding) -> Tensor | None:
        """Classify unit-length embeddings, if there is a classifier."""
        return None if self.head is None else self.head(embedding.z)


def _settings(temperature: float, rate: float) -> dict[str, float]:
    return {"temperature": temperature, "learning_rate": rate}


INFONCE = register(
    Recipe(
        name="infonce",
        title="InfoNCE",
        paper=OPENIMA.paper,
        objective=Contrastive,
        config=ContrastiveConfig(),
        by_dataset={
            "citeseer": _settings(0.7, 1e-3),
            "photo": _settings(0.07, 1e-3),
            "computers": _settings(0.07, 1e-3),
            "cs": _settings(0.7, 1e-4),
            "physics": _settings(0.07, 1e-2),
            "ogbn-arxiv": {**_settings(0.7, 1e-2), "batch_size": 4096},
            "ogbn-products": {**_settings(0.7, 1e-2), "batch_size": 4096, "epochs": 10},
        },
    )
)
register(INFONCE.variant("infonce-supcon", "InfoNCE+SupCon", supcon=1.0))
register(INFONCE.variant("infonce-supcon-ce", "InfoNCE+SupCon+CE", supcon=1.0, ce=1.0))
