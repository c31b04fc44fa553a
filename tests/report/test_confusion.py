from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from openima.metrics import open_world_accuracy
from openima.report.confusion import compare
from openima.report.reading import read_run

Writer = Callable[..., Path]


def test_counts_are_those_of_a_cross_table(run_in: Writer) -> None:
    files = read_run(run_in(n=200))
    compared = compare(files)
    assert compared is not None
    test = (files.nodes["part"] == "test") & files.nodes["truth"].notna()
    truth, label = files.nodes["truth"][test], files.predictions["label"][test]
    assert compared["n"] == test.sum()
    assert compared["names"] == ["alpha", "beta", "hidden 0", "hidden 1"]
    classes = files.classes["class"].tolist()
    columns = [classes[k] for k in compared["columns"]]
    cross = pd.crosstab(truth, label).reindex(index=compared["names"], columns=columns)
    assert compared["counts"] == cross.fillna(0).astype(int).to_numpy().tolist()
    assert compared["stands_for"] == compared["names"]  # as the files were made
    ids = {name: i for i, name in enumerate([*compared["names"], *classes[2:]])}
    accuracy = open_world_accuracy(label.map(ids), truth.map(ids), n_seen=2)
    assert compared["accuracy"] == vars(accuracy)


def test_a_known_class_stands_for_itself_even_if_another_fits_better(run_in: Writer) -> None:
    directory = run_in(n=80)
    path = directory / "predictions.parquet"
    predictions = pd.read_parquet(path)
    swap = {"alpha": "novel_1", "novel_1": "alpha"}
    predictions["label"] = predictions["label"].replace(swap)
    predictions.to_parquet(path)
    compared = compare(read_run(directory))
    assert compared is not None
    assert compared["stands_for"][:2] == ["alpha", "beta"]
    assert compared["counts"][0][0] < 10
    assert compared["accuracy"]["all"] > 0.8  # of the best matching, as in the history


def test_more_or_fewer_discovered_classes_than_hidden_ones(run_in: Writer) -> None:
    directory = run_in(n=90, novel=("novel_1", "novel_2", "novel_3"))
    nodes = pd.read_parquet(directory / "nodes.parquet")
    fewer = nodes.assign(truth=nodes["truth"].replace("hidden 2", "hidden 1"))
    fewer.to_parquet(directory / "nodes.parquet")
    compared = compare(read_run(directory))
    assert compared is not None
    assert np.shape(compared["counts"]) == (4, 5)
    assert compared["stands_for"].count(None) == 1
    more = nodes.assign(truth=np.where(nodes.index % 30 == 2, "hidden 9", nodes["truth"]))
    more.to_parquet(directory / "nodes.parquet")
    compared = compare(read_run(directory))
    assert compared is not None
    assert np.shape(compared["counts"]) == (6, 5)
    assert len(set(compared["stands_for"])) == 5


def test_nothing_to_compare_without_truth(run_in: Writer) -> None:
    assert compare(read_run(run_in(truth=False))) is None
    directory = run_in(n=20)
    nodes = pd.read_parquet(directory / "nodes.parquet")
    nodes.assign(part="train").to_parquet(directory / "nodes.parquet")
    assert compare(read_run(directory)) is None
