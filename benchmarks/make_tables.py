"""Write a synthetic graph as two Parquet tables, as users have them, to try `openima fit` on.

python benchmarks/make_tables.py FOLDER [--nodes 1000000] [--labelled 500]

`nodes.parquet` holds id, field (blank but for some nodes of the known half of the classes) and a
column for each feature; `edges.parquet` holds source and target. `truth.parquet` tells the class
of every node, to compare the predictions with; no command reads it by itself.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from openima.graph.synthetic import synthetic
from openima.graph.task import LabelledGraph


def main() -> None:
    parser = argparse.ArgumentParser(description="Write a synthetic graph as two Parquet tables.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--classes", type=int, default=20)
    parser.add_argument("--features", type=int, default=64)
    parser.add_argument("--degree", type=float, default=20.0)
    parser.add_argument("--labelled", type=int, default=500, help="nodes a known class")
    options = parser.parse_args()
    made = synthetic(
        options.nodes,
        options.classes,
        average_degree=options.degree,
        n_features=options.features,
        imbalance=3.0,
    )
    options.folder.mkdir(parents=True, exist_ok=True)
    write_nodes(made, options.labelled, options.folder)
    graph = made.graph
    targets = np.repeat(np.arange(graph.n_nodes), graph.in_degrees)
    once = graph.sources < targets
    edges = {"source": graph.sources[once], "target": targets[once]}
    pq.write_table(pa.table(edges), options.folder / "edges.parquet")


def write_nodes(made: LabelledGraph, labelled: int, folder: Path) -> None:
    task = made.open_world_task(seed=0, per_class=labelled)
    names = np.asarray([*task.class_names, None], dtype=object)
    given = np.full(made.graph.n_nodes, -1)
    given[task.train] = task.labels[task.train]
    ids = pa.array(np.arange(made.graph.n_nodes))
    columns = {"id": ids, "field": pa.array(names[given], pa.string())}
    features = made.graph.features
    columns |= {f"x{i}": pa.array(features[:, i]) for i in range(made.graph.n_features)}
    pq.write_table(pa.table(columns), folder / "nodes.parquet", row_group_size=1 << 16)
    truth = np.asarray(made.class_names, dtype=object)[made.labels]
    pq.write_table(pa.table({"id": ids, "class": truth}), folder / "truth.parquet")


if __name__ == "__main__":
    main()
