"""SimGCD: a parametric classifier that teaches itself, beside contrast (Wen et al., ICCV 2023)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from openima.errors import InputError
from openima.losses.contrastive import contrastive
from openima.losses.distill import distillation
from openima.losses.entropy import entropy
from openima.methods.base import Batch, Known, LossOutput, Objective, Recipe, Views, register
from openima.nn.encoder import Embedding
from openima.nn.heads import CosineHead, Projector
from openima.predict.predictors import HeadPredictor
from openima.train.batching import HalfLabelledBatches
from openima.train.config import TrainConfig
from openima.train.snapshot import Snapshot


@dataclass(frozen=True)
class SimGCDConfig:
    """Settings of SimGCD; the defaults are the published code's.

    - `supervised` (lambda) weighs the terms that use labels, 1 - lambda those that do not;
    - `entropy` (epsilon) weighs the push for classes of equal size;
    - `temperature` is the student's, and that of the head; the teacher's goes in a line from
      `first_teacher_temperature` to `teacher_temperature` over `teacher_warm_up` epochs;
    - `contrast_temperature` and `supcon_temperature` are those of the two contrastive terms;
    - `projector` holds the widths of the projector's layers; the contrast is on the last.
    """

    supervised: float = 0.35
    entropy: float = 2.0
    temperature: float = 0.1
    first_teacher_temperature: float = 0.07
    teacher_temperature: float = 0.04
    teacher_warm_up: int = 30
    contrast_temperature: float = 1.0
    supcon_temperature: float = 0.07
    projector: tuple[int, ...] = (2048, 2048, 256)

    def __post_init__(self) -> None:
        """Refuse settings without a meaning."""
        if not 0 <= self.supervised <= 1:
            raise InputError("supervised is a share", expected="0 to 1", got=str(self.supervised))
        for name in ("entropy", "teacher_warm_up"):
            if not getattr(self, name) >= 0:
                raise InputError(f"{name} cannot be negative", got=str(getattr(self, name)))
        for name in SimGCDConfig.__dataclass_fields__:
            if name.endswith("temperature") and not getattr(self, name) > 0:
                raise InputError(f"{name} must be positive", got=str(getattr(self, name)))
        if not self.projector or any(width < 1 for width in self.projector):
            raise InputError(
                "projector lists the widths of its layers",
                expected="at least one number, all from 1",
                got=str(self.projector),
            )

    def teacher_at(self, epoch: int) -> float:
        """Return the teacher's temperature in an epoch, counted from 1."""
        first, last = self.first_teacher_temperature, self.teacher_temperature
        if epoch >= self.teacher_warm_up:
            return last
        return first + (last - first) * (epoch - 1) / (self.teacher_warm_up - 1)


class SimGCD(Objective):
    """Each view's sharpened prediction is the other's target; the embeddings are contrasted."""

    def __init__(
        self, known: Known, dim: int, config: SimGCDConfig, generator: torch.Generator
    ) -> None:
        """Draw the classes' directions and the projector's weights."""
        super().__init__()
        self.known = known
        self.config = config
        self.head = CosineHead(dim, known.n_classes, 1.0, generator)
        self.projector = Projector((dim, *config.projector), generator)
        self.teacher_temperature = config.teacher_at(1)

    def on_epoch_start(self, epoch: int, snapshot: Snapshot | None) -> None:
        """Sharpen the teacher."""
        del snapshot
        self.teacher_temperature = self.config.teacher_at(epoch)

    def loss(self, views: Views, batch: Batch) -> LossOutput:
        """Add up the classifier's and the projector's terms, with and without labels."""
        config, share = self.config, self.config.supervised
        z = torch.cat([view.z.index_select(0, batch.rows) for view in views])
        g = torch.cat([view.g.index_select(0, batch.rows) for view in views])
        cosines, projected = self.head(z), self.projector(g)
        ids = torch.arange(len(batch.nodes), device=z.device).repeat(2)
        labels = self.known.labels[batch.nodes].repeat(2)
        known = torch.nonzero(labels >= 0)[:, 0]
        terms = {
            "distill": (1 - share) * self._distill(cosines),
            "entropy": (1 - share) * config.entropy * self._imbalance(cosines),
            "infonce": (1 - share) * contrastive(projected, ids, config.contrast_temperature, None),
        }
        if len(known) > 0:
            labels = labels[known]
            of_known = cosines[known] / config.temperature
            terms["ce"] = share * F.cross_entropy(of_known, labels)
            terms["supcon"] = share * contrastive(
                projected[known], labels, config.supcon_temperature, None
            )
        total = torch.stack(list(terms.values())).sum()
        return LossOutput(total, {name: term.item() for name, term in terms.items()})

    def _distill(self, cosines: Tensor) -> Tensor:
        """Let each view learn from the other; both count half."""
        swapped = torch.cat(cosines.chunk(2)[::-1])
        return distillation(cosines, swapped, self.config.temperature, self.teacher_temperature)

    def _imbalance(self, cosines: Tensor) -> Tensor:
        """Measure how far the mean prediction is from classes of equal size, 0 to log C."""
        mean = (cosines / self.config.temperature).softmax(1).mean(0)
        return math.log(len(mean)) - entropy(mean)

    def logits(self, embedding: Embedding) -> Tensor:
        """Classify unit-length embeddings by cosines over the student's temperature."""
        logits: Tensor = self.head(embedding.z) / self.config.temperature
        return logits


register(
    Recipe(
        name="simgcd",
        title="SimGCD",
        paper="Wen et al., Parametric Classification for Generalized Category Discovery, ICCV 2023",
        objective=SimGCD,
        config=SimGCDConfig(),
        kind="end-to-end",
        cost="as InfoNCE, and a wide projector",
        predictor=HeadPredictor(),
        train=TrainConfig(epochs=50, batching=HalfLabelledBatches()),
        by_dataset={
            "ogbn-products": {"batch_size": 4096, "epochs": 10, "teacher_warm_up": 3},
        },
    )
)
