"""What every encoder is: two layers on two blocks, and what it says of the nodes it reaches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import NamedTuple, TypeAlias, cast

import torch
from torch import Tensor, nn

from openima.graph.blocks import Block, Reach
from openima.nn.rows import Rows

Hidden: TypeAlias = tuple[Tensor, ...]
"""What a first layer hands to the second: tensors whose last dimension but one counts nodes."""


class Embedding(NamedTuple):
    """What an encoder says of some nodes: raw `g` and unit-length `z`, each (n, d).

    `extra` (n, k) is what a special encoder says besides; its own file tells what that is.
    """

    g: Tensor
    z: Tensor
    extra: Tensor | None = None


class Layer(nn.Module, ABC):
    """A layer, whose weights views may share work on."""

    @abstractmethod
    def unchanged(self) -> AbstractContextManager[None]:
        """Promise that no weight changes in the body of a `with`."""


class Encoder(nn.Module, ABC):
    """Two layers that turn features of nodes and their neighbours into embeddings.

    A generator switches dropout on. Without one, nothing is random.
    """

    layers: nn.ModuleList

    @property
    @abstractmethod
    def dim(self) -> int:
        """The width of the embeddings."""

    @abstractmethod
    def first(self, x: Rows, block: Block, generator: torch.Generator | None) -> Hidden:
        """Apply the first layer to the features of the block's sources."""

    @abstractmethod
    def second(self, hidden: Hidden, block: Block, generator: torch.Generator | None) -> Embedding:
        """Apply the second layer to what the first says of the block's sources."""

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Promise that no weight changes while the body runs, so that views can share work.

        They are then parts of one loss, whose gradient is taken once.
        """
        with ExitStack() as stack:
            for layer in self.layers:
                stack.enter_context(cast("Layer", layer).unchanged())
            yield

    def forward(self, x: Rows, reach: Reach, generator: torch.Generator | None = None) -> Embedding:
        """Embed the targets of `reach`; `x` are the features of its inputs.

        Each call with a generator is a fresh view of the nodes.
        """
        first, second = reach.blocks
        return self.second(self.first(x, first, generator), second, generator)
