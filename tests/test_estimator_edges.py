"""Graphs at the edge of what can be asked for: each works, or says in one line why not."""

import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

from openima import OpenWorldClassifier
from openima.errors import InputError
from openima.graph.graph import Features, Graph
from openima.graph.synthetic import synthetic

SMALL = {
    "hidden": 8,
    "heads": 1,
    "batch_size": 64,
    "learning_rate": 1e-2,
    "clustering": {"kind": "kmeans", "n_init": 2},
}


def fit(graph: Graph, y: Any, n_novel: int, **parameters: Any) -> OpenWorldClassifier:
    classifier = OpenWorldClassifier(
        n_novel=n_novel, epochs=2, settings=SMALL, device="cpu", progress=False, **parameters
    )
    return classifier.fit(graph, y)


def answered(classifier: OpenWorldClassifier, n_nodes: int) -> bool:
    """Whether every node has an answer of finite numbers, and so has a new graph."""
    table = classifier.predictions()
    again = classifier.predictions(classifier.graph_)
    assert table["label"].tolist() == again["label"].tolist()
    assert np.isfinite(classifier.embeddings_).all()
    return len(table) == n_nodes and bool(np.isfinite(table[["confidence", "novelty"]]).all().all())


def blobs(n: int = 60, classes: int = 3) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Features of blobs, and labels of every second node of the first two."""
    rng = np.random.default_rng(0)
    blob = np.arange(n) % classes
    x = np.eye(classes, 6)[blob] + 0.1 * rng.standard_normal((n, 6))
    y = np.where((blob < 2) & (np.arange(n) // classes % 2 == 0), blob, -1)
    return x.astype(np.float32), y


def without_links(x: Features) -> Graph:
    return Graph.from_edges([], [], x, directed=False)


def test_a_class_with_one_labelled_node_keeps_it_for_training() -> None:
    x, y = blobs()
    y[y == 1] = -1
    y[1] = 1
    classifier = fit(without_links(x), y, 1)
    assert answered(classifier, 60)
    assert classifier.classes_table_["n_known"].tolist() == [10, 1, 0]
    assert 1 in classifier.task_.train


def astray(n_astray: int) -> tuple[Graph, Any]:
    """Make three blobs: of the nodes labelled c two lie in the last, and some among those of a."""
    x, _ = blobs()
    y = np.asarray(["a", "b", ""], dtype=object)[np.arange(60) % 3]
    y[30:] = ""
    y[[2, 5]] = "c"
    y[[0, 3, 6, 9][:n_astray]] = "c"
    return without_links(x), y


def test_a_known_class_whose_nodes_lie_in_another_group_is_told_of() -> None:
    graph, y = astray(4)
    with pytest.warns(UserWarning, match=r"the group called 'c' may be another class") as caught:
        classifier = fit(graph, y, 0, val_share=0.0)
    (told,) = caught
    assert "of the 6 nodes of 'c' that were learned from 2 are in it, and 4 in 'a'" in str(
        told.message
    )
    assert Path(told.filename) == Path(__file__)
    assert answered(classifier, 60)


def test_a_known_class_half_of_whose_nodes_lie_in_its_group_is_not_told_of() -> None:
    graph, y = astray(2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert answered(fit(graph, y, 0, val_share=0.0), 60)


def test_every_class_with_one_labelled_node_leaves_none_to_choose_an_epoch_by() -> None:
    x, y = blobs()
    y[:] = -1
    y[[0, 1]] = 0, 1
    classifier = fit(without_links(x), y, 1)
    assert answered(classifier, 60)
    assert classifier.history_["val_acc"].isna().all()
    assert classifier.history_["chosen"].sum() == 1


@pytest.mark.parametrize("sparse", [False, True])
def test_one_feature_of_constant_value_does_no_harm(sparse: bool) -> None:
    x, y = blobs()
    x[:, 2] = 3.0
    classifier = fit(without_links(sp.csr_array(x) if sparse else x), y, 1)
    assert answered(classifier, 60)
    assert not any("feature 2" in top for top in classifier.classes_table_["top_features"])


@pytest.mark.parametrize("value", [0.0, 0.25])
@pytest.mark.parametrize("sparse", [False, True])
def test_features_that_are_all_the_same_are_refused(value: float, sparse: bool) -> None:
    x, y = np.full((60, 6), value, dtype=np.float32), blobs()[1]
    with pytest.raises(InputError, match=r"nothing tells them apart.*made from the links"):
        fit(without_links(sp.csr_array(x) if sparse else x), y, 1)


def test_a_node_without_any_feature_gets_an_answer() -> None:
    x, y = blobs()
    x[[0, 5]] = 0.0
    assert answered(fit(without_links(sp.csr_array(x)), y, 1), 60)


def test_nodes_without_links_among_linked_ones_get_an_answer() -> None:
    full = synthetic(60, 3, n_features=8, average_degree=4, feature_noise=0.3, seed=0)
    links = full.graph
    targets = np.repeat(np.arange(60), links.in_degrees)
    kept = (links.sources >= 10) & (targets >= 10)
    graph = Graph.from_edges(links.sources[kept], targets[kept], links.features, directed=False)
    assert (graph.in_degrees == 0).sum() >= 10
    y = np.where((full.labels < 2) & (np.arange(60) % 2 == 0), full.labels, -1)
    assert answered(fit(graph, y, 1), 60)


def test_one_known_class_is_refused() -> None:
    x, y = blobs()
    with pytest.raises(InputError, match=r"at least two classes.*label some nodes of a second"):
        fit(without_links(x), np.where(y == 0, 0, -1), 2)


def test_no_new_class_is_plain_semi_supervised_classification() -> None:
    x, y = blobs(classes=2)
    classifier = fit(without_links(x), y, 0)
    assert answered(classifier, 60)
    assert classifier.classes_.tolist() == ["0", "1"]
    assert not classifier.is_novel_.any()
    assert not classifier.novelty_score_.any()
    assert (classifier.labels_ == (np.arange(60) % 2).astype(str)).mean() > 0.9


def test_more_classes_than_distinct_nodes_leave_some_empty() -> None:
    x, y = blobs()
    few = x[np.arange(60) % 3]
    classifier = fit(without_links(few), y, 4)
    assert answered(classifier, 60)
    table = classifier.classes_table_
    assert len(table) == 6
    assert (table["size"] == 0).sum() >= 3


def test_two_nodes_are_refused_as_all_of_them_have_a_label() -> None:
    with pytest.raises(InputError, match=r"nothing to classify"):
        fit(without_links(np.eye(2)), [0, 1], 1)


def test_three_nodes_are_enough() -> None:
    assert answered(fit(without_links(np.eye(3)), [0, 1, -1], 1), 3)


ISOLATED = """
import re, sys
from pathlib import Path
import numpy as np
import torch
from openima import OpenWorldClassifier
from openima.graph.graph import Graph

