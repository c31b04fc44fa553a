"""What was learned up to some epoch, and what it says of the nodes of any graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from openima.errors import InputError
from openima.graph.blocks import Neighbourhoods
from openima.graph.graph import Graph
from openima.methods.base import Known, Objective, Recipe
from openima.nn.encoder import Encoder
from openima.nn.inference import embed_all
from openima.nn.rows import FeatureStore
from openima.train.config import TrainConfig
from openima.train.device import matmul_precision, pick_device

State: TypeAlias = dict[str, Tensor]


class Look(NamedTuple):
    """What is seen of n nodes without dropout.

    Unit-length embeddings `z` (n, d); of methods that have them, the outputs of a head, `logits`,
    and the score of a detector of new classes, `novelty` (n,).
    """

    z: NDArray[np.float32]
    logits: NDArray[np.float32] | None
    novelty: NDArray[np.float32] | None


@dataclass(eq=False)
class Learned:
    """An encoder and the objective that it was trained with."""

    encoder: Encoder
    objective: Objective

    @classmethod
    def restored(
        cls, recipe: Recipe, known: Known, n_features: int, state: Mapping[str, Tensor]
    ) -> Learned:
        """Make both anew, as they were when `state` was taken, on the device of `known`."""
        generator = torch.Generator().manual_seed(0)
        encoder = recipe.build_encoder(n_features, recipe.encoder, generator)
        objective = recipe.objective(known, encoder.dim, recipe.config, generator)
        learned = cls(encoder.to(known.labels.device), objective.to(known.labels.device))
        learned.load(state)
        return learned

    def state(self) -> State:
        """Return all weights and buffers by name; they go on changing with the training."""
        parts = {"encoder": self.encoder, "objective": self.objective}
        return {f"{p}.{k}": v for p, part in parts.items() for k, v in part.state_dict().items()}

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Take the weights and buffers from `state`, which may hold other tensors too."""
        for name, part in (("encoder.", self.encoder), ("objective.", self.objective)):
            part.load_state_dict(
                {k.removeprefix(name): v for k, v in state.items() if k.startswith(name)}
            )

    @torch.no_grad()
    def look(self, store: FeatureStore, near: Neighbourhoods, where: str) -> Look:
        """Look at all nodes of a graph; `where` names it should an embedding not be finite."""
        embedding = embed_all(self.encoder, store, near)
        if not torch.isfinite(embedding.z).all():
            raise InputError(
                "the embeddings are not finite",
                where=where,
                remedy="lower the learning rate, or scale the features",
            )
        return Look(
            _as_array(embedding.z),
            _as_array(self.objective.logits(embedding)),
            _as_array(self.objective.novelty(embedding)),
        )


def seen_from(near: Neighbourhoods, config: TrainConfig) -> Neighbourhoods:
    """Return what a look at all nodes sees of each: all its neighbours, or a sample of them."""
    if config.look_fan_out is None:
        return near
    return near.sampled(config.look_fan_out, np.random.default_rng(config.seed))


def look_at(learned: Learned, graph: Graph, recipe: Recipe) -> Look:
    """Look at a graph that has not been prepared, in the precision of the training."""
    store = FeatureStore(graph, pick_device(recipe.train.device))
    with matmul_precision(recipe.train.precision):
        return learned.look(store, seen_from(Neighbourhoods(graph), recipe.train), graph.name)


@overload
def _as_array(tensor: Tensor) -> NDArray[np.float32]: ...
@overload
def _as_array(tensor: Tensor | None) -> NDArray[np.float32] | None: ...
def _as_array(tensor: Tensor | None) -> NDArray[np.float32] | None:
    return None if tensor is None else tensor.cpu().numpy()
