"""OpenLDN: pairwise similarities that are learned by looking ahead (Rizve et al., ECCV 2022)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from openima.errors import InputError
from openima.losses.consistency import consistency
from openima.losses.entropy import entropy
from openima.losses.similarity import similarity_regression
from openima.methods.base import Batch, Known, LossOutput, Objective, Recipe, Step, Views, register
from openima.methods.bilevel import gradient_after_step
from openima.nn.encoder import Embedding
from openima.nn.heads import linear_head
from openima.nn.simnet import SimNet
from openima.predict.predictors import HeadPredictor
from openima.train.batching import HalfLabelledBatches
from openima.train.config import TrainConfig
from openima.train.snapshot import Snapshot

UDA_TEMPERATURE, UDA_THRESHOLD = 0.4, 0.8
"""How sharp the targets of the term `uda` are, and from which confidence on a node has one."""


@dataclass(frozen=True)
class OpenLDNConfig:
    """Settings of OpenLDN.

    - `base_epochs` is the length of the first phase, which finds new classes; the epochs after
      it are the closed world, trained on labels and pseudo labels alone;
    - `refresh` is how many closed-world epochs pseudo labels stay as they are;
    - `n_pseudo` is how many nodes of each new class get one; None: as many as a seen class has
      labelled nodes on average;
    - `continue_from_base` goes on with the first phase's network instead of a fresh one;
    - `labelled_share` is the weight of a batch's labelled nodes in means over all its nodes (the
      published code repeats them until they are half); None: each node counts the same;
    - `confidence` is the probability from which one view's class is a target for the other;
    - `simnet_hidden` and `simnet_rate` are the similarity network's width and learning rate, and
      `inner_rate` the length of the step that it looks ahead;
    - `uda` weighs an added consistency loss of the closed world; 0 leaves it out.
    """

    base_epochs: int = 50
    refresh: int = 10
    n_pseudo: int | None = None
    continue_from_base: bool = False
    labelled_share: float | None = 0.5
    confidence: float = 0.5
    simnet_hidden: int = 100
    simnet_rate: float = 1e-4
    inner_rate: float = 1e-3
    uda: float = 0.0

    def __post_init__(self) -> None:
        """Refuse settings without a meaning."""
        for name in ("base_epochs", "refresh", "n_pseudo", "simnet_hidden"):
            number = getattr(self, name)
            if number is not None and number < 1:
                raise InputError(f"{name} must be at least 1", got=str(number))
        for name in ("simnet_rate", "inner_rate"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} must be positive", got=str(getattr(self, name)))
        for name in ("labelled_share", "confidence"):
            share = getattr(self, name)
            if share is not None and not 0 < share < 1:
                expected = "more than 0, less than 1"
                raise InputError(f"{name} is a share", expected=expected, got=str(share))
        if not self.uda >= 0:
            raise InputError("uda cannot be negative", got=str(self.uda))


class OpenLDN(Objective):
    """Finds new classes by learned similarities, then trains on their pseudo labels."""

    pseudo_labels: Tensor

    def __init__(
        self, known: Known, dim: int, config: OpenLDNConfig, generator: torch.Generator
    ) -> None:
        """Draw the weights of classifier and similarity network; nothing has a pseudo label."""
        super().__init__()
        self.known = known
        self.config = config
        self.head = linear_head(dim, known.n_classes, generator)
        self.simnet = SimNet(dim, config.simnet_hidden, generator)
        self.optimisers["simnet"] = torch.optim.Adam(
            self.simnet.parameters(), lr=config.simnet_rate, foreach=False
        )
        self.finding = True
        self.register_buffer("pseudo_labels", torch.full_like(known.labels, -1))

    def starts_anew(self, epoch: int) -> bool:
        """The closed world has a fresh network, unless it is to go on with the old."""
        return epoch == self.config.base_epochs + 1 and not self.config.continue_from_base

    def on_epoch_start(self, epoch: int, snapshot: Snapshot | None) -> None:
        """Replace the pseudo labels when the closed world begins, and from time to time in it."""
        closed_for = epoch - 1 - self.config.base_epochs
        self.finding = closed_for < 0
        self.n_views = 2 if self.finding or self.config.uda else 1
        if not self.finding and closed_for % self.config.refresh == 0:
            if snapshot is None or snapshot.logits is None:
                raise ValueError("pseudo labels need what the head says after the epoch before")
            each = self.config.n_pseudo or round(len(self.known.train) / self.known.n_seen)
            unlabelled = (self.known.labels < 0).cpu().numpy()
            labels = most_confident(snapshot.logits, unlabelled, self.known.n_seen, each)
            self.pseudo_labels.copy_(torch.from_numpy(labels))

    def before_step(self, step: Step) -> None:
        """Train the similarity network towards what will lower the labelled nodes' loss."""
        if not self.finding:
            return
        optimiser = self.optimisers["simnet"]
        gradients = self.simnet_gradients(step)
        for parameter, gradient in zip(self.simnet.parameters(), gradients, strict=True):
            parameter.grad = gradient
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)

    def simnet_gradients(self, step: Step) -> list[Tensor]:
        """Return the gradient, to the similarity network, of cross-entropy after a step.

        All passes repeat the dropout of the two views that the step itself sees. Afterwards the
        generator is where these left it, so the step that counts gets fresh views.
        """
        batch, state = step.batch, step.generator.get_state()
        views = step.views()
        state_after = step.generator.get_state()

        def first_view() -> Tensor:
            step.generator.set_state(state)
            view: Embedding = step.encoder(step.inputs, step.reach, step.generator)
            return view.g.index_select(0, batch.rows)

        def base_loss() -> Tensor:
            similarity = self.simnet(views.first.g.index_select(0, batch.rows))
            return _sum(self._base_terms(views, batch, similarity))

        def labelled_loss() -> Tensor:
            return _cross_entropy(self.head(first_view()), self.known.labels[batch.nodes])

        def pair_loss() -> Tensor:
            with torch.no_grad():
                g = first_view()
                p = self.head(g).softmax(1)
            return similarity_regression(p, self.simnet(g), self._weight(batch))

        gradients = gradient_after_step(
            base_loss,
            labelled_loss,
            pair_loss,
            moving=[*step.encoder.parameters(), *self.head.parameters()],
            fixed=list(self.simnet.parameters()),
            rate=self.config.inner_rate,
        )
        step.generator.set_state(state_after)
        return gradients

    def loss(self, views: Views, batch: Batch) -> LossOutput:
        """Add up the terms of the phase; the similarities are taken as they are."""
        if self.finding:
            with torch.no_grad():
                similarity = self.simnet(views.first.g.index_select(0, batch.rows))
            terms = self._base_terms(views, batch, similarity)
        else:
            terms = self._closed_terms(views, batch)
        return LossOutput(_sum(terms), {name: term.item() for name, term in terms.items()})

    def logits(self, embedding: Embedding) -> Tensor:
        """Classify raw embeddings."""
        logits: Tensor = self.head(embedding.g)
        return logits

    def _base_terms(self, views: Views, batch: Batch, similarity: Tensor) -> dict[str, Tensor]:
        """Return the terms of the first phase; labelled nodes are seen in the first view alone."""
        weak, strong = (self.head(view.g.index_select(0, batch.rows)) for view in views)
        labels = self.known.labels[batch.nodes]
        unlabelled = labels < 0
        p, weight = weak.softmax(1), self._weight(batch)
        return {
            "pair": similarity_regression(p, similarity, weight),
            "entropy": -entropy(weight @ p),
            "ce": _cross_entropy(weak, labels),
            "pseudo": consistency(strong[unlabelled], weak[unlabelled], self.config.confidence),
        }

    def _closed_terms(self, views: Views, batch: Batch) -> dict[str, Tensor]:
        """Return the terms of the closed world: labels and pseudo labels are what is known."""
        logits = self.head(views.first.g.index_select(0, batch.rows))
        labels = self.known.labels[batch.nodes]
        terms = {
            "ce": _cross_entropy(logits, labels),
            "novel": _cross_entropy(logits, self.pseudo_labels[batch.nodes]),
        }
        if self.config.uda:
            unlabelled = labels < 0
            strong = self.head(views.second.g.index_select(0, batch.rows[unlabelled]))
            terms["uda"] = self.config.uda * consistency(
                strong, logits[unlabelled], UDA_THRESHOLD, UDA_TEMPERATURE
            )
        return terms

    def _weight(self, batch: Batch) -> Tensor:
        """Return the share of each node of the batch in means over all of them, (n,)."""
        labelled = self.known.labels[batch.nodes] >= 0
        share, dtype = self.config.labelled_share, self.head.weight.dtype
        if share is None:
            each = torch.ones(len(labelled), dtype=dtype, device=labelled.device)
        else:
            n_labelled = labelled.sum().to(dtype)
            of_others = (1.0 - share) / (len(labelled) - n_labelled)
            each = torch.where(labelled, share / n_labelled, of_others)
        return each / each.sum()  # which matters too where nodes of one kind are missing


