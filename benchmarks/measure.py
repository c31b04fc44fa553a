"""One measurement in a process of its own, printed as JSON; `benchmarks/speed.py` starts it.

python -m benchmarks.measure KIND DATASET [...]
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch

from benchmarks.bound import matmul_rate, step_flops
from openima.graph.datasets import load_dataset
from openima.graph.task import PAPER_SEEDS, Task
from openima.methods import Recipe, get_recipe
from openima.train.memory import keep_freed_memory
from openima.train.trainer import Run

KINDS = ("openima", "bfloat16", "peer", "peer-kept", "bound", "profile")
TOP = 10
"""How many operators a profile lists."""


def main() -> None:
    parser = argparse.ArgumentParser(description="One measurement of benchmarks/speed.py.")
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("dataset")
    parser.add_argument("--root", help="folder of the raw files")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--edge-share", type=float, default=1.0, help="of the peer")
    parser.add_argument("--seconds", type=float, default=120.0, help="for the peer's steps")
    parser.add_argument("--memory", type=float, help="most memory to ask for, in GB")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.memory is not None:  # fail in this process rather than press on others
        limit = int(options.memory * 1e9)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    task = load_dataset(options.dataset, options.root).open_world_task(seed=PAPER_SEEDS[0])
    recipe = get_recipe("openima").for_dataset(options.dataset).with_settings(seed=PAPER_SEEDS[0])
    # `peer` is as it would be written; `peer-kept` borrows openima's way with freed memory.
    with nullcontext() if options.kind == "peer" else keep_freed_memory() as after_step:
        if options.kind in ("peer", "peer-kept"):
            result = of_peer(task, recipe, options.edge_share, options.seconds)
        elif options.kind == "bound":
            result = of_bound(task, recipe)
        elif options.kind == "profile":
            result = of_profile(task, recipe)
        else:
            result = of_openima(task, recipe, after_step, bfloat16=options.kind == "bfloat16")
    print(json.dumps(result))


def of_openima(
    task: Task, recipe: Recipe, after_step: Callable[[], None] | None, bfloat16: bool
) -> dict[str, Any]:
    """Train three epochs as `train` does and time the third.

    The second is the first with all terms of the loss, whose memory is then there to be reused.
    """
    torch.set_float32_matmul_precision("medium" if bfloat16 else "highest")
    run = Run(task, recipe)

    def one_epoch() -> Iterator[None]:
        for _ in run.one_epoch():
            if after_step is not None:
                after_step()
            yield

    for _ in range(2):
        deque(one_epoch(), maxlen=0)
    return timed(task, recipe, one_epoch())


def of_peer(task: Task, recipe: Recipe, edge_share: float, seconds: float) -> dict[str, Any]:
    """Time an epoch of the peer past the warm-up, or as many of its steps as `seconds` allow."""
    from benchmarks.peer import Peer  # with PyTorch Geometric, whose memory is not openima's

    peer = Peer(task, recipe, edge_share)
    peer.prepare()
    return timed(task, recipe, peer.one_epoch(seconds))


def timed(task: Task, recipe: Recipe, epoch: Iterator[None]) -> dict[str, Any]:
    """Run an epoch that yields after each step; give CPU and wall seconds of every part."""
    costs, over = [], False
    mark = clock()
    while not over:
        over = next(epoch, True) is True
        now = clock()
        costs.append((now - mark).tolist())
        mark = now
    graph = task.graph
    size = recipe.train.batch_size or graph.n_nodes
    return {
        "steps": costs[:-1],
        "rest": costs[-1],
        "n_steps": -(-graph.n_nodes // size),
        "n_full": max(1, graph.n_nodes // size),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6,
        "nodes": graph.n_nodes,
        "edges": graph.n_edges,
        "features": graph.n_features,
    }


def clock() -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array([time.process_time(), time.perf_counter()])


def of_bound(task: Task, recipe: Recipe) -> dict[str, Any]:
    """Count what a step computes, and measure how fast this machine multiplies."""
    nodes = np.random.default_rng(0).permutation(task.graph.n_nodes)[: recipe.train.batch_size]
    return {"flops": step_flops(Run(task, recipe), nodes), "rate": matmul_rate()}


def of_profile(task: Task, recipe: Recipe) -> dict[str, Any]:
    """Say which operators the first step of the third epoch spends its time in."""
    from torch.profiler import ProfilerActivity, profile

    run = Run(task, recipe)
    for _ in range(2):
        deque(run.one_epoch(), maxlen=0)
    epoch = run.one_epoch()
    started = time.perf_counter()
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        next(epoch)
        seconds = time.perf_counter() - started
    operators = sorted(profiler.key_averages(), key=lambda e: -e.self_cpu_time_total)
    rows = [[e.key, e.self_cpu_time_total / 1e6, e.count] for e in operators]
    return {"seconds": seconds, "operators": rows[:TOP], "others": sum(r[1] for r in rows[TOP:])}


if __name__ == "__main__":
    main()
