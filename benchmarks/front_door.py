"""`openima fit` on tables as a user has them: time, memory, and how much of the truth is found.

    python benchmarks/front_door.py                   # 50,000 nodes, 200,000 edges, 20 classes
    python benchmarks/front_door.py --nodes 5000 --edges 20000 -- --epochs 5

Makes nodes.csv (an id, a topic that is known for some nodes of half of the classes, and a text in
messy words) and edges.csv, runs the command in a process of its own with its progress bar, and
prints its processor and wall time, its highest memory, and the accuracy over the nodes that had no
label. What comes after `--` goes to the command. Exits with status 1 if the bound on memory is not
held. Linux and macOS, for it asks the system what the process took.
"""

from __future__ import annotations

import argparse
import os
import string
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from openima.graph.synthetic import synthetic
from openima.metrics.accuracy import open_world_accuracy

BOUND_GB = 4.0
N_WORDS, N_OF_TOPIC = 12_000, 400
LABELLED = 0.2  # of the nodes of known classes


def main() -> int:
    parser = argparse.ArgumentParser(description="openima fit on tables as a user has them.")
    parser.add_argument("--nodes", type=int, default=50_000)
    parser.add_argument("--edges", type=int, default=200_000)
    parser.add_argument("--classes", type=int, default=20)
    parser.add_argument("--folder", type=Path, help="where tables and outputs go and stay")
    parser.add_argument("fit", nargs="*", help="more options of openima fit, after --")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        truth = write_tables(folder, options.nodes, options.edges, options.classes)
        command = [sys.executable, "-m", "openima.cli", "fit", "nodes.csv", "edges.csv"]
        command += ["--labels", "topic", "--text", "abstract", "--out", "out", "--force"]
        command += ["--novel", str(options.classes - options.classes // 2), *options.fit]
        start = time.perf_counter()
        process = subprocess.Popen(command, cwd=folder)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        if status:
            return 1
        peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e9
        print(f"cpu {usage.ru_utime + usage.ru_stime:.0f} s, wall {wall:.0f} s, peak {peak:.2f} GB")
        print(accuracy(folder, truth, options.classes // 2))
    if peak > BOUND_GB:
        print(f"the bound is {BOUND_GB:g} GB")
    return int(peak > BOUND_GB)


def write_tables(folder: Path, n_nodes: int, n_edges: int, n_classes: int) -> NDArray[np.int64]:
    """Write both tables and return the class of every node, the first half of which is known."""
    drawn = synthetic(n_nodes, n_classes, average_degree=2 * n_edges / n_nodes, imbalance=4.0)
    rng = np.random.default_rng(0)
    truth = drawn.labels
    shown = (truth < n_classes // 2) & (rng.random(n_nodes) < LABELLED)
    ids = np.array([f"doc {i:06d}" for i in rng.permutation(n_nodes)])
    nodes = pd.DataFrame({"id": ids})
    nodes["topic"] = np.where(shown, np.char.add("topic ", truth.astype(str)), "")
    nodes["abstract"] = texts(truth, rng)
    nodes.to_csv(folder / "nodes.csv", index=False)
    targets = np.repeat(np.arange(n_nodes), drawn.graph.in_degrees)
    once = drawn.graph.sources < targets
    edges = {"source": ids[drawn.graph.sources[once]], "target": ids[targets[once]]}
    pd.DataFrame(edges).to_csv(folder / "edges.csv", index=False)
    return truth


def texts(classes: NDArray[np.int64], rng: np.random.Generator) -> list[str]:
    """Write a text a node: common words, words of its topic, and the mess of real texts."""
    letters = np.array(list(string.ascii_lowercase))
    words = np.array(["".join(rng.choice(letters, rng.integers(3, 11))) for _ in range(N_WORDS)])
    common = 1 / np.arange(1, N_WORDS + 1)
    common /= common.sum()
    topics = [rng.choice(N_WORDS, N_OF_TOPIC, replace=False) for _ in range(classes.max() + 1)]
    lengths = np.clip(rng.lognormal(3.5, 0.7, len(classes)), 3, 300).astype(int)
    lengths[rng.random(len(classes)) < 0.02] = 0  # some have no text at all
    found = []
    for c, length in zip(classes.tolist(), lengths.tolist(), strict=True):
        chosen = rng.choice(N_WORDS, length, p=common)
        on_topic = rng.random(length) < 0.15
        chosen[on_topic] = topics[c][rng.integers(N_OF_TOPIC, size=int(on_topic.sum()))]
        found.append(" ".join(map(messy, words[chosen].tolist(), rng.random(length).tolist())))
    return found


def messy(word: str, chance: float) -> str:
    """Leave most words as they are, and write the others as people do."""
    if chance < 0.04:
        return word.capitalize() + ","
    if chance < 0.06:
        return f'"{word}"'
    if chance < 0.08:
        return word[1] + word[0] + word[2:]  # a slip of the keys
    if chance < 0.09:
        return f"<b>{word}</b>;\n"
    if chance < 0.10:
        return f"{word}é {int(chance * 1e7)}"
    return word


def accuracy(folder: Path, truth: NDArray[np.int64], n_seen: int) -> str:
    """Compare the classes of the nodes that had no label with what they are."""
    nodes = pd.read_parquet(folder / "out" / "nodes.parquet")
    predictions = pd.read_parquet(folder / "out" / "predictions.parquet")
    number = {f"topic {c}": c for c in range(n_seen)}
    for name in sorted(set(predictions["label"]) - set(number)):
        number[name] = len(number)
    hidden = (nodes["part"] == "test").to_numpy()
    found = predictions["label"].map(number).to_numpy()[hidden]
    shares = open_world_accuracy(found, truth[hidden], n_seen)
    return f"All {shares.all:.1%}  Seen {shares.seen:.1%}  Novel {shares.novel:.1%}"


if __name__ == "__main__":
    sys.exit(main())
