"""Training: epochs of steps on two dropout views, and a look at all nodes after each."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from openima.errors import InputError
from openima.graph.blocks import Neighbourhoods
from openima.graph.task import Task
from openima.methods.base import Known, Objective, Recipe, Step
from openima.metrics.selection import best_row, contenders
from openima.nn.encoder import Encoder
from openima.nn.rows import FeatureStore
from openima.predict.predictors import name_groups
from openima.train.batching import n_steps
from openima.train.checkpoint import Checkpoint
from openima.train.device import matmul_precision, pick_device
from openima.train.evaluate import evaluate
from openima.train.learned import Learned, Look, State, look_at, seen_from
from openima.train.memory import keep_freed_memory, trim
from openima.train.progress import epoch_bar
from openima.train.snapshot import Snapshot
from openima.train.steps import steps_of


class Chosen(NamedTuple):
    """The state of a run after the epoch that it is used from."""

    learned: Learned
    snapshot: Snapshot


@dataclass(eq=False)
class TrainResult:
    """What training leaves behind.

    `history` has one row an epoch and `groups` (epochs, N) the group of every node after it;
    `encoder`, `objective` and `snapshot` are those of the last epoch, `chosen` of the best one.
    `kept` holds the weights of earlier epochs among which the best is, by row.
    """

    task: Task
    recipe: Recipe
    history: pd.DataFrame
    groups: NDArray[np.int32]
    encoder: Encoder
    objective: Objective
    snapshot: Snapshot
    kept: dict[int, State]

    @cached_property
    def best(self) -> int:
        """The row of `history` that SC&ACC chooses."""
        return best_row(self.history["sc"], self.history["val_acc"])

    @cached_property
    def chosen(self) -> Chosen:
        """What was learned up to the best epoch, and all nodes as they were seen then."""
        learned = Learned(self.encoder, self.objective)
        if self.best == len(self.history) - 1:
            return Chosen(learned, self.snapshot)
        known = Known.of(self.task, pick_device(self.recipe.train.device))
        n_features = self.task.graph.n_features
        learned = Learned.restored(self.recipe, known, n_features, self.kept[self.best])
        look = look_at(learned, self.task.graph, self.recipe)
        return Chosen(learned, replace(self.snapshot, epoch=self.best + 1, **look._asdict()))

    def classes(self, row: int | None = None) -> NDArray[np.int64]:
        """Return the class id of every node at a row of `history` (default: the best).

        Groups are named by the labels that the task knows, never by its truth.
        """
        groups = self.groups[self.best if row is None else row].astype(np.int64)
        return name_groups(groups, self.task.labels, self.task.n_classes)


def train(
    task: Task,
    recipe: Recipe,
    *,
    checkpoint: str | Path | None = None,
    save_every: float = 0.0,
    progress: bool = True,
    on_epoch: Callable[[Run], None] | None = None,
) -> TrainResult:
    """Train a recipe on a task.

    With `checkpoint`, that file is written after every epoch, and training goes on from it if
    it is there already: to the same bytes as without the interruption. `save_every` lets that
    many seconds pass between two writes. `on_epoch` is called after every epoch.
    """
    run = Run(task, recipe)
    saved = None if checkpoint is None else Checkpoint(Path(checkpoint), recipe, task)
    if saved is not None:
        saved.restore(run)
    epochs, last_saved = recipe.train.epochs, time.monotonic()
    with (
        keep_freed_memory(of_any_size=recipe.train.samples) as after_step,
        matmul_precision(recipe.train.precision),
        epoch_bar(recipe.title, epochs, run.n_steps, shown=progress) as bar,
    ):
        while run.epoch < epochs:
            bar.epoch(run.epoch + 1, run.rows[-1] if run.rows else {})
            for _ in run.one_epoch():
                after_step()
                bar.step()
            if saved is not None and time.monotonic() - last_saved >= save_every:
                saved.write(run)
                last_saved = time.monotonic()
            if on_epoch is not None:
                on_epoch(run)
        bar.finish(run.rows[-1])
    return run.result()


class Run:
    """A training run between two epochs: everything that a checkpoint holds, and how to go on."""

    def __init__(self, task: Task, recipe: Recipe) -> None:
        """Draw the initial weights; the seed decides on everything that is random."""
        config = recipe.train
        self.task, self.recipe = task, recipe
        self.device = pick_device(config.device)
        self.rng = np.random.default_rng(config.seed)
        self.generator = torch.Generator(self.device).manual_seed(config.seed)
        self.near = Neighbourhoods(task.graph)
        self.near_of_looks = seen_from(self.near, config)
        self.store = FeatureStore(task.graph, self.device)
        self.known = Known.of(task, self.device)
        self._draw(config.seed)
        self.epoch = 0
        self.rows: list[dict[str, float]] = []
        self.groups: list[NDArray[np.int32]] = []
        self.snapshot: Snapshot | None = None
        self.kept: dict[int, State] = {}

    @property
    def learned(self) -> Learned:
        """Encoder and objective as they are now."""
        return Learned(self.encoder, self.objective)

    def _draw(self, seed: int) -> None:
        """Make encoder, objective and optimiser, with weights drawn from `seed`."""
        recipe, config = self.recipe, self.recipe.train
        initial = torch.Generator().manual_seed(seed)
        encoder = recipe.build_encoder(self.task.graph.n_features, recipe.encoder, initial)
        objective = recipe.objective(self.known, encoder.dim, recipe.config, initial)
        self.encoder, self.objective = encoder.to(self.device), objective.to(self.device)
        groups = (g for other in objective.optimisers.values() for g in other.param_groups)
        elsewhere = {id(parameter) for group in groups for parameter in group["params"]}
        parameters = [*self.encoder.parameters(), *self.objective.parameters()]
        self.optimiser = torch.optim.Adam(
            [parameter for parameter in parameters if id(parameter) not in elsewhere],
            lr=config.learning_rate,
            weight_decay=config.weight_decay,
            fused=True,
        )

    @property
    def n_steps(self) -> int:
        """How many steps an epoch has."""
        return n_steps(self.task.graph.n_nodes, self.recipe.train.batch_size)

    def one_epoch(self) -> Generator[None, None, None]:
        """Train one epoch, yielding after every step, then look at all nodes."""
        wall, cpu = time.perf_counter(), time.process_time()
        self._begin_epoch()
        sums = dict[str, float]()
        with closing(steps_of(self)) as steps:
            for step in steps:
                for name, value in self._learn(step).items():
                    sums[name] = sums.get(name, 0.0) + value / self.n_steps
                del step  # with its inputs, before the next one is waited for
                yield
        step_cpu = time.process_time() - cpu
        self.optimiser.zero_grad(set_to_none=True)
        shape = self.recipe.encoder
        trim(before=4 * self.task.graph.n_nodes * shape.heads * shape.hidden)  # the look's most
        self.epoch += 1
        self.snapshot = self._look()
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

    def _begin_epoch(self) -> None:
        epoch = self.epoch + 1
        self._keep()
        if self.snapshot is None and self.objective.wants_first_look:
            self.snapshot = self._look()
        if self.objective.starts_anew(epoch):
            self._draw((self.recipe.train.seed + epoch) % 2**63)
        self.objective.on_epoch_start(epoch, self.snapshot)
        self.snapshot = None  # as large as all embeddings, and of no use until the next look

    def _keep(self) -> None:
        """Set the weights aside if SC&ACC may yet choose the last epoch; forget those it cannot."""
        if self.rows:
            rows = contenders(*([row[name] for row in self.rows] for name in ("sc", "val_acc")))
            state = {k: v.detach().cpu().clone() for k, v in self.learned.state().items()}
            self.kept = {i: s for i, s in {**self.kept, len(rows) - 1: state}.items() if rows[i]}

    def _learn(self, step: Step) -> dict[str, float]:
        self.objective.before_step(step)
        total, parts = self.objective.loss(step.views(), step.batch)
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
        self.objective.after_step()
        return parts

    def _look(self) -> Snapshot:
        where = f"{self.task.graph.name}, epoch {self.epoch}"
        return self.snapshot_of(self.learned.look(self.store, self.near_of_looks, where))

    def snapshot_of(self, look: Look) -> Snapshot:
        """Make the snapshot of this epoch from what is seen of all nodes."""
        config, task = self.recipe.train, self.task
        return Snapshot(
            self.epoch,
            look.z,
            look.logits,
            task.n_classes,
            config.clustering,
            config.seed,
            novelty=look.novelty,
            n_seen=task.n_seen,
            val=task.val,
            test=task.test,
        )

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
            self.kept,
        )
