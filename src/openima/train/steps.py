"""The steps of an epoch, each with all that it needs: its nodes, who reaches them, features."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from openima.methods.base import Batch, Step
from openima.train.prefetch import prefetched

if TYPE_CHECKING:
    from openima.train.trainer import Run


def steps_of(run: Run) -> Generator[Step, None, None]:
    """Prepare the steps of an epoch; where neighbours are drawn, in the background."""
    config, n_nodes = run.recipe.train, run.task.graph.n_nodes
    batches = config.batching(run.task.train, n_nodes, config.batch_size, run.rng)
    steps = (prepared(run, nodes) for nodes in batches)
    return prefetched(steps) if config.samples else steps


def prepared(run: Run, nodes: NDArray[np.int64]) -> Step:
    """Find what reaches the batch and the training nodes; both views share it."""
    train = _train_nodes(run)
    targets = np.union1d(nodes, train)
    reach = run.near.reach(targets, run.recipe.train.fan_outs, run.rng).to(run.device)
    parts = nodes, np.searchsorted(targets, nodes), np.searchsorted(targets, train), train
    of_batch, rows, train_rows, train_nodes = (
        torch.from_numpy(part).to(run.device) for part in parts
    )
    sampled = None if run.objective.train_sample is None else train_nodes
    batch = Batch(of_batch, rows, train_rows, reach.blocks[-1], sampled)
    inputs = run.store.rows(reach.inputs)
    return Step(batch, run.encoder, inputs, reach, run.generator, run.objective.n_views)


def _train_nodes(run: Run) -> NDArray[np.int64]:
    """Return the training nodes that a step needs, drawn anew where it needs not all."""
    train, size = run.task.train, run.objective.train_sample
    if not run.objective.wants_train_nodes:
        return train[:0]
    return train if size is None else run.rng.permutation(train)[:size]
