"""OpenIMA: contrastive learning with bias-reduced pseudo labels (Wang et al., ICDE 2024)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from openima.errors import InputError
from openima.losses.contrastive import BASE_TEMPERATURE, LOWEST_TEMPERATURE, contrastive
from openima.losses.pairwise import agreement_loss, nearest_others
from openima.methods.base import Batch, Known, LossOutput, Objective, Recipe, Views, register
from openima.nn.encoder import Embedding
from openima.nn.heads import linear_head
from openima.predict.clustering import MiniBatchKMeansClustering
from openima.predict.predictors import HeadPredictor, name_groups
from openima.train.snapshot import Snapshot


@dataclass(frozen=True)
class OpenIMAConfig:
    """Settings of OpenIMA. Where paper and published code differ, the default is the code's.

    - `eta` weighs cross-entropy; `ce_views` "sum" adds it for both views (the code), "mean"
      averages the two (the paper);
    - `pseudo_share` (rho) is the share of nodes, nearest their centre first, whose cluster
      becomes a pseudo label; 0 switches pseudo labels off;
    - `align_on` says whose labels name the clusters: training and validation nodes (the code)
      or training nodes alone (the paper);
    - `base_temperature` 0.07 scales each contrastive loss by temperature / 0.07 (the code); None
      does not (the paper);
    - `warm_up` makes epoch 1 InfoNCE alone (the code); off, all terms count from the start;
    - `use_embedding`, `use_logit`, `use_ce` switch the three terms, for ablations;
    - `use_pair` adds the term of OpenIMA-large: each node of a batch agrees with the one most
      like it;
    - `ce_nodes` draws so many training nodes for the cross-entropy of a step; None takes all.
    """

    eta: float = 1.0
    ce_views: Literal["sum", "mean"] = "sum"
    temperature: float = 0.7
    pseudo_share: float = 0.75
    align_on: Literal["train+val", "train"] = "train+val"
    base_temperature: float | None = BASE_TEMPERATURE
    warm_up: bool = True
    use_embedding: bool = True
    use_logit: bool = True
    use_ce: bool = True
    use_pair: bool = False
    ce_nodes: int | None = None

    def __post_init__(self) -> None:
        """Refuse settings without a meaning."""
        if not 0 <= self.pseudo_share <= 1:
            raise InputError(
                "pseudo_share is a share", expected="0 to 1", got=str(self.pseudo_share)
            )
        refuse_temperatures(self.temperature, self.base_temperature)
        if not self.eta >= 0:
            raise InputError("eta cannot be negative", got=str(self.eta))
        for name, known in (("align_on", ("train+val", "train")), ("ce_views", ("sum", "mean"))):
            if (value := getattr(self, name)) not in known:
                raise InputError(
                    f"unknown {name}", expected=" or ".join(map(repr, known)), got=repr(value)
                )
        if self.ce_nodes is not None and self.ce_nodes < 1:
            raise InputError("ce_nodes must be at least 1, or None", got=str(self.ce_nodes))
        if not (self.use_embedding or self.use_logit or self.use_ce or self.use_pair):
            raise InputError("all terms of the loss are switched off")


class OpenIMA(Objective):
    """Embedding-level and logit-level contrastive loss with pseudo labels, plus cross-entropy."""

    pseudo_labels: Tensor

    def __init__(
        self, known: Known, dim: int, config: OpenIMAConfig, generator: torch.Generator
    ) -> None:
        """Draw the classifier's weights; nothing has a pseudo label yet."""
        super().__init__()
        self.known = known
        self.config = config
        self.head = linear_head(dim, known.n_classes, generator)
        self.warming_up = False
        self.register_buffer("pseudo_labels", torch.full_like(known.labels, -1))

    @property
    def wants_train_nodes(self) -> bool:
        """Cross-entropy is over all training nodes in every step, or over a sample."""
        return self.config.use_ce and not self.warming_up

    @property
    def train_sample(self) -> int | None:
        """How many training nodes cross-entropy is over."""
        return self.config.ce_nodes

    def on_epoch_start(self, epoch: int, snapshot: Snapshot | None) -> None:
        """Replace the pseudo labels by those of the clusters after the epoch before."""
        contrasts = self.config.use_embedding or self.config.use_logit
        self.warming_up = self.config.warm_up and contrasts and epoch == 1
        if snapshot is not None and self.config.pseudo_share > 0:
            with_val = self.config.align_on == "train+val"
            known = self.known.labels_with_val if with_val else self.known.labels
            labels = pseudo_labels(snapshot, known.cpu().numpy(), self.config.pseudo_share)
            self.pseudo_labels.copy_(torch.from_numpy(labels))

    def loss(self, views: Views, batch: Batch) -> LossOutput:
        """Add up the terms; in the warm-up, only InfoNCE."""
        config = self.config
        z = torch.cat([view.z.index_select(0, batch.rows) for view in views])
        # Unknown nodes are told apart by ids above all classes.
        own_id = self.known.n_classes + torch.arange(len(batch.nodes), device=z.device)
        if self.warming_up:
            loss = contrastive(z, own_id.repeat(2), config.temperature, config.base_temperature)
            return LossOutput(loss, {"embedding": loss.item()})
        label = self.known.labels[batch.nodes]
        label = torch.where(label >= 0, label, self.pseudo_labels[batch.nodes])
        ids = torch.where(label >= 0, label, own_id).repeat(2)
        terms: dict[str, Tensor] = {}
        if config.use_embedding:
            terms["embedding"] = contrastive(z, ids, config.temperature, config.base_temperature)
        if config.use_logit:
            direction = F.normalize(self.head(z), dim=1)
            terms["logit"] = contrastive(
                direction, ids, config.temperature, config.base_temperature
            )
        if config.use_ce:
            share = 1.0 if config.ce_views == "sum" else 0.5
            ce = train_cross_entropy(self.head, views, batch, self.known)
            terms["ce"] = config.eta * share * ce
        if config.use_pair:
            terms["pair"] = self._agreement(*z.chunk(2))
        total = torch.stack(list(terms.values())).sum()
        return LossOutput(total, {name: term.item() for name, term in terms.items()})

    def _agreement(self, z: Tensor, other: Tensor) -> Tensor:
        """Compare what the head says of each node with what it says of the one most like it.

        The former is seen in the first view `z`, the latter in the `other`.
        """
        return agreement_loss(self.head(z), self.head(other)[nearest_others(z)])

    def logits(self, embedding: Embedding) -> Tensor:
        """Classify unit-length embeddings."""
        logits: Tensor = self.head(embedding.z)
        return logits


