"""Training: epochs of steps on two dropout views, and a look at all nodes after each."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from openima.errors import InputError
from openima.graph.blocks import Neighbourhoods
from openima.graph.task import Task
from openima.methods.base import Batch, Known, Objective, Recipe, Views
from openima.metrics.selection import best_row
from openima.nn.gat import GATEncoder
from openima.nn.inference import embed_all
from openima.nn.rows import FeatureStore
from openima.predict.predictors import name_groups
from openima.train.checkpoint import Checkpoint
from openima.train.evaluate import evaluate
from openima.train.memory import keep_freed_memory, trim
from openima.train.progress import epoch_bar
from openima.train.snapshot import Snapshot


@dataclass(eq=False)
class TrainResult:
    """What training leaves behind.

    `history` has one row an epoch and `groups` (epochs, N) the group of every node after it;
    `encoder`, `objective` and `snapshot` are those of the last epoch.
    """

    task: Task
    recipe: Recipe
    history: pd.DataFrame
    groups: NDArray[np.int32]
    encoder: GATEncoder
    objective: Objective
    snapshot: Snapshot

    @cached_property
    def best(self) -> int:
        """The row of `history` that SC&ACC chooses."""
        return best_row(self.history["sc"], self.history["val_acc"])

    def classes(self, row: int | None = None) -> NDArray[np.int64]:
        """Return the class id of every node at a row of `history` (default: the best).

        Groups are named by the labels that the task knows, never by its truth.
        """
        groups = self.groups[self.best if row is None else row].astype(np.int64)
        return name_groups(groups, self.task.labels, self.task.n_classes)


def train(
    task: Task, recipe: Recipe, *, checkpoint: str | Path | None = None, progress: bool = True
) -> TrainResult:
    """Train a recipe on a task.

    With `checkpoint`, that file is written after every epoch, and training goes on from it if
    it is there already: to the same bytes as without the interruption.
    """
    run = Run(task, recipe)
    saved = None if checkpoint is None else Checkpoint(Path(checkpoint), recipe, task)
    if saved is not None:
        saved.restore(run)
    epochs = recipe.train.epochs
    with (
        keep_freed_memory(),
        _matmul_precision(recipe.train.precision),
        epoch_bar(recipe.title, epochs, run.n_steps, shown=progress) as bar,
    ):
        while run.epoch < epochs:
            bar.epoch(run.epoch + 1, run.rows[-1] if run.rows else {})
            for _ in run.one_epoch():
                bar.step()
            if saved is not None:
                saved.write(run)
        bar.finish(run.rows[-1])
    return run.result()


class Run:
    """A training run between two epochs: everything that a checkpoint holds, and how to go on."""

    def __init__(self, task: Task, recipe: Recipe) -> None:
        """Draw the initial weights; the seed decides on everything that is random."""
        config = recipe.train
        self.task, self.recipe = task, recipe
        self.device = _device(config.device)
        self.rng = np.random.default_rng(config.seed)
        self.generator = torch.Generator(self.device).manual_seed(config.seed)
        initial = torch.Generator().manual_seed(config.seed)
        self.near = Neighbourhoods(task.graph)
        self.store = FeatureStore(task.graph, self.device)
        self.known = Known.of(task, self.device)
        self.encoder = GATEncoder(task.graph.n_features, recipe.encoder, initial).to(self.device)
        dim = self.encoder.dim
        self.objective = recipe.objective(self.known, dim, recipe.config, initial).to(self.device)
        parameters = [*self.encoder.parameters(), *self.objective.parameters()]
        self.optimiser = torch.optim.Adam(
            parameters, lr=config.learning_rate, weight_decay=config.weight_decay, foreach=False
        )
        self.epoch = 0
        self.rows: list[dict[str, float]] = []
        self.groups: list[NDArray[np.int32]] = []
        self.snapshot: Snapshot | None = None

    @property
    def n_steps(self) -> int:
        """How many steps an epoch has."""
        return -(-self.task.graph.n_nodes // self.recipe.train.batch_size)

    def one_epoch(self) -> Iterator[None]:
        """Train one epoch, yielding after every step, then look at all nodes."""
        wall, cpu = time.perf_counter(), time.process_time()
        self.objective.on_epoch_start(self.epoch + 1, self.snapshot)
        order = self.rng.permutation(self.task.graph.n_nodes)
        sums: dict[str, float] = {}
        for start in range(0, len(order), self.recipe.train.batch_size):
            parts = self._step(order[start : start + self.recipe.train.batch_size])
            for name, value in parts.items():
                sums[name] = sums.get(name, 0.0) + value / self.n_steps
            yield
        step_cpu = time.process_time() - cpu
        self.optimiser.zero_grad(set_to_none=True)
        trim()  # what the steps took is not what the look at all nodes takes
        self.epoch += 1
        self.snapshot = self.look(*self._embed_all())
        groups = self.recipe.predictor(self.snapshot)
        self.groups.append(groups.astype(np.int32))
        self.rows.append(
            {"epoch": self.epoch}
            | {f"loss_{name}": value for name, value in sums.items()}
            | evaluate(self.task, self.snapshot, groups)
            | {
                "seconds": time.perf_counter() - wall,
                "cpu_seconds": time.process_time() - cpu,
                "cpu_seconds_steps": step_cpu,
            }
        )

    def _step(self, nodes: NDArray[np.int64]) -> dict[str, float]:
        train = self.task.train if self.objective.wants_train_nodes else self.task.train[:0]
        targets = np.union1d(nodes, train)
        reach = self.near.reach(targets, self.recipe.train.fan_outs, self.rng).to(self.device)
        x = self.store.rows(reach.inputs)
        views = Views(*(self.encoder(x, reach, self.generator) for _ in range(2)))
        rows, train_rows = (np.searchsorted(targets, part) for part in (nodes, train))
        as_tensors = (torch.from_numpy(a).to(self.device) for a in (nodes, rows, train_rows))
        total, parts = self.objective.loss(views, Batch(*as_tensors))
        if not torch.isfinite(total):
            raise InputError(
                f"the loss became {total.item()} in epoch {self.epoch + 1}",
                where=self.task.graph.name,
                got=", ".join(f"{name} {value:.4g}" for name, value in parts.items()),
                remedy="lower the learning rate, or scale the features",
            )
        self.optimiser.zero_grad(set_to_none=True)
        torch.autograd.backward([total])
        self.optimiser.step()
        return parts

    @torch.no_grad()
    def _embed_all(self) -> tuple[NDArray[np.float32], NDArray[np.float32] | None]:
        embedding = embed_all(self.encoder, self.store, self.near)
        if not torch.isfinite(embedding.z).all():
            raise InputError(
                f"the embeddings are not finite after epoch {self.epoch}",
                where=self.task.graph.name,
                remedy="lower the learning rate, or scale the features",
            )
        logits = self.objective.logits(embedding)
        return embedding.z.cpu().numpy(), None if logits is None else logits.cpu().numpy()

    def look(self, z: NDArray[np.float32], logits: NDArray[np.float32] | None) -> Snapshot:
        """Make the snapshot of this epoch from the embeddings and logits of all nodes."""
        config = self.recipe.train
        n_classes = self.task.n_classes
        return Snapshot(self.epoch, z, logits, n_classes, config.clustering, config.seed)

    def result(self) -> TrainResult:
        """Hand over what has been learned."""
        if self.snapshot is None:
            raise InputError("nothing has been trained", expected="at least one epoch")
        return TrainResult(
            self.task,
            self.recipe,
            pd.DataFrame(self.rows),
            np.stack(self.groups),
            self.encoder,
            self.objective,
            self.snapshot,
        )


def _device(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError):  # torch raises the latter where it lacks CUDA
        device = None
    if device is None or device.type not in ("cpu", "cuda"):
        raise InputError(
            f"the device {name!r} cannot be used here",
            expected="auto, cpu or, with a GPU that torch can use, cuda",
            remedy="leave it at auto",
        )
    return device


@contextmanager
def _matmul_precision(precision: str) -> Iterator[None]:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium" if precision == "bfloat16" else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
