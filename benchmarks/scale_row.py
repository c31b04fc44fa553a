"""One row of `benchmarks/scale.py` in a process of its own, printed as JSON.

python -m benchmarks.scale_row FOLDER [...]
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
from collections import deque
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file

from openima.graph.graph import Graph
from openima.graph.task import LabelledGraph, Task
from openima.methods import Recipe, get_recipe
from openima.metrics.accuracy import open_world_accuracy
from openima.predict.clustering import CLUSTERINGS
from openima.train import steps
from openima.train.batching import Nodes, ShuffledBatches, n_steps
from openima.train.evaluate import evaluate
from openima.train.learned import Look
from openima.train.memory import keep_freed_memory, trim
from openima.train.trainer import Run

SETTINGS: dict[str, Any] = {"device": "cpu"}
"""Settings other than those for ogbn-products."""


@dataclass(frozen=True)
class FirstBatches:
    """The first batches of an epoch, for an epoch too long to be gone through."""

    limit: int

    def __call__(
        self, train: Nodes, n_nodes: int, batch_size: int | None, rng: np.random.Generator
    ) -> list[Nodes]:
        return ShuffledBatches()(train, n_nodes, batch_size, rng)[: self.limit]


@dataclass
class Watch:
    """Adds up the seconds that functions take, of the processor (of all threads) and on the wall.

    What runs beside other things is timed by the processor time of its own thread.
    """

    seconds: dict[str, list[float]] = field(default_factory=dict)

    def timed(self, name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        clock = time.thread_time if name == "sampling" else time.process_time

        @wraps(work)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            cpu, wall = clock(), time.perf_counter()
            try:
                return work(*args, **kwargs)
            finally:
                of_stage = self.seconds.setdefault(name, [0.0, 0.0])
                of_stage[0] += clock() - cpu
                of_stage[1] += time.perf_counter() - wall

        return wrapped


def main() -> None:
    parser = argparse.ArgumentParser(description="One row of benchmarks/scale.py.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--key", default="row", help="names what is kept for another process")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--steps-limit", type=int)
    parser.add_argument("--per-class", type=int, default=500)
    parser.add_argument("--ce-nodes", type=int)
    parser.add_argument("--method", default="openima-large")
    parser.add_argument("--clustering", choices=sorted(CLUSTERINGS))
    parser.add_argument("--n-init", type=int)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(json.dumps(measured(options)))


def measured(options: argparse.Namespace) -> dict[str, Any]:
    """Go through the stages of the last epoch; what an earlier process finished is not repeated."""
    watch = Watch()
    task = watch.timed("load", load)(options.folder, options.per_class)
    recipe = recipe_of(options, task.graph.n_nodes)
    run = watch.timed("prepare", Run)(task, recipe)
    kept = options.folder / f"kept-{options.key}"
    kept.mkdir(exist_ok=True)
    found: dict[str, Any] = {}
    timed = watch.timed("sampling", steps.prepared)
    with patch("openima.train.steps.prepared", timed), keep_freed_memory(of_any_size=True):
        for stage in (train, look, judge):
            path = kept / f"{stage.__name__}.json"
            if not path.exists():
                outcome = stage(run, watch, options, kept)
                path.write_text(json.dumps({**outcome, "peak_gb": peak() / 1e9}))
            of_stage = json.loads(path.read_text())
            found["peak_gb"] = max(found.get("peak_gb", 0.0), of_stage.pop("peak_gb"))
            found["seconds"] = {**found.get("seconds", {}), **of_stage.pop("seconds")}
            found |= of_stage
    for name in ("load", "prepare"):
        found["seconds"][name] = watch.seconds[name]
    shutil.rmtree(kept)
    return {
        "nodes": task.graph.n_nodes,
        "edges": task.graph.n_edges,
        "features": task.graph.n_features,
        "labelled": len(task.train),
        "steps": n_steps(task.graph.n_nodes, recipe.train.batch_size),
        **{name: getattr(options, name) for name in ("threads", "epochs", "ce_nodes", "method")},
        "clustering": repr(recipe.train.clustering),
        **found,
    }


def recipe_of(options: argparse.Namespace, n_nodes: int) -> Recipe:
    settings = {"warm_up": options.epochs > 1, **SETTINGS}  # a single epoch has all terms
    if options.ce_nodes is not None:
        settings["ce_nodes"] = options.ce_nodes
    if options.clustering is not None:
        chosen = {} if options.n_init is None else {"n_init": options.n_init}
        settings["clustering"] = CLUSTERINGS[options.clustering](**chosen)
    recipe = get_recipe(options.method).for_dataset("ogbn-products").with_settings(**settings)
    limit = options.steps_limit or n_steps(n_nodes, recipe.train.batch_size)
    return recipe.with_settings(batching=FirstBatches(limit))


def train(run: Run, watch: Watch, options: argparse.Namespace, kept: Path) -> dict[str, Any]:
    """Take the steps of the last epoch, after whole epochs before it; keep the weights."""
    for _ in range(options.epochs - 1):
        deque(run.one_epoch(), maxlen=0)
    run._begin_epoch()
    watch.seconds.pop("sampling", None)
    cpu, wall = time.process_time(), time.perf_counter()
    taken = 0
    with closing(steps.steps_of(run)) as made:
        for step in made:
            run._learn(step)
            taken += 1
    took = [time.process_time() - cpu, time.perf_counter() - wall]
    run.optimiser.zero_grad(set_to_none=True)
    trim()
    save_file({k: v.contiguous() for k, v in run.learned.state().items()}, kept / "weights")
    sampling = {"sampling": watch.seconds["sampling"]}
    return {"steps_taken": taken, "step_seconds": took, "seconds": sampling}


def look(run: Run, watch: Watch, _: argparse.Namespace, kept: Path) -> dict[str, Any]:
    """Look at all nodes; keep what is seen."""
    run.learned.load(load_file(kept / "weights"))
    seen = watch.timed("look", run.learned.look)(run.store, run.near_of_looks, "the benchmark")
    for name in ("z", "logits"):
        np.save(kept / f"{name}.npy", getattr(seen, name))
    return {"seconds": {"look": watch.seconds["look"]}}


def judge(run: Run, watch: Watch, _: argparse.Namespace, kept: Path) -> dict[str, Any]:
    """Cluster, select pseudo labels for the next epoch, and measure the groups."""
    z, logits = (np.load(kept / f"{name}.npy") for name in ("z", "logits"))
    snapshot = run.snapshot_of(Look(z, logits, None))
    watch.timed("clustering", run.objective.on_epoch_start)(run.epoch + 2, snapshot)
    groups = run.recipe.predictor(snapshot)
    row = watch.timed("metrics", evaluate)(run.task, snapshot, groups)
    by_clusters = open_world_accuracy(
        snapshot.clusters.labels[run.task.test], truth_of(run.task), run.task.n_seen
    )
    seconds = {name: watch.seconds[name] for name in ("clustering", "metrics")}
    shown = {name: row[name] for name in ("all", "seen", "novel", "sc", "val_acc")}
    return {"seconds": seconds, "accuracy": shown, "by_clusters": asdict(by_clusters)}


def truth_of(task: Task) -> NDArray[np.int64]:
    assert task.truth is not None
    return task.truth[task.test]


def load(folder: Path, per_class: int) -> Task:
    """Build the graph from its links, as any reader does in the end."""
    parts: dict[str, NDArray[Any]] = {
        name: np.load(folder / f"{name}.npy") for name in ("links", "features", "labels")
    }
    links, labels = parts["links"], parts["labels"]
    graph = Graph.from_edges(
        links[0], links[1], parts["features"], directed=False, name=folder.name
    )
    names = tuple(f"class {c}" for c in range(int(labels.max()) + 1))
    return LabelledGraph(graph, labels, names).open_world_task(seed=0, per_class=per_class)


def peak() -> int:
    """Bytes in memory at the most, mapped files among them."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


if __name__ == "__main__":
    main()
