from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from openima.errors import InputError, MissingFileError
from openima.graph.graph import is_mapped
from openima.graph.readers import read_graph

X = np.arange(12, dtype=np.float32).reshape(4, 3)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    nodes = {"id": ["d", "b", "a", "c"], "label": ["x", "", "y", ""], "age": [1.0, 2, 3, 4]}
    pd.DataFrame(nodes).to_csv(tmp_path / "nodes.csv", index=False)
    pd.DataFrame({"source": ["a", "b"], "target": ["b", "c"]}).to_csv(
        tmp_path / "edges.csv", index=False
    )
    return tmp_path


def saved(folder: Path, array: Any) -> str:
    np.save(folder / "x.npy", array)
    return str(folder / "x.npy")


@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_features_stay_in_their_file_in_the_order_of_the_table(folder: Path, kind: type) -> None:
    graph = read_graph(folder, features=saved(folder, X.astype(kind))).graph
    assert isinstance(graph.features, np.ndarray)
    assert is_mapped(graph.features)
    assert graph.features.dtype == kind
    assert graph.features.tolist() == X.tolist()
    assert graph.feature_names is None
    assert graph.node_ids is not None
    assert graph.node_ids.tolist() == ["d", "b", "a", "c"]


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (X[:3], r"does not fit the table of nodes.*4 rows.*\(3, 3\)"),
        (X[0], r"does not fit the table of nodes"),
        (X.astype(int), r"expected float32 or float16.*int64.*astype"),
        (np.full((4, 3), np.nan, np.float32), r"feature 0 of node 0 is nan"),
    ],
)
def test_other_files_are_refused(folder: Path, array: Any, message: str) -> None:
    path = saved(folder, array)
    with pytest.raises(InputError, match=f"(?i){message}"):
        read_graph(folder, features=path)


def test_a_file_that_is_not_there_or_is_none_is_refused(folder: Path) -> None:
    with pytest.raises(MissingFileError):
        read_graph(folder, features=str(folder / "none.npy"))
    (folder / "x.npy").write_text("id,x\n")
    with pytest.raises(InputError, match=r"not a readable \.npy file"):
        read_graph(folder, features=str(folder / "x.npy"))
    with pytest.raises(InputError, match="not in both"):
        read_graph(folder, features=saved(folder, X), text="age")
