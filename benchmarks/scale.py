"""How time and memory grow with the graph: OpenIMA-large on synthetic graphs up to 2.45 M nodes.

    python benchmarks/scale.py                                # all rows, whole epochs: hours
    python benchmarks/scale.py --rows 10k 100k
    python benchmarks/scale.py --steps-limit 20 --markdown    # epochs reckoned from 20 steps

Each row is a process of its own, which trains `--epochs` and shows the last, with all terms of the
loss; the first is the warm-up if there are more. With `--steps-limit` each takes so many steps,
which are multiplied up to a whole epoch; the table says so, and accuracy is then that of so few
steps. Rows are kept in `--out` as they come and are not measured again, and a row that was killed
goes on with the stage that it was in. Graphs are made once and kept in `--graphs`. Linux only, for
it reads /proc.

The exit status is 1 if a bound of `bounds` is not held.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from openima.graph.synthetic import synthetic

REPOSITORY = Path(__file__).resolve().parent.parent
Row = dict[str, Any]


@dataclass(frozen=True)
class Shape:
    """What a graph is made to; links are undirected."""

    nodes: int
    classes: int = 47
    features: int = 100
    degree: float = 50.518
    per_class: int = 500


SHAPES = {
    "10k": Shape(10_000, per_class=50),
    "100k": Shape(100_000),
    "arxiv": Shape(169_343, classes=40, features=128, degree=13.77),
    "1m": Shape(1_000_000),
    "products": Shape(2_449_029),
}
"""Rows by name. All but `arxiv` have the shape of ogbn-products, and differ in size alone."""

LIBRARIES = ("OMP", "MKL", "OPENBLAS")

PASSED_ON = ("threads", "epochs", "steps_limit", "ce_nodes", "clustering", "n_init")
"""Options that a row is measured with."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rows", nargs="+", choices=list(SHAPES), default=list(SHAPES))
    parser.add_argument("--graphs", type=Path, default=Path("scale-graphs"))
    parser.add_argument("--out", type=Path, default=Path("scale.jsonl"))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--steps-limit", type=int, help="steps to reckon an epoch from")
    parser.add_argument("--ce-nodes", type=int, help="labelled nodes a step; default all")
    parser.add_argument("--clustering", help="kmeans instead of the recipe's")
    parser.add_argument("--n-init", type=int, help="starts of that clustering")
    parser.add_argument("--markdown", action="store_true", help="print what is in --out, and end")
    options = parser.parse_args()
    rows = kept(options.out)
    if not options.markdown:
        for name in options.rows:
            asked = asked_for(name, options)
            if any(row["asked"] == asked for row in rows):
                continue
            row = {"name": name, "asked": asked, **measure(name, options)}
            rows.append(row)
            with options.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
    print(table(rows))
    held = bounds(rows)
    print(*(f"{'held' if ok else 'NOT HELD'}: {text}" for text, ok in held), sep="\n")
    return 0 if all(ok for _, ok in held) else 1


def kept(path: Path) -> list[Row]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def asked_for(name: str, options: argparse.Namespace) -> Row:
    """Name what tells one measurement from another."""
    return {"row": name, **{key: getattr(options, key) for key in PASSED_ON}}


def key_of(asked: Row) -> str:
    """Name the files in which a row keeps its stages, should it be killed."""
    return hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:12]


def measure(name: str, options: argparse.Namespace) -> Row:
    """Make the graph, if it is not there, and measure the row, each in its own process."""
    shape, folder = SHAPES[name], options.graphs / name
    if not (folder / "labels.npy").exists():
        make(shape, folder)
    command = [sys.executable, "-m", "benchmarks.scale_row", str(folder.resolve())]
    command += ["--per-class", str(shape.per_class), "--key", key_of(asked_for(name, options))]
    for key in PASSED_ON:
        value = getattr(options, key)
        command += [] if value is None else [f"--{key.replace('_', '-')}", str(value)]
    threads = {f"{library}_NUM_THREADS": str(options.threads) for library in LIBRARIES}
    environment = {**os.environ, **threads, "OMP_WAIT_POLICY": "PASSIVE"}
    run = subprocess.run(
        command, cwd=REPOSITORY, env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    measured: Row = json.loads(run.stdout.splitlines()[-1])
    return measured


def make(shape: Shape, folder: Path) -> None:
    made = synthetic(
        shape.nodes,
        shape.classes,
        average_degree=shape.degree,
        n_features=shape.features,
        imbalance=5.0,
    )
    graph = made.graph
    targets = np.repeat(np.arange(graph.n_nodes, dtype=np.int32), graph.in_degrees)
    once = graph.sources < targets
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "links.npy", np.stack([graph.sources[once], targets[once]]))
    assert isinstance(graph.features, np.ndarray)
    np.save(folder / "features.npy", graph.features)
    np.save(folder / "labels.npy", made.labels)  # last: it says that all are there


