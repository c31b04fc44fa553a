"""What a method is: an objective to minimise, and a recipe that says how to use it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from openima.errors import InputError
from openima.graph.blocks import Block, Reach
from openima.graph.task import UNKNOWN, Task
from openima.nn.encoder import Embedding, Encoder
from openima.nn.gat import EncoderConfig, GATEncoder
from openima.nn.rows import Rows
from openima.predict.predictors import ClusterPredictor, Predictor
from openima.train.config import TrainConfig
from openima.train.snapshot import Snapshot


class Views(NamedTuple):
    """The same nodes seen twice, under different dropout; one view where `n_views` is 1."""

    first: Embedding
    second: Embedding


@dataclass(frozen=True, eq=False)
class Batch:
    """The nodes of one step: their numbers, and in which rows of the views they are.

    `train_rows` are the rows of all training nodes, in the order of `Known.train`; it is empty
    when the objective does not ask for them. Where it asks for a sample, they are the rows of
    `train_nodes`. `edges` arrive at the rows of the views, from sources numbered on their own.
    """

    nodes: Tensor
    rows: Tensor
    train_rows: Tensor
    edges: Block
    train_nodes: Tensor | None = None


@dataclass(frozen=True, eq=False)
class Step:
    """One step: its batch, and the means to see its nodes as often as an objective wants."""

    batch: Batch
    encoder: Encoder
    inputs: Rows
    reach: Reach
    generator: torch.Generator
    n_views: int

    def views(self) -> Views:
        """Embed the nodes under fresh dropout, or that of `generator` where its state is set."""
        with self.encoder.unchanged():
            seen = [
                self.encoder(self.inputs, self.reach, self.generator) for _ in range(self.n_views)
            ]
        return Views(seen[0], seen[-1])


@dataclass(frozen=True, eq=False)
class Known:
    """All that training may know of the answer.

    `labels` (N,) is -1 except on the training nodes. `labels_with_val` knows the validation
    nodes too; only the alignment of clusters with classes may look at it.
    """

    n_seen: int
    n_classes: int
    train: Tensor
    labels: Tensor
    labels_with_val: Tensor

    @classmethod
    def of(cls, task: Task, device: torch.device) -> Known:
        """Take from a task what training may know, and no more."""
        return cls.from_labels(task.labels, task.train, task.n_seen, task.n_classes, device)

    @classmethod
    def from_labels(
        cls,
        labels: NDArray[np.int64],
        train: NDArray[np.int64],
        n_seen: int,
        n_classes: int,
        device: torch.device,
    ) -> Known:
        """Tell the `labels` (N,) of the nodes `train` from those that are for alignment alone."""
        all_labels, train_nodes = torch.from_numpy(labels), torch.from_numpy(train)
        of_train = torch.full_like(all_labels, UNKNOWN)
        of_train[train_nodes] = all_labels[train_nodes]
        tensors = (tensor.to(device) for tensor in (train_nodes, of_train, all_labels))
        return cls(n_seen, n_classes, *tensors)


class LossOutput(NamedTuple):
    """The loss of a step, and the numbers it consists of for the log."""

    total: Tensor
    parts: dict[str, float]


class Objective(nn.Module, ABC):
    """A loss with the parameters and the memory it needs; the trainer knows no more than this.

    `n_views` says how often a step sees its nodes. Parameters that an objective trains by itself
    belong to its `optimisers`; all others are trained with the encoder's, by Adam.
    """

    n_views: int = 2

    def __init__(self) -> None:
        """Start without optimisers of its own."""
        super().__init__()
        self.optimisers: dict[str, torch.optim.Optimizer] = {}

    @property
    def wants_train_nodes(self) -> bool:
        """Whether the steps of this epoch need training nodes embedded besides the batch."""
        return False

    @property
    def train_sample(self) -> int | None:
        """How many training nodes a step needs, drawn anew for each; None is all of them."""
        return None

    @property
    def wants_first_look(self) -> bool:
        """Whether all nodes are to be looked at before the first epoch too."""
        return False

    def starts_anew(self, epoch: int) -> bool:
        """Whether encoder and objective are drawn anew before this epoch, as in a second phase."""
        del epoch
        return False

    def on_epoch_start(self, epoch: int, snapshot: Snapshot | None) -> None:
        """Prepare epoch 1, 2, …; `snapshot` shows all nodes after the epoch before, if any."""

    def before_step(self, step: Step) -> None:
        """Do what comes before the loss of a step, such as training parameters of its own."""

    @abstractmethod
    def loss(self, views: Views, batch: Batch) -> LossOutput:
        """Return the loss of one step."""

    def after_step(self) -> None:
        """Do what comes after a step of the optimiser, such as moving prototypes."""

    @abstractmethod
    def logits(self, embedding: Embedding) -> Tensor | None:
        """Return what the method's head says of some nodes, (n, C), or None if it has no head.

        A detector's head knows the seen classes only, (n, n_seen).
        """

    def novelty(self, embedding: Embedding) -> Tensor | None:
        """Return how new some nodes look to a detector, (n,), higher for newer; None if to none."""
        del embedding
        return None


Config = Any  # a frozen dataclass of settings, of a method's or an encoder's own

Kind = Literal["two-stage", "end-to-end", "detector"]
"""How classes come about: clusters of embeddings, a head's outputs, or clusters of the rejected."""


