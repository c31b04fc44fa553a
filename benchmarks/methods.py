"""Processor time of an epoch of each of the twelve methods, at their own settings.

    python -m benchmarks.methods [--datasets photo] [--methods orca simgcd] [--markdown]

Every measurement is a process of its own that trains three epochs and times the third, past
warm-ups and with its memory ready. Methods take turns, and the best of `--repeats` counts.
OpenLDN is measured in both of its phases. Linux only.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks.speed import DATA, REPOSITORY, Rows, machine, show
from openima.graph.datasets import load_dataset
from openima.graph.task import PAPER_SEEDS, Task
from openima.methods import Recipe, get_recipe
from openima.train.trainer import train

EPOCHS = 3
"""How many epochs a measurement trains; the last is timed."""


@dataclass(frozen=True)
class Part:
    """Some epochs of a method that cost alike: all of them, or a phase.

    `settings` bring a short run into the phase before its last epoch begins, and `share` is that
    of the phase in a whole run.
    """

    method: str
    phase: str = ""
    settings: tuple[tuple[str, Any], ...] = ()
    share: float = 1.0

    def __str__(self) -> str:
        """Name the part."""
        return f"{self.method}, {self.phase}" if self.phase else self.method


PARTS = (
    Part("oodgat"),
    Part("openwgl"),
    Part("orca-zm"),
    Part("orca"),
    Part("simgcd"),
    Part("openldn", "first phase", (("base_epochs", EPOCHS),), 0.5),
    Part("openldn", "closed world", (("base_epochs", 1),), 0.5),
    Part("opencon"),
    Part("opencon-two-stage"),
    Part("infonce"),
    Part("infonce-supcon"),
    Part("infonce-supcon-ce"),
    Part("openima"),
)


def main() -> None:
    """Measure what is asked for and print a table a data set."""
    options = arguments()
    if options.part is not None:
        print(json.dumps(measure(PARTS[options.part], options)))
        return
    print(machine(options.threads), flush=True)
    parts = [part for part in PARTS if part.method in options.methods]
    for dataset in options.datasets:
        found: dict[Part, list[dict[str, Any]]] = {part: [] for part in parts}
        for _ in range(options.repeats):
            for part in parts:
                found[part].append(in_fresh_process(part, dataset, options))
        header = ["method", "epoch, CPU s", "of which steps", "steps", "epochs", "run, CPU min"]
        show(f"Methods on {dataset}", [*header, "peak MB"], rows_of(found), options.markdown)


def arguments() -> argparse.Namespace:
    """Read the command line."""
    methods = list(dict.fromkeys(part.method for part in PARTS))
    parser = argparse.ArgumentParser(description="Processor time of an epoch of each method.")
    parser.add_argument("--datasets", nargs="+", default=["photo"])
    parser.add_argument("--methods", nargs="+", choices=methods, default=methods)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--root", type=Path, default=DATA, help="folder of the raw files")
    parser.add_argument("--markdown", action="store_true", help="print Markdown")
    parser.add_argument("--part", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.root = options.root.resolve()
    if options.repeats < 1 or options.threads < 1:
        parser.error("--repeats and --threads start at 1")
    return options


def in_fresh_process(part: Part, dataset: str, options: argparse.Namespace) -> dict[str, Any]:
    """Run one measurement in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.methods", "--part", str(PARTS.index(part))]
    command += ["--datasets", dataset, "--threads", str(options.threads)]
    command += ["--root", str(options.root)]
    print(f"{dataset} {part}", file=sys.stderr, flush=True)
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    threads = {name: str(options.threads) for name in names}
    done = subprocess.run(
        command, env=os.environ | threads, cwd=REPOSITORY, capture_output=True, text=True
    )
    if done.returncode != 0:
        raise SystemExit(f"{part} on {dataset} failed:\n{done.stderr[-2000:]}")
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def measure(part: Part, options: argparse.Namespace) -> dict[str, Any]:
    """Train a few epochs and take the last one's figures."""
    torch.set_num_threads(options.threads)
    (dataset,) = options.datasets
    task = load_dataset(dataset, options.root).open_world_task(seed=PAPER_SEEDS[0])
    return costs(task, get_recipe(part.method).for_dataset(dataset), part)


def shortened(recipe: Recipe, part: Part) -> Recipe:
    """Return a recipe of a few epochs, the last of which is one of the part."""
    return recipe.with_settings(epochs=EPOCHS, seed=PAPER_SEEDS[0], **dict(part.settings))


def costs(task: Task, recipe: Recipe, part: Part) -> dict[str, Any]:
    """Return the CPU seconds of the last of a few epochs, and what a whole run consists of."""
    last = train(task, shortened(recipe, part), progress=False).history.iloc[-1]
    size = recipe.train.batch_size or task.graph.n_nodes
    return {
        "epoch": last["cpu_seconds"],
        "steps": last["cpu_seconds_steps"],
        "n_steps": -(-task.graph.n_nodes // size),
        "n_epochs": round(part.share * recipe.train.epochs),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6,
    }


def rows_of(found: dict[Part, list[dict[str, Any]]]) -> Rows:
    """Lay out the best figures of each part, with the minutes of all its epochs."""
    return [
        [
            str(part),
            f"{best(runs, 'epoch'):.2f}",
            f"{best(runs, 'steps'):.2f}",
            str(runs[0]["n_steps"]),
            str(runs[0]["n_epochs"]),
            f"{best(runs, 'epoch') * runs[0]['n_epochs'] / 60:.1f}",
            f"{max(run['peak_mb'] for run in runs):,.0f}",
        ]
        for part, runs in found.items()
    ]


def best(runs: Sequence[dict[str, Any]], name: str) -> float:
    """Return the least of a figure."""
    return float(min(run[name] for run in runs))


if __name__ == "__main__":
    main()