def pseudo_labels(snapshot: Snapshot, labels: NDArray[np.int64], share: float) -> NDArray[np.int64]:
    """Label the nodes nearest to their cluster's centre by the class of that cluster.

    The nearest `share` of all N nodes are taken; clusters are named after the known `labels`
    (N,), -1 where unknown. Returns class ids (N,), -1 for nodes too far out.
    """
    clusters = snapshot.clusters
    threshold = np.percentile(clusters.distances, 100 * share)
    named = name_groups(clusters.labels, labels, snapshot.n_classes)
    return np.where(clusters.distances <= threshold, named, -1)


def train_cross_entropy(head: torch.nn.Module, views: Views, batch: Batch, known: Known) -> Tensor:
    """Return the mean cross-entropy over the batch's training nodes, summed over both views."""
    target = known.labels[known.train if batch.train_nodes is None else batch.train_nodes]
    first, second = (
        F.cross_entropy(head(view.z.index_select(0, batch.train_rows)), target) for view in views
    )
    return first + second


def refuse_temperatures(temperature: float, base_temperature: float | None) -> None:
    """Refuse temperatures of a contrastive loss that are not positive."""
    if not temperature >= LOWEST_TEMPERATURE:
        raise InputError(
            "the temperature is too low for float32",
            expected=f"at least {LOWEST_TEMPERATURE}",
            got=str(temperature),
        )
    if base_temperature is not None and not base_temperature > 0:
        raise InputError(
            "base_temperature must be positive, or None for no scaling", got=str(base_temperature)
        )


def _settings(eta: float, temperature: float, share: float, rate: float) -> dict[str, float]:
    return {
        "eta": eta,
        "temperature": temperature,
        "pseudo_share": share,
        "learning_rate": rate,
    }


OPENIMA = register(
    Recipe(
        name="openima",
        title="OpenIMA",
        paper="Wang et al., Open-World Semi-Supervised Learning for Node Classification, ICDE 2024",
        objective=OpenIMA,
        config=OpenIMAConfig(),
        by_dataset={
            "citeseer": _settings(1.0, 0.7, 0.25, 1e-3),
            "photo": _settings(10.0, 0.07, 0.75, 1e-2),
            "computers": _settings(10.0, 0.07, 0.75, 1e-2),
            "cs": _settings(1.0, 0.7, 0.75, 1e-4),
            "physics": _settings(10.0, 0.07, 0.75, 1e-3),
            "ogbn-arxiv": {**_settings(1.0, 0.7, 0.25, 1e-2), "batch_size": 4096},
            "ogbn-products": {**_settings(1.0, 0.7, 0.75, 1e-2), "batch_size": 4096, "epochs": 10},
        },
    )
)

for _name, _title, _changes in (
    ("no-embedding", "w/o embedding-level loss", {"use_embedding": False}),
    ("no-logit", "w/o logit-level loss", {"use_logit": False}),
    ("no-ce", "w/o cross-entropy", {"use_ce": False}),
    ("only-ce", "cross-entropy alone", {"use_embedding": False, "use_logit": False}),
    ("no-pseudo", "w/o pseudo labels", {"pseudo_share": 0.0}),
):
    register(OPENIMA.variant(f"openima-{_name}", f"OpenIMA {_title}", **_changes))

LARGE = OPENIMA.variant(
    "openima-large",
    "OpenIMA-large",
    fan_outs=(10, 20),
    batch_size=4096,
    clustering=MiniBatchKMeansClustering(),
    use_pair=True,
)
register(replace(LARGE, kind="end-to-end", predictor=HeadPredictor()))
register(replace(LARGE, name="openima-large-two-stage", title="OpenIMA-large, two-stage"))