def peak():
    return 1024 * int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

def fit(n):
    rng = np.random.default_rng(0)
    blob = np.arange(n) % 4
    x = np.eye(4, 8, dtype=np.float32)[blob]
    x += 0.2 * rng.standard_normal(x.shape, dtype=np.float32)
    y = np.where((blob < 2) & (np.arange(n) < 4000), blob, -1)
    settings = {"hidden": 32, "heads": 8, "batch_size": 8192, "learning_rate": 1e-2}
    settings["clustering"] = {"kind": "mini-batch-kmeans", "batch_size": 16384, "n_init": 2}
    made = OpenWorldClassifier(n_novel=2, epochs=1, settings=settings, device="cpu", progress=False)
    made.fit(Graph.from_edges([], [], x, directed=False), y)
    assert len(made.predictions()) == n
    return made.classes_table_["size"].tolist()

torch.set_num_threads(1)
fit(2000)
before = peak()
print(*fit(int(sys.argv[1])), peak() - before)
"""


@pytest.mark.parametrize("n", [20_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_isolated_nodes_take_memory_in_proportion_to_what_is_said_of_them(n: int) -> None:
    """Embeddings take 128 bytes a node here; what lies between the layers would take 1,024."""
    if not Path("/proc/self/status").exists():
        pytest.skip("peak memory is read from /proc, which is not there")
    job = [sys.executable, "-c", ISOLATED, str(n)]
    done = subprocess.run(job, capture_output=True, text=True, check=True)
    *sizes, peak = map(int, done.stdout.split())
    assert sum(sizes) == n
    assert max(sizes) < 0.4 * n
    assert peak < 300e6 + 1300 * n