def most_confident(
    logits: NDArray[np.float32], among: NDArray[np.bool_], n_seen: int, each: int
) -> NDArray[np.int64]:
    """Label, for each new class, the `each` nodes that are most clearly of it.

    Of the nodes that `among` (N,) allows, a class has those whose largest of `logits` (N, C) is
    its own; the most probable come first. Returns class ids (N,), -1 for all other nodes.
    """
    p = torch.from_numpy(logits).softmax(1).numpy()
    likely = p.argmax(axis=1)
    labels = np.full(len(p), -1)
    for novel in range(n_seen, p.shape[1]):
        nodes = np.flatnonzero(among & (likely == novel))
        first = np.argsort(-p[nodes, novel], kind="stable")[:each]
        labels[nodes[first]] = novel
    return labels


def _cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the mean over nodes with a label (not -1), 0 without any."""
    total = F.cross_entropy(logits, labels, ignore_index=-1, reduction="sum")
    return total / (labels >= 0).sum().clamp(min=1)


def _sum(terms: dict[str, Tensor]) -> Tensor:
    return torch.stack(list(terms.values())).sum()


OPENLDN = register(
    Recipe(
        name="openldn",
        title="OpenLDN",
        paper="Rizve et al., OpenLDN: Learning to Discover Novel Classes for Open-World "
        "Semi-Supervised Learning, ECCV 2022",
        objective=OpenLDN,
        config=OpenLDNConfig(),
        kind="end-to-end",
        cost="3.5 times two views a step in the first half, one view in the second",
        predictor=HeadPredictor(),
        train=TrainConfig(epochs=100, batching=HalfLabelledBatches()),
    )
)
