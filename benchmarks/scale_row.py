"""One row of `benchmarks/scale.py` in a process of its own, printed as JSON.

python -m benchmarks.scale_row FOLDER [...]
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from numpy.typing import NDArray

from openima.graph.graph import Graph
from openima.graph.task import LabelledGraph, Task
from openima.methods import get_recipe
from openima.predict.clustering import CLUSTERINGS
from openima.train.batching import Nodes, ShuffledBatches, n_steps
from openima.train.memory import keep_freed_memory
from openima.train.trainer import Run

STAGES = {
    "sampling": "openima.train.steps.prepared",
    "look": "openima.train.learned.embed_all",
    "metrics": "openima.train.trainer.evaluate",
}
"""Parts of an epoch, by the function that does each; clustering is timed where it is called."""

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

    @contextmanager
    def watching(self, clustering: type[Any]) -> Iterator[None]:
        """Time every stage while the body runs."""
        patches = []
        for name, path in STAGES.items():
            module, _, function = path.rpartition(".")
            of_module = __import__(module, fromlist=[function])
            patches.append(patch(path, self.timed(name, getattr(of_module, function))))
        called = self.timed("clustering", clustering.__call__)
        patches.append(patch.object(clustering, "__call__", called))
        for one in patches:
            one.start()
        try:
            yield
        finally:
            for one in patches:
                one.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description="One row of benchmarks/scale.py.")
    parser.add_argument("folder", type=Path)
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
    watch = Watch()
    task = watch.timed("load", load)(options.folder, options.per_class)
    settings = {"warm_up": options.epochs > 1, **SETTINGS}  # a single epoch has all terms
    if options.ce_nodes is not None:
        settings["ce_nodes"] = options.ce_nodes
    recipe = get_recipe(options.method).for_dataset("ogbn-products").with_settings(**settings)
    clustering = recipe.train.clustering
    if options.clustering is not None:
        chosen = {} if options.n_init is None else {"n_init": options.n_init}
        clustering = CLUSTERINGS[options.clustering](**chosen)
    total = n_steps(task.graph.n_nodes, recipe.train.batch_size)
    taken = min(total, options.steps_limit or total)
    recipe = recipe.with_settings(clustering=clustering, batching=FirstBatches(taken))
    run = watch.timed("prepare", Run)(task, recipe)
    with watch.watching(type(clustering)), keep_freed_memory():
        for _ in range(options.epochs):  # the last one is that which is shown
            for name in (*STAGES, "clustering"):
                watch.seconds.pop(name, None)
            steps, whole = one_epoch(run)
    row = run.rows[-1]
    return {
        "nodes": task.graph.n_nodes,
        "edges": task.graph.n_edges,
        "features": task.graph.n_features,
        "labelled": len(task.train),
        "steps": total,
        "steps_taken": taken,
        "step_seconds": steps,
        "seconds": watch.seconds,
        "epochs": options.epochs,
        "epoch": whole,
        "peak_gb": peak() / 1e9,
        "accuracy": {name: row[name] for name in ("all", "seen", "novel", "sc", "val_acc")},
        "threads": options.threads,
        "ce_nodes": options.ce_nodes,
        "method": options.method,
        "clustering": repr(clustering),
    }


def one_epoch(run: Run) -> tuple[list[float], list[float]]:
    """Train an epoch as `train` does, and cluster for the next one.

    Returns the CPU and wall seconds of its steps and of the whole.
    """
    cpu, wall = time.process_time(), time.perf_counter()
    took = [[time.process_time() - cpu, time.perf_counter() - wall] for _ in run.one_epoch()]
    run.objective.on_epoch_start(run.epoch + 1, run.snapshot)
    return took[-1], [time.process_time() - cpu, time.perf_counter() - wall]


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
