"""Time and memory of what comes before training, each row in a process of its own.

    python benchmarks/foundation.py [--quick] [--row NAME ...]

Prints a table: wall time, CPU seconds, and the highest memory use above that at the start, which
is after imports and inputs. A row over its bound is marked, and the exit status is then 1.
`--quick` leaves out the rows that take minutes or gigabytes. The real graphs are looked for in
OPENIMA_DATA, else in ../shared/data; those that are not on disk are skipped. Linux only, for it
reads /proc.

To add a row, add a function to `ROWS` that makes its inputs and returns the work to be measured,
which in turn returns a note for the last column.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from openima.graph.datasets import find_dataset, load_dataset
from openima.graph.graph import Graph
from openima.graph.synthetic import synthetic

Work = Callable[[], str]

ROOT = Path(
    os.environ.get("OPENIMA_DATA")
    or Path(__file__).resolve().parent.parent.parent / "shared" / "data"
)


@dataclass(frozen=True)
class Row:
    """One measurement: `prepare` is not measured, what it returns is."""

    prepare: Callable[[], Work | None]
    seconds: float | None = None
    megabytes: float | None = None
    long: bool = False


def loading(name: str) -> Work | None:
    dataset = find_dataset(name)
    if not all((ROOT / dataset.folder / "raw" / file).is_file() for file in dataset.files):
        return None

    def work() -> str:
        return str(load_dataset(name, ROOT).graph)

    return work


def graph_of_products_size() -> Work:
    """Random links between as many nodes as ogbn-products has; its features are an input."""
    rng = np.random.default_rng(0)
    n_nodes, n_links = 2_449_029, 61_859_140
    source = rng.integers(0, n_nodes, n_links, dtype=np.int32)
    target = rng.integers(0, n_nodes, n_links, dtype=np.int32)
    features = rng.standard_normal((n_nodes, 100), dtype=np.float32)

    def work() -> str:
        graph = Graph.from_edges(source, target, features, directed=False)
        if graph.nbytes >= 2.5e9:
            raise SystemExit(f"the Graph takes {graph.nbytes / 1e9:.2f} GB, over its 2.5 GB")
        return f"{graph}; the Graph itself, features included: {graph.nbytes / 1e9:.2f} GB"

    return work


def synthetic_of_products_size() -> Work:
    def work() -> str:
        made = synthetic(2_400_000, 40, average_degree=50, n_features=100, imbalance=50)
        return f"{made.graph}, {made.n_classes} classes"

    return work


ROWS: dict[str, Row] = {
    "load citeseer": Row(partial(loading, "citeseer"), seconds=2, megabytes=300),
    "load photo": Row(partial(loading, "photo"), seconds=2, megabytes=300),
    "load computers": Row(partial(loading, "computers"), seconds=2, megabytes=300),
    "load cs": Row(partial(loading, "cs"), seconds=2, megabytes=300),
    "load physics": Row(partial(loading, "physics"), seconds=2, megabytes=300),
    "load digits": Row(partial(loading, "digits"), seconds=5, megabytes=300),
    "Graph, 2.4 M nodes": Row(graph_of_products_size, long=True),
    "synthetic, 2.4 M nodes": Row(
        synthetic_of_products_size, seconds=240, megabytes=12_000, long=True
    ),
}


def memory(key: str) -> int:
    """Bytes in memory now (VmRSS), or the most so far (VmHWM)."""
    status = Path("/proc/self/status").read_text()
    return int(status.split(f"{key}:")[1].split()[0]) * 1024


def measure(name: str) -> None:
    """Run one row in this process and print what it took, as JSON."""
    work = ROWS[name].prepare()
    if work is None:
        print(json.dumps(None))
        return
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    before = memory("VmRSS")
    wall, cpu = time.perf_counter(), time.process_time()
    note = work()
    took = [time.perf_counter() - wall, time.process_time() - cpu]
    print(json.dumps([*took, (memory("VmHWM") - before) / 1e6, note]))


def report(name: str) -> bool:
    """Measure one row in a fresh process and print its line; return whether it is in bounds."""
    row = ROWS[name]
    command = [sys.executable, __file__, "--measure", name]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        print(f"| {name} | FAILED, see above |", flush=True)
        return False
    measured = json.loads(done.stdout)
    if measured is None:
        print(f"| {name} | skipped: not in {ROOT} |", flush=True)
        return True
    wall, cpu, extra, note = measured
    fits: bool = (row.seconds is None or cpu < row.seconds) and (
        row.megabytes is None or extra < row.megabytes
    )
    bounds = ", ".join(
        f"{bound:g} {unit}"
        for bound, unit in ((row.seconds, "s"), (row.megabytes, "MB"))
        if bound is not None
    )
    verdict = bounds if fits else f"OVER {bounds}"
    print(f"| {name} | {wall:.2f} | {cpu:.2f} | {extra:.0f} | {verdict} | {note} |", flush=True)
    return fits


def main() -> int:
    parser = argparse.ArgumentParser(description="Time and memory of the foundation.")
    parser.add_argument("--quick", action="store_true", help="leave out the long rows")
    parser.add_argument("--row", action="append", choices=list(ROWS), help="only this row")
    parser.add_argument("--measure", choices=list(ROWS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(options.measure)
        return 0
    names = options.row or [name for name in ROWS if not (options.quick and ROWS[name].long)]
    print("| row | wall s | CPU s | extra MB | bound | what |")
    print("|---|---|---|---|---|---|")
    in_bounds = [report(name) for name in names]  # all of them, whatever the first ones say
    return 0 if all(in_bounds) else 1


if __name__ == "__main__":
    sys.exit(main())
