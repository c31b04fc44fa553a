"""Speed and memory of OpenIMA's training, beside a straightforward peer and beside the arithmetic.

    python benchmarks/speed.py [--datasets citeseer photo] [--repeats 3] [--markdown] [--profile]

One optimiser step and one whole epoch at the paper's settings, past the warm-up epoch. Every
measurement runs in a process of its own, one at a time, contenders in turn, best of `--repeats`.
Bounds that are not held are marked, and the exit status is then 1. Linux only.

The peer is in `peer.py`. `peer` runs as it would be written; `peer, memory kept` also reuses
freed memory as openima does. Where a step of the peer needs more than `--memory`, it runs twice
with random shares of the edges (all nodes stay), and its cost is the line through both, at all
edges. Steps of a peer's epoch beyond `--seconds` are taken to cost what those before them did.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

REPOSITORY = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("OPENIMA_DATA") or REPOSITORY.parent / "shared" / "data")
NAMES = {
    "openima": "openima",
    "bfloat16": "openima, bfloat16",
    "peer": "peer",
    "peer-kept": "peer, memory kept",
}
OURS = ("openima", "bfloat16")
COPIES = {"peer": 7.5, "peer-kept": 9.75}
"""Peak of a peer's step in arrays of edges x 1024 float32 (measured on Photo and Computers)."""


@dataclass(frozen=True)
class Bounds:
    """What a graph's figures are held to.

    At most so many CPU seconds a step and for the rest of an epoch, megabytes, and times the
    seconds of the arithmetic; at least `ratio` times less for an epoch than the peer.
    """

    step: float
    ratio: float
    rest: float = math.inf
    megabytes: float = 1500.0
    over: float = 3.0


BOUNDS = {
    "citeseer": Bounds(0.6, 8.0),
    "photo": Bounds(1.5, 8.0),
    "computers": Bounds(3.0, 8.0),
    "cs": Bounds(2.0, 15.0),
    "physics": Bounds(2.5, 25.0, rest=6.0),
}


@dataclass(frozen=True)
class Costs:
    """CPU and wall seconds (two numbers each) of a full step, an epoch's steps and its rest."""

    step: NDArray[np.float64]
    steps: NDArray[np.float64]
    rest: NDArray[np.float64]
    peak_mb: float

    @property
    def epoch(self) -> NDArray[np.float64]:
        """Seconds of the whole epoch."""
        return self.steps + self.rest


def best(runs: Sequence[dict[str, Any]]) -> Costs:
    """Take the best of several runs of one contender, for CPU and wall time each on its own."""
    full = [step for run in runs for step in run["steps"][: run["n_full"]]]
    steps = [np.mean(run["steps"], axis=0) * run["n_steps"] for run in runs]
    rests = [run["rest"] for run in runs]
    step, whole, rest = (np.min(parts, axis=0) for parts in (full, steps, rests))
    return Costs(step, whole, rest, max(run["peak_mb"] for run in runs))


def extrapolate(part: Costs, share: float, smaller: Costs, smaller_share: float) -> Costs:
    """Draw the line through the costs at two shares of the edges, and read it at all edges."""
    slope = (1.0 - share) / (share - smaller_share)
    pairs = ((part.step, smaller.step), (part.steps, smaller.steps), (part.rest, smaller.rest))
    step, whole, rest = (at + slope * (at - below) for at, below in pairs)
    return Costs(step, whole, rest, part.peak_mb)


def share_that_fits(kind: str, size: dict[str, Any], gigabytes: float) -> float:
    """Return the largest share of a graph's edges, in steps of 5%, for which a peer has room.

    Besides the edges' arrays: the libraries, a few copies of the dense features (measured on
    Physics), and what both views keep of all nodes.
    """
    fixed = 1e9 + 4.0 * size["nodes"] * (4 * size["features"] + 16 * 1024)
    of_edges = COPIES[kind] * 4.0 * 1024 * (size["edges"] + size["nodes"])
    share: float = math.floor(20 * (gigabytes * 1e9 - fixed) / of_edges) / 20
    if share < 0.1:
        raise SystemExit(f"{gigabytes:.1f} GB hold no tenth of the peer's edges; free some memory")
    return min(1.0, share)


