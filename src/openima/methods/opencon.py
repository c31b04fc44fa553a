"""OpenCon: contrastive learning around prototypes of seen and new classes (Sun & Li, TMLR 2023)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from openima.errors import InputError
from openima.losses.contrastive import contrastive
from openima.losses.entropy import entropy
from openima.losses.prototypes import looks_novel, moved_prototypes
from openima.methods.base import Batch, Known, LossOutput, Objective, Recipe, Step, Views, register
from openima.nn.encoder import Embedding
from openima.nn.heads import linear_head
from openima.predict.predictors import ClusterPredictor, HeadPredictor
from openima.train.batching import EvenBatches
from openima.train.config import TrainConfig
from openima.train.snapshot import Snapshot

SCALE = 10.0
"""Scores are this times the cosine to a prototype."""


@dataclass(frozen=True)
class OpenConConfig:
    """Settings of OpenCon; the defaults are those of its authors.

    - `simclr_temperature`, `supcon_temperature`, `semicon_temperature` and the weights `simclr`,
      `supcon`, `semicon` are those of the contrastive losses of unlabelled nodes, of labelled
      nodes, and of nodes that look novel; the last grows from 0 over `ramp_epochs` epochs;
    - `evenness` weighs the divergence of the mean prediction from one that is even;
    - `id_share` is the share of labelled nodes that are to look more seen than the nodes that
      look novel;
    - `momentum` is what a prototype keeps of itself at each pull;
    - `all_labelled` takes all training nodes as the labelled nodes of every step; off, those of
      the batch, as the published code does.
    """

    simclr: float = 1.0
    supcon: float = 0.2
    semicon: float = 0.1
    evenness: float = 0.05
    simclr_temperature: float = 0.4
    supcon_temperature: float = 0.1
    semicon_temperature: float = 0.7
    ramp_epochs: int = 50
    id_share: float = 0.7
    momentum: float = 0.9
    all_labelled: bool = True

    def __post_init__(self) -> None:
        """Refuse settings without a meaning."""
        for name in ("simclr", "supcon", "semicon", "evenness", "ramp_epochs"):
            if not getattr(self, name) >= 0:
                raise InputError(f"{name} cannot be negative", got=str(getattr(self, name)))
        for name in ("simclr_temperature", "supcon_temperature", "semicon_temperature"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} must be positive", got=str(getattr(self, name)))
        for name in ("id_share", "momentum"):
            share = getattr(self, name)
            if not 0 <= share <= 1:
                raise InputError(f"{name} is a share", expected="0 to 1", got=str(share))


class OpenCon(Objective):
    """Three contrastive losses on projections, and prototypes that follow the projections."""

    prototypes: Tensor

    def __init__(
        self, known: Known, dim: int, config: OpenConConfig, generator: torch.Generator
    ) -> None:
        """Draw the projector's weights and a random direction for each class."""
        super().__init__()
        self.known = known
        self.config = config
        self.projector = nn.Sequential(
            linear_head(dim, dim, generator), nn.ReLU(), linear_head(dim, dim, generator)
        )
        directions = torch.randn(known.n_classes, dim, generator=generator)
        self.register_buffer("prototypes", F.normalize(directions, dim=1))
        self.semicon = 0.0
        self._generator: torch.Generator | None = None
        self._pulls: tuple[Tensor, Tensor] | None = None

    @property
    def wants_train_nodes(self) -> bool:
        """All training nodes count in every step, unless only those of the batch are to."""
        return self.config.all_labelled

    def on_epoch_start(self, epoch: int, snapshot: Snapshot | None) -> None:
        """Let the weight of the nodes that look novel grow."""
        del snapshot
        grown = min(1.0, (epoch - 1) / self.config.ramp_epochs) if self.config.ramp_epochs else 1.0
        self.semicon = self.config.semicon * grown

    def before_step(self, step: Step) -> None:
        """Keep the source of chance for the order in which prototypes are pulled."""
        self._generator = step.generator

    def loss(self, views: Views, batch: Batch) -> LossOutput:
        """Add up the terms, and note who is to pull which prototype after the step."""
        config, known = self.config, self.known
        labels = known.labels[batch.nodes]
        unlabelled, labelled = batch.rows[labels < 0], batch.rows[labels >= 0]
        of_labelled = labels[labels >= 0]
        if config.all_labelled:
            labelled, of_labelled = batch.train_rows, known.labels[known.train]
        rows = torch.cat([unlabelled, labelled])
        r = [self._project(view.g.index_select(0, rows)) for view in views]
        n = len(unlabelled)
        scores = SCALE * r[0] @ self.prototypes.t()
        likely = scores[:n].argmax(1)
        with torch.no_grad():
            novel = looks_novel(scores[:n], scores[n:], known.n_seen, config.id_share)
        self._note_pulls(r[0].detach(), likely, of_labelled)

        def contrast(chosen: slice | Tensor, ids: Tensor, temperature: float) -> Tensor:
            of_both = torch.cat([of_view[chosen] for of_view in r])
            return contrastive(of_both, ids.repeat(2), temperature, None)

        own = torch.arange(n, device=rows.device)
        terms = {
            "simclr": config.simclr * contrast(slice(n), own, config.simclr_temperature),
            "supcon": config.supcon
            * contrast(slice(n, None), of_labelled, config.supcon_temperature),
            "semicon": self.semicon
            * contrast(own[novel], likely[novel], config.semicon_temperature),
            "evenness": config.evenness * self._unevenness(scores[:n]),
        }
        total = torch.stack(list(terms.values())).sum()
        return LossOutput(total, {name: term.item() for name, term in terms.items()})

    def after_step(self) -> None:
        """Move the prototypes by the embeddings of the step, in random order."""
        if self._pulls is None:
            return
        rows, classes = self._pulls
        order = torch.randperm(len(rows), generator=self._generator, device=rows.device)
        momentum = self.config.momentum
        moved = moved_prototypes(self.prototypes, rows[order], classes[order], momentum)
        self.prototypes.copy_(moved)
        self._pulls = None

    def logits(self, embedding: Embedding) -> Tensor:
        """Score raw embeddings by their prototypes."""
        return SCALE * self._project(embedding.g) @ self.prototypes.t()

    def _project(self, g: Tensor) -> Tensor:
        return F.normalize(self.projector(g), dim=1)

    def _note_pulls(self, rows: Tensor, likely: Tensor, of_labelled: Tensor) -> None:
        """Labelled nodes pull their class; others a new class, if that is the likeliest."""
        pulls = torch.cat([likely >= self.known.n_seen, of_labelled >= 0])
        classes = torch.cat([likely, of_labelled])
        self._pulls = rows[pulls], classes[pulls]

    def _unevenness(self, scores: Tensor) -> Tensor:
        """Return the divergence of the mean prediction (of scores (n, C)) from the even one."""
        if len(scores) == 0:
            return scores.sum()
        return math.log(scores.shape[1]) - entropy(scores.softmax(1).mean(0))


OPENCON = register(
    Recipe(
        name="opencon",
        title="OpenCon",
        paper="Sun & Li, OpenCon: Open-world Contrastive Learning, TMLR 2023",
        objective=OpenCon,
        config=OpenConConfig(),
        kind="end-to-end",
        cost="as InfoNCE, and a small projector",
        predictor=HeadPredictor(),
        train=TrainConfig(epochs=100, batching=EvenBatches()),
        by_dataset={
            "ogbn-arxiv": {"fan_outs": (10, 20)},
            "ogbn-products": {
                "fan_outs": (10, 20),
                "batch_size": 4096,
                "epochs": 10,
                "ramp_epochs": 5,
            },
        },
    )
)
register(
    replace(
        OPENCON,
        name="opencon-two-stage",
        title="OpenCon‡ (two-stage)",
        kind="two-stage",
        predictor=ClusterPredictor(),
    )
)
