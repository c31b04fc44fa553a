import math
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

from openima.graph.graph import Features, Graph
from openima.report import classes as module
from openima.report.classes import SHOWN, class_table, top_features

NAMES = ("red", "blue", "novel_1", "novel_2")


def graph_of(features: Features, **names: Any) -> Graph:
    return Graph.from_edges([], [], features, directed=False, **names)


def unit(rows: NDArray[np.float64]) -> NDArray[np.float32]:
    scaled: NDArray[np.float64] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return scaled.astype(np.float32)


def example(n: int = 60) -> dict[str, Any]:
    """Three classes with nodes and one without."""
    rng = np.random.default_rng(3)
    classes = rng.permutation(np.arange(n) % 3)
    z = unit(np.eye(5)[classes] + 0.2 * rng.standard_normal((n, 5)))
    given = np.where((classes < 2) & (rng.random(n) < 0.4), classes, -1)
    return {
        "z": z,
        "classes": classes,
        "margins": rng.random(n).astype(np.float32),
        "given": given,
        "names": NAMES,
        "n_seen": 2,
    }


def table_of(features: Features | None = None, **changes: object) -> pd.DataFrame:
    parts = {**example(), **changes}
    x = np.zeros((len(parts["z"]), 2)) if features is None else features
    return class_table(graph_of(x), **parts)


def test_sizes_and_figures_are_those_of_naive_loops() -> None:
    parts = example()
    z, classes, given = (np.asarray(parts[name]) for name in ("z", "classes", "given"))
    table = table_of()
    assert table["class"].tolist() == list(NAMES)
    assert table["status"].tolist() == ["seen", "seen", "novel", "novel"]
    assert table["size"].tolist() == [sum(classes == c) for c in range(4)]
    assert table["n_known"].tolist() == [sum(given == c) for c in range(4)]
    centres = [z[classes == c].astype(float).mean(axis=0) for c in range(3)]
    width = [
        math.sqrt(np.mean([math.dist(row, centre) ** 2 for row in z[classes == c]]))
        for c, centre in enumerate(centres)
    ]
    for c, centre in enumerate(centres):
        cosines = [row @ centre / np.linalg.norm(centre) for row in z[classes == c]]
        assert table["cohesion"][c] == pytest.approx(np.mean(cosines), rel=1e-6)
        rates = [
            math.dist(centre, other) / (width[c] + width[k])
            for k, other in enumerate(centres)
            if k != c
        ]
        assert table["separation"][c] == pytest.approx(min(rates), rel=1e-6)
    nearest = min((0, 1), key=lambda c: math.dist(centres[c], centres[2]))
    assert table["nearest_known"].tolist() == [None, None, NAMES[nearest], None]


def test_a_class_without_nodes_has_no_figures() -> None:
    empty = table_of().iloc[3]
    assert empty["size"] == 0
    assert math.isnan(empty["cohesion"])
    assert math.isnan(empty["separation"])
    assert empty[["top_features", "exemplars", "borderline"]].tolist() == [[], [], []]


def test_one_class_has_nothing_to_be_separate_from() -> None:
    n = len(example()["classes"])
    table = table_of(
        classes=np.zeros(n, dtype=np.int64), given=np.full(n, -1), names=("red",), n_seen=1
    )
    assert table["separation"].isna().tolist() == [True]
    assert table["size"].tolist() == [n]


def test_exemplars_are_nearest_the_centre_and_borderline_of_least_margin() -> None:
    parts = example()
    z, classes, margins = (np.asarray(parts[name]) for name in ("z", "classes", "margins"))
    table = table_of()
    for c in range(3):
        members = np.flatnonzero(classes == c)
        centre = z[members].astype(float).mean(axis=0)
        by_distance = sorted(members, key=lambda i: math.dist(z[i], centre))
        assert table["exemplars"][c] == by_distance[:SHOWN]
        assert table["borderline"][c] == sorted(members, key=lambda i: margins[i])[:SHOWN]


def test_nodes_go_by_their_ids_and_features_by_their_names() -> None:
    parts = example()
    n = len(np.asarray(parts["z"]))
    classes = np.asarray(parts["classes"])
    x = np.stack([classes == 0, classes == 1], axis=1).astype(np.float32)
    ids = np.asarray([f"node {i}" for i in range(n)])
    named = class_table(graph_of(x, node_ids=ids, feature_names=np.array(["r", "b"])), **parts)
    assert named["top_features"].tolist() == [["r"], ["b"], [], []]
    plain = class_table(graph_of(x), **parts)
    assert plain["top_features"].tolist() == [["feature 0"], ["feature 1"], [], []]
    for column in ("exemplars", "borderline"):
        for some, numbers in zip(named[column], plain[column], strict=True):
            assert some == [f"node {i}" for i in numbers]
            assert all(type(name) is str for name in some)
            assert all(type(number) is int for number in numbers)


def contrasts(x: NDArray[np.float64], classes: NDArray[np.int64], c: int) -> list[float]:
    found = []
    for column in x.T:
        inside, outside = column[classes == c], column[classes != c]
        spread = column.std()
        found.append((inside.mean() - outside.mean()) / spread if spread > 0 else 0.0)
    return found


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("chunk", [11, 1 << 16])
def test_top_features_have_the_largest_contrast(
    sparse: bool, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_CHUNK", chunk)
    rng = np.random.default_rng(0)
    classes = rng.integers(0, 3, 50)
    x = rng.random((50, 12)) * (rng.random((50, 12)) < 0.4)
    x[:, 3] = 7.25  # constant
    x[:, 5] *= 1000  # a scale of its own
    found = top_features(sp.csr_array(x) if sparse else x, classes, np.bincount(classes))
    for c in range(3):
        of_class = contrasts(x, classes, c)
        best = sorted(range(12), key=lambda f: -of_class[f])
        assert found[c] == [f for f in best[:SHOWN] if of_class[f] > 0]
        assert 3 not in found[c]
        assert all(of_class[a] >= of_class[b] for a, b in pairwise(found[c]))


def test_features_that_all_have_alike_set_nobody_off() -> None:
    x = np.full((40, 3), 0.1, dtype=np.float32)
    assert top_features(x, np.arange(40) % 2, np.array([20, 20])) == [[], []]