@dataclass(frozen=True)
class Recipe:
    """How a method is put together; a variant of a method is a recipe, not a class.

    `by_dataset` holds the settings that the paper found for its data sets, by the names of the
    fields of `config` and of `TrainConfig`. `kind` and `cost`, a few words on what an epoch takes
    beside two views of the nodes, are for people who choose.
    """

    name: str
    title: str
    paper: str
    objective: Callable[[Known, int, Config, torch.Generator], Objective]
    config: Config
    kind: Kind = "two-stage"
    cost: str = "two views a step"
    predictor: Predictor = field(default_factory=ClusterPredictor)
    train: TrainConfig = field(default_factory=TrainConfig)
    encoder: Config = field(default_factory=EncoderConfig)
    build_encoder: Callable[[int, Any, torch.Generator], Encoder] = GATEncoder
    by_dataset: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def parts(self) -> dict[str, Any]:
        """The dataclasses that hold the settings, by the fields that they are in."""
        return {name: getattr(self, name) for name in ("config", "train", "encoder", "predictor")}

    def for_dataset(self, dataset: str) -> Recipe:
        """Return the recipe with the paper's settings for a data set, if it has any."""
        return self.with_settings(**self.by_dataset.get(dataset, {}))

    def variant(self, name: str, title: str, **pinned: Any) -> Recipe:
        """Return a recipe of another name whose `pinned` settings hold on every data set."""
        by_dataset = {
            dataset: {k: v for k, v in settings.items() if k not in pinned}
            for dataset, settings in self.by_dataset.items()
        }
        named = replace(self, name=name, title=title, by_dataset=by_dataset)
        return named.with_settings(**pinned)

    def with_settings(self, **changes: Any) -> Recipe:
        """Return the recipe with some settings of any of its parts changed."""
        parts = self.parts
        owner = {name: part for part, of in parts.items() for name in of.__dataclass_fields__}
        unknown = sorted(set(changes) - set(owner))
        if unknown:
            close = get_close_matches(unknown[0], owner, n=1)
            raise InputError(
                f"{self.name} has no setting {unknown[0]!r}",
                expected=f"one of {', '.join(sorted(owner))}",
                remedy=f"did you mean {close[0]!r}?" if close else None,
            )
        changed = {
            part: replace(of, **{k: v for k, v in changes.items() if owner[k] == part})
            for part, of in parts.items()
        }
        return replace(self, **changed)


_RECIPES: dict[str, Recipe] = {}


def register(recipe: Recipe) -> Recipe:
    """Make a recipe known by its name."""
    if recipe.name in _RECIPES:
        raise ValueError(f"two recipes are called {recipe.name!r}")
    _RECIPES[recipe.name] = recipe
    return recipe


def recipes() -> dict[str, Recipe]:
    """Return all recipes by name."""
    return dict(_RECIPES)
