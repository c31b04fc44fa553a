"""Exact silhouette of 34,493 x 128 floats (the size of Physics): openima beside scikit-learn.

    python benchmarks/silhouette.py [--nodes N] [--width D] [--clusters K] [--rounds R]

The two take turns, one thread each, every run in a fresh process. Printed are the least CPU and
wall seconds of the rounds, and the highest peak of memory above what was held just before the
call. openima is held to bounds, which are for the size of Physics or less; the exit status is 1
if one is not held. Linux only, for it reads /proc.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

CONTENDERS = ("openima", "scikit-learn")
BOUNDS = {"cpu_s": 5.0, "peak_mb": 1000.0}
"""What openima may take at most."""


def main() -> int:
    parser = argparse.ArgumentParser(description="Time the exact silhouette.")
    parser.add_argument("--nodes", type=int, default=34_493)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--clusters", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(measure(*options.child)))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data.npz"
        save_blobs(data, options.nodes, options.width, options.clusters)
        rounds = [{c: in_fresh_process(c, data) for c in CONTENDERS} for _ in range(options.rounds)]
    print(
        f"{options.nodes:,} x {options.width} float32, {options.clusters} clusters, "
        f"one thread, best of {options.rounds}"
    )
    print(f"{'':14}{'CPU s':>8}{'wall s':>8}{'peak MB':>9}  silhouette")
    found = {contender: best([of[contender] for of in rounds]) for contender in CONTENDERS}
    for contender, of in found.items():
        times = f"{of['cpu_s']:8.2f}{of['wall_s']:8.2f}{of['peak_mb']:9.0f}"
        print(f"{contender:14}{times}  {of['value']:.8f}")
    held = verdicts(found["openima"])
    for what, value, bound, holds in held:
        print(f"{what}: {value:.2f} <= {bound:g}: {'yes' if holds else 'NO'}")
    return 0 if all(holds for *_, holds in held) else 1


def best(runs: Sequence[dict[str, float]]) -> dict[str, float]:
    """Take the least times of several runs, and the highest peak of memory."""
    times = {name: min(run[name] for run in runs) for name in ("cpu_s", "wall_s")}
    return {**times, "peak_mb": max(run["peak_mb"] for run in runs), "value": runs[0]["value"]}


def verdicts(found: dict[str, float]) -> list[tuple[str, float, float, bool]]:
    """Hold figures to their bounds: what, found, bound, and whether it holds."""
    return [(what, found[what], bound, found[what] <= bound) for what, bound in BOUNDS.items()]


def save_blobs(path: Path, nodes: int, width: int, clusters: int) -> None:
    """Write unit rows scattered around the centres of their clusters."""
    rng = np.random.default_rng(0)
    cluster = rng.integers(0, clusters, nodes)
    z = rng.standard_normal((clusters, width))[cluster] + rng.standard_normal((nodes, width))
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    np.savez(path, z=z.astype(np.float32), cluster=cluster)


def in_fresh_process(contender: str, data: Path) -> dict[str, float]:
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--child", contender, str(data)]
    done = subprocess.run(command, env=os.environ | threads, check=True, stdout=subprocess.PIPE)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def measure(contender: str, data: str) -> dict[str, float]:
    """Time one call, after a small one that loads the libraries."""
    with np.load(data) as arrays:
        z, cluster = arrays["z"], arrays["cluster"]
    silhouette_of(contender, z[:1000], cluster[:1000])
    held, wall, cpu = peak_mb(), time.perf_counter(), time.process_time()
    value = silhouette_of(contender, z, cluster)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return {"cpu_s": cpu, "wall_s": wall, "peak_mb": peak_mb() - held, "value": value}


def silhouette_of(contender: str, z: NDArray[np.float32], cluster: NDArray[np.int64]) -> float:
    if contender == "openima":
        metrics = importlib.import_module("openima.metrics")
        return float(metrics.silhouette(z, cluster, max_exact=None))
    return float(importlib.import_module("sklearn.metrics").silhouette_score(z, cluster))


def peak_mb() -> float:
    """Highest resident memory of this process so far."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    if found is None:
        raise SystemExit("this system does not report peak memory in /proc/self/status")
    return int(found[1]) * 1024 / 1e6


if __name__ == "__main__":
    sys.exit(main())
