"""Features that stay in their file, from the tables to the predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from openima.errors import InputError
from openima.estimator import OpenWorldClassifier
from openima.graph.graph import Graph, is_mapped
from openima.graph.task import LabelledGraph, Task

SMALL: dict[str, Any] = {"hidden": 8, "heads": 2, "batch_size": 40, "fan_outs": [4, 4]}


@pytest.fixture
def folder(tiny_task: Task, tmp_path: Path) -> Path:
    graph = tiny_task.graph
    assert isinstance(graph.features, np.ndarray)
    np.save(tmp_path / "x.npy", graph.features)
    names = np.asarray([*tiny_task.class_names, ""])
    ids = np.arange(graph.n_nodes)
    targets = np.repeat(ids, graph.in_degrees)
    pd.DataFrame({"id": ids, "label": names[tiny_task.labels]}).to_csv(
        tmp_path / "nodes.csv", index=False
    )
    pd.DataFrame({"source": graph.sources, "target": targets}).to_csv(
        tmp_path / "edges.csv", index=False
    )
    return tmp_path


def classifier(**changes: Any) -> OpenWorldClassifier:
    settings = {"n_novel": 2, "epochs": 2, "device": "cpu", "progress": False, **changes}
    return OpenWorldClassifier("openima-large", settings=SMALL, **settings)


def test_a_fit_on_mapped_features_gives_the_bytes_of_one_in_memory(
    folder: Path, tmp_path: Path
) -> None:
    path = str(folder / "x.npy")
    mapped = classifier().fit(folder, labels="label", features=path)
    assert is_mapped(mapped.graph_.features)
    graph: Graph = mapped.graph_
    in_memory = graph.with_features(np.load(path))
    assert not is_mapped(in_memory.features)
    task = mapped.task_
    y = LabelledGraph(in_memory, task.labels, task.class_names)
    held = classifier().fit(y)
    assert mapped.embeddings_.tobytes() == held.embeddings_.tobytes()
    assert mapped.labels_.tolist() == held.labels_.tolist()
    mapped.save(tmp_path / "model")
    loaded = OpenWorldClassifier.load(tmp_path / "model")
    again = loaded.transform(folder, features=path)
    np.testing.assert_allclose(again, mapped.embeddings_, atol=1e-6)


def test_the_file_of_the_fitted_graph_is_not_taken_for_another(folder: Path) -> None:
    fitted = classifier(epochs=1).fit(folder, labels="label", features=str(folder / "x.npy"))
    with pytest.raises(InputError, match="other features"):
        fitted.predict(folder)


def test_a_killed_run_goes_on_with_mapped_features(folder: Path, tmp_path: Path) -> None:
    read = {"labels": "label", "features": str(folder / "x.npy")}
    straight = classifier(epochs=3).fit(folder, **read)
    checkpoint = tmp_path / "run.safetensors"
    for epochs in (1, 3):
        resumed = classifier(epochs=epochs, checkpoint=checkpoint).fit(folder, **read)
    assert resumed.embeddings_.tobytes() == straight.embeddings_.tobytes()