class Bench:
    """Starts the measurements of one graph and keeps what they found."""

    def __init__(self, dataset: str, options: argparse.Namespace) -> None:
        self.dataset, self.options = dataset, options
        self.found: dict[str, list[dict[str, Any]]] = {}
        self.shares: dict[str, float] = {}

    def measure(self, kind: str, *extra: str) -> dict[str, Any]:
        """Run one measurement in a fresh process."""
        options = self.options
        command = [sys.executable, "-m", "benchmarks.measure", kind, self.dataset]
        command += ["--threads", str(options.threads), "--seconds", str(options.seconds)]
        command += ["--memory", str(options.memory), "--root", str(options.root), *extra]
        print(f"{' '.join(command[2:5])} {' '.join(extra)}", file=sys.stderr, flush=True)
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        threads = {name: str(options.threads) for name in names}
        done = subprocess.run(
            command, env=os.environ | threads, cwd=REPOSITORY, capture_output=True, text=True
        )
        if done.returncode != 0:
            raise SystemExit(f"{kind} on {self.dataset} failed:\n{done.stderr[-2000:]}")
        result: dict[str, Any] = json.loads(done.stdout)
        return result

    def run(self) -> None:
        """Measure all contenders in turn, several times over."""
        for _ in range(self.options.repeats):
            for kind in self.options.contenders:
                for key, share in self._shares(kind):
                    extra = () if share == 1.0 else ("--edge-share", str(share))
                    self.found.setdefault(key, []).append(self.measure(kind, *extra))
        self.found["bound"] = [self.measure("bound") for _ in range(self.options.repeats)]
        if self.options.profile:
            self.found["profile"] = [self.measure("profile")]

    def _shares(self, kind: str) -> list[tuple[str, float]]:
        """Say with which shares of the edges a contender runs, and under which keys."""
        if kind not in COPIES:
            return [(kind, 1.0)]
        size = next(iter(self.found.values()))[0]
        share = self.shares.setdefault(kind, share_that_fits(kind, size, self.options.memory))
        return [(kind, share)] + ([(f"{kind}/2", share / 2)] if share < 1.0 else [])

    def costs(self, kind: str) -> Costs:
        """Return the best figures of a contender, extrapolated where it ran on a part."""
        found = best(self.found[kind])
        share = self.shares.get(kind, 1.0)
        if share == 1.0:
            return found
        return extrapolate(found, share, best(self.found[f"{kind}/2"]), share / 2)

    def note(self, kind: str) -> str:
        """Say what of a contender's figures was not measured whole."""
        parts = []
        if self.shares.get(kind, 1.0) < 1.0:
            share = self.shares[kind]
            parts.append(f"from {share:.0%} and {share / 2:.1%} of the edges")
        run = self.found[kind][0]
        if len(run["steps"]) < run["n_steps"]:
            parts.append(f"from {len(run['steps'])} of {run['n_steps']} steps")
        return "; ".join(parts)

    def arithmetic(self) -> tuple[dict[str, int], float]:
        """Return the counted operations of a step by kind, and the best measured rate."""
        runs = self.found["bound"]
        return runs[0]["flops"], max(run["rate"] for run in runs)

    def verdicts(self) -> list[tuple[str, float, str, bool]]:
        """Hold the figures to their bounds: what, found, bound, and whether it holds."""
        ours, bounds = self.costs("openima"), BOUNDS[self.dataset]
        flops, rate = self.arithmetic()
        at_most = [
            ("CPU s per step", ours.step[0], bounds.step),
            ("CPU s for the rest of an epoch", ours.rest[0], bounds.rest),
            ("peak MB", ours.peak_mb, bounds.megabytes),
            ("step over its arithmetic", ours.step[0] * rate / sum(flops.values()), bounds.over),
        ]
        rows = [(what, x, f"<= {y:g}", x <= y) for what, x, y in at_most if y < math.inf]
        if "peer" in self.found:
            ratio = self.costs("peer").epoch[0] / ours.epoch[0]
            rows.append(
                ("epoch, peer / openima", ratio, f">= {bounds.ratio:g}", ratio >= bounds.ratio)
            )
        return rows


Rows = list[list[str]]


def of_contenders(benches: Iterable[Bench]) -> Rows:
    rows = []
    for bench in benches:
        ours = bench.costs("openima")
        for kind in bench.options.contenders:
            c = bench.costs(kind)
            pairs = (f"{cpu:.2f} / {wall:.2f}" for cpu, wall in (c.step, c.steps, c.rest, c.epoch))
            ratios = (f"{x[0] / y[0]:.1f}" for x, y in ((c.step, ours.step), (c.epoch, ours.epoch)))
            rows.append(
                [bench.dataset, NAMES[kind], *pairs, *ratios, f"{c.peak_mb:,.0f}", bench.note(kind)]
            )
    return rows


def of_arithmetic(benches: Iterable[Bench]) -> Rows:
    rows = []
    for bench in benches:
        flops, rate = bench.arithmetic()
        seconds = sum(flops.values()) / rate
        counts = [
            f"{flops.get(part, 0) / 1e9:.1f}"
            for part in ("dense", "features", "edges", "similarities", "head")
        ]
        over = (f"{bench.costs(k).step[0] / seconds:.1f}" for k in OURS if k in bench.found)
        rows.append(
            [bench.dataset, *counts, f"{rate / 1e9:.0f}", f"{seconds:.2f}", " / ".join(over)]
        )
    return rows