def epoch(row: Row) -> tuple[float, float]:
    """Return the CPU and wall seconds of a whole epoch, its steps multiplied up."""
    more = row["steps"] / row["steps_taken"]
    rest = [row["seconds"][stage] for stage in ("look", "clustering", "metrics")]
    cpu, wall = (more * row["step_seconds"][i] + sum(part[i] for part in rest) for i in (0, 1))
    return cpu, wall


def sampling_share(row: Row) -> float:
    return float(row["seconds"]["sampling"][0] / max(row["step_seconds"][0], 1e-9))


def table(rows: Sequence[Row]) -> str:
    lines = [
        "| row | nodes | links | labelled a step | load | prepare | a step | sampling | look "
        "| clustering | metrics | epoch CPU | epoch wall | nodes/s | peak GB "
        "| all / seen / novel %, head | clusters | steps |",
        "|" + "---|" * 18,
    ]
    for row in rows:
        cpu, wall = epoch(row)
        seconds = {name: f"{cpu_s:.1f}" for name, (cpu_s, _) in row["seconds"].items()}
        of_step = row["step_seconds"][0] / row["steps_taken"]
        taken = "all" if row["steps"] == row["steps_taken"] else f"{row['steps_taken']} of"
        cells = [
            row["name"],
            f"{row['nodes']:,}",
            f"{row['edges'] // 2:,}",
            f"{row['ce_nodes'] or row['labelled']:,}",
            *(seconds[name] for name in ("load", "prepare")),
            f"{of_step:.2f}",
            f"{100 * sampling_share(row):.0f}%",
            *(seconds[name] for name in ("look", "clustering", "metrics")),
            f"{cpu:,.0f}",
            f"{wall:,.0f}",
            f"{row['nodes'] / wall:,.0f}",
            f"{row['peak_gb']:.1f}",
            *(
                " / ".join(f"{100 * found[name]:.0f}" for name in ("all", "seen", "novel"))
                for found in (row["accuracy"], row["by_clusters"])
            ),
            f"{taken} {row['steps']}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def bounds(rows: Sequence[Row]) -> list[tuple[str, bool]]:
    """Compare with what this project has set itself, as far as the rows are there."""
    held = []
    for row in rows:
        share = sampling_share(row)
        held.append((f"{row['name']}: sampling takes {share:.0%} of the steps, 15%", share < 0.15))
        if row["name"] == "products":
            minutes = epoch(row)[1] / 60
            held.append((f"products: peak {row['peak_gb']:.1f} GB, 12", row["peak_gb"] <= 12))
            held.append((f"products: an epoch takes {minutes:.0f} minutes, 90", minutes <= 90))
    return held + growth(rows)


def growth(rows: Sequence[Row]) -> list[tuple[str, bool]]:
    """Compare the CPU seconds of a node among rows that differ in size alone."""
    groups: dict[str, dict[str, Row]] = {}
    for row in rows:
        if row["name"] != "arxiv":
            key = json.dumps({**row["asked"], "row": "", "steps_limit": None, "epochs": 0})
            groups.setdefault(key, {})[row["name"]] = row
    found = []
    for same in groups.values():
        cost = {name: epoch(row)[0] / row["nodes"] for name, row in same.items()}
        if {"100k", "products"} <= cost.keys():
            ratio = cost["products"] / cost["100k"]
            found.append((f"a node of products costs {ratio:.2f} of 100k's, 1.5", ratio <= 1.5))
        small, large = (f(same, key=lambda name: int(same[name]["nodes"])) for f in (min, max))
        if small != large:
            wider = math.log(same[large]["nodes"] / same[small]["nodes"])
            power = 1.0 + math.log(cost[large] / cost[small]) / wider
            text = f"from {small} to {large} an epoch grows with nodes to the power {power:.2f}"
            found.append((text, math.isfinite(power)))
    return found


if __name__ == "__main__":
    sys.exit(main())
