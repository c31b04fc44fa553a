"""Checkpoints: one safetensors file, tensors and a JSON header, replaced atomically."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from openima.errors import InputError
from openima.graph.task import Task
from openima.methods.base import Recipe
from openima.tensors import save_tensors
from openima.train.learned import Look

if TYPE_CHECKING:
    from openima.train.trainer import Run

FORMAT = 2

_ROWS = 1 << 16  # of an array that are hashed in one go


class Checkpoint:
    """The file that a run is saved to after every epoch and restored from."""

    def __init__(self, path: Path, recipe: Recipe, task: Task) -> None:
        """Bind the file to one recipe and task, so that it cannot continue another."""
        self.path = path
        if path.is_dir():
            raise InputError(
                "the checkpoint is a file, and this is a folder",
                where=str(path),
                remedy="name a file in it",
            )
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                "the folder of the checkpoint cannot be made",
                where=str(path.parent),
                got=error.strerror,
                remedy="use a path whose folder can be written to",
            ) from None
        self._fingerprint = fingerprint(recipe, task)

    def write(self, run: Run) -> None:
        """Replace the file by the state of `run`; a reader sees the old or the new, no mixture."""
        header = {
            "format": FORMAT,
            "fingerprint": self._fingerprint,
            "epoch": run.epoch,
            "rows": run.rows,
            "rng": run.rng.bit_generator.state,
        }
        partial = self.path.with_name(f"{self.path.name}.{os.getpid()}.partial")
        try:
            save_tensors(_tensors_of(run), partial, {"run": json.dumps(header)})
            partial.replace(self.path)
        finally:
            partial.unlink(missing_ok=True)

    def restore(self, run: Run) -> None:
        """Bring `run` to the state of the file; nothing happens if there is none yet."""
        if not self.path.exists():
            return
        with _opened(self.path) as (file, header):
            found = header["format"], header["fingerprint"]
            names = file.keys()
            tensors = {name: file.get_tensor(name) for name in names}
        if found[0] != FORMAT:
            raise InputError(
                "the checkpoint has another format",
                where=str(self.path),
                expected=f"format {FORMAT}",
                got=f"format {found[0]}",
                remedy="use the version of openima that wrote it, or delete it to start anew",
            )
        if found[1] != self._fingerprint:
            raise InputError(
                "the checkpoint is of another run",
                where=str(self.path),
                expected="the same method, settings, graph and labels as now",
                remedy="use another file for this run, or delete this one to start anew",
            )
        if header["epoch"] > run.recipe.train.epochs:
            raise InputError(
                "the checkpoint is further than this run is to go",
                where=str(self.path),
                expected=f"at most {run.recipe.train.epochs} epochs",
                got=f"{header['epoch']}",
                remedy="ask for as many epochs, or use another file for this run",
            )
        _restore_generator(run, tensors["generator"], str(self.path))
        run.epoch, run.rows = header["epoch"], header["rows"]
        _restore_tensors(run, tensors)
        run.rng.bit_generator.state = header["rng"]


def epochs_done(path: Path) -> int:
    """Return how many epochs of training a checkpoint holds."""
    with _opened(path) as (_, header):
        return int(header["epoch"])


@contextmanager
def _opened(path: Path) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Open a file and read its header; what fails while it is open is the file's fault."""
    try:
        with safe_open(path, framework="pt") as file:
            yield file, json.loads((file.metadata() or {})["run"])
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            "this is no readable checkpoint",
            where=str(path),
            got=f"{type(error).__name__}: {error}",
            remedy="use another file, or delete this one to start anew",
        ) from None


def fingerprint(recipe: Recipe, task: Task) -> str:
    """Tell runs apart by method, settings, graph and known labels; not by how long they run."""
    endless = replace(recipe.train, epochs=1)
    settings: Any = (recipe.name, {**recipe.parts, "train": endless})
    digest = hashlib.sha256(repr((settings, task.n_seen, task.n_novel)).encode())
    digest.update(data_fingerprint(task).encode())
    return digest.hexdigest()


def data_fingerprint(task: Task) -> str:
    """Tell tasks apart by graph, features, split and known labels."""
    digest = hashlib.sha256()
    graph, x = task.graph, task.graph.features
    features = [x] if isinstance(x, np.ndarray) else [x.data, x.indices, x.indptr]
    parts = (graph.indptr, graph.sources, task.labels, task.train, task.val, task.test)
    for array in (*parts, *features):
        for start in range(0, len(array), _ROWS):  # features may be larger than memory
            digest.update(np.ascontiguousarray(array[start : start + _ROWS]).data)
    return digest.hexdigest()


def _tensors_of(run: Run) -> dict[str, Tensor]:
    tensors = run.learned.state()
    tensors |= {f"kept.{row}.{k}": v for row, state in run.kept.items() for k, v in state.items()}
    for name, optimiser in _optimisers(run).items():
        for i, state in optimiser.state_dict()["state"].items():
            tensors |= {f"{name}.{i}.{k}": v for k, v in state.items()}
    tensors["generator"] = run.generator.get_state()
    tensors["groups"] = torch.from_numpy(np.stack(run.groups))
    if run.snapshot is not None:
        tensors["z"] = torch.from_numpy(run.snapshot.z)
        for name in ("logits", "novelty"):
            found = getattr(run.snapshot, name)
            if found is not None:
                tensors[name] = torch.from_numpy(found)
    return tensors


def _restore_generator(run: Run, state: Tensor, where: str) -> None:
    """Set the random numbers of dropout; those of a GPU and of a CPU cannot stand in for others."""
    try:
        run.generator.set_state(state)
    except RuntimeError:
        raise InputError(
            "the checkpoint is of a run on another kind of device",
            where=where,
            got=f"{run.device.type}",
            remedy="go on with the device that it began on, or delete it to start anew",
        ) from None


def _restore_tensors(run: Run, tensors: dict[str, Tensor]) -> None:
    def under(prefix: str) -> dict[str, Tensor]:
        return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}

    run.learned.load(tensors)
    for optimiser_name, optimiser in _optimisers(run).items():
        state: dict[int, dict[str, Tensor]] = {}
        for name, tensor in under(f"{optimiser_name}.").items():
            number, _, key = name.partition(".")
            state.setdefault(int(number), {})[key] = tensor
        optimiser.load_state_dict({**optimiser.state_dict(), "state": state})
    for name, tensor in under("kept.").items():
        row, _, key = name.partition(".")
        run.kept.setdefault(int(row), {})[key] = tensor
    run.groups = list(tensors["groups"].numpy())
    found = (tensors.get(name) for name in ("logits", "novelty"))
    logits, novelty = (None if tensor is None else tensor.numpy() for tensor in found)
    run.snapshot = run.snapshot_of(Look(tensors["z"].numpy(), logits, novelty))


def _optimisers(run: Run) -> dict[str, torch.optim.Optimizer]:
    own = {f"adam-{name}": of for name, of in run.objective.optimisers.items()}
    return {"adam": run.optimiser, **own}