def of_bounds(benches: Iterable[Bench]) -> Rows:
    return [
        [bench.dataset, what, f"{found:.2f}", bound, "yes" if holds else "NO"]
        for bench in benches
        for what, found, bound, holds in bench.verdicts()
    ]


def of_profile(bench: Bench) -> Rows:
    """List the operators of a step; what no operator explains is NumPy, SciPy and Python."""
    profile = bench.found["profile"][0]
    listed: list[tuple[str, float, str]] = [
        (name, seconds, str(calls)) for name, seconds, calls in profile["operators"]
    ]
    listed.append(("all other operators", profile["others"], ""))
    outside = profile["seconds"] - sum(seconds for _, seconds, _ in listed)
    listed.append(("outside operators", outside, ""))
    whole = profile["seconds"]
    return [[name, f"{s:.3f}", f"{s / whole:.0%}", calls] for name, s, calls in listed]


def show(title: str, header: Sequence[str], rows: Rows, markdown: bool) -> None:
    """Print a table, for a terminal or as Markdown."""
    if markdown:
        lines = [header, ["---"] * len(header), *rows]
        print(f"\n**{title}**\n")
        print("\n".join(f"| {' | '.join(line)} |" for line in lines), flush=True)
        return
    table = Table(*header, title=title, title_justify="left")
    for row in rows:
        table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else 160).print(table)


def report(benches: Sequence[Bench], markdown: bool) -> None:
    seconds = [f"{part}, CPU / wall s" for part in ("step", "epoch's steps", "its rest", "epoch")]
    ratios = ["step / openima's", "epoch / openima's", "peak MB", "note"]
    header = ["graph", "contender", *seconds, *ratios]
    show("Time and memory", header, of_contenders(benches), markdown)
    parts = [f"{part}, GFLOP" for part in ("dense", "features", "edges", "similarities", "head")]
    header = ["graph", *parts, "GFLOP/s", "bound, s", "step / bound (float32 / bfloat16)"]
    show("Arithmetic of a step at the machine's rate", header, of_arithmetic(benches), markdown)
    header = ["graph", "what", "found", "bound", "holds"]
    show("Bounds", header, of_bounds(benches), markdown)
    for bench in benches:
        if "profile" in bench.found:
            header = ["operator", "own s", "share", "calls"]
            show(f"Profile of a step, {bench.dataset}", header, of_profile(bench), markdown)


def machine(threads: int) -> str:
    """Say where and with what the figures are taken."""
    cpu = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    libraries = ("torch", "torch-geometric", "scikit-learn", "numpy", "scipy")
    return "; ".join(
        [
            f"{cpu[1] if cpu else platform.processor()}, {os.cpu_count()} cores, "
            f"{threads} thread(s), load average {os.getloadavg()[0]:.1f}",
            f"Python {platform.python_version()}, "
            + ", ".join(f"{name} {version(name)}" for name in libraries),
        ]
    )


def available_gigabytes() -> float:
    """Return three quarters of the memory that is free now."""
    found = re.search(r"MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text())
    if found is None:
        raise SystemExit("/proc/meminfo does not say what is available; pass --memory")
    return 0.75 * int(found[1]) * 1024 / 1e9


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Speed and memory of OpenIMA's training.")
    parser.add_argument("--datasets", nargs="+", choices=list(BOUNDS), default=list(BOUNDS))
    parser.add_argument("--contenders", nargs="+", choices=list(NAMES), default=list(NAMES))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--root", type=Path, default=DATA, help="folder of the raw files")
    parser.add_argument("--memory", type=float, help="GB a process may take (default: 3/4 of free)")
    parser.add_argument("--seconds", type=float, default=120.0, help="CPU s for a peer's steps")
    parser.add_argument("--profile", action="store_true", help="also profile a step per graph")
    parser.add_argument("--markdown", action="store_true", help="print Markdown")
    parser.add_argument("--json", type=Path, help="also write all single measurements here")
    options = parser.parse_args()
    options.contenders = ["openima", *(k for k in options.contenders if k != "openima")]
    options.memory = options.memory or available_gigabytes()
    options.root = options.root.resolve()
    if options.repeats < 1 or options.threads < 1:
        parser.error("--repeats and --threads start at 1")
    return options


def main() -> int:
    options = arguments()
    about = machine(options.threads)
    print(about, flush=True)
    benches = [Bench(dataset, options) for dataset in options.datasets]
    for bench in benches:
        bench.run()
        if options.json:
            found = {b.dataset: b.found for b in benches}
            options.json.write_text(json.dumps({"machine": about, "found": found}, indent=1))
    report(benches, options.markdown)
    return 0 if all(holds for bench in benches for *_, holds in bench.verdicts()) else 1


if __name__ == "__main__":
    sys.exit(main())
