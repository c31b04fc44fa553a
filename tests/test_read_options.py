from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from openima.errors import InputError
from openima.graph.readers import read_graph
from openima.read_options import of_any_graph, refuse_alone, refuse_unknown, tables_apart


@pytest.mark.parametrize("form", [str, Path])
def test_a_table_in_the_place_of_y_is_the_edges(form: Any) -> None:
    y, options = tables_apart(form("nodes.csv"), form("Edges.CSV"), {"labels": "field"})
    assert y is None
    assert options == {"labels": "field", "edges": form("Edges.CSV")}


def test_labels_are_left_as_they_are() -> None:
    for y in (None, [0, 1], np.array(["a", ""])):
        assert tables_apart("nodes.csv", y, {"edges": "e.csv"}) == (y, {"edges": "e.csv"})


def test_edges_by_name_hold() -> None:
    options = {"edges": "other.csv"}
    with pytest.raises(InputError, match=r"y is one label for each node.*edges='edges.csv'"):
        tables_apart("nodes.csv", "edges.csv", options)


@pytest.mark.parametrize(
    ("data", "y"),
    [("nodes.csv", "field"), ("cells.h5ad", "cell_type"), ("digits", "edges.csv"), ([], "e.csv")],
)
def test_another_text_is_no_y(data: Any, y: str) -> None:
    with pytest.raises(InputError) as caught:
        tables_apart(data, y, {})
    assert str(caught.value) == (
        f"y is one label for each node. Got {y!r}. Remedy: labels={y!r} if it names the labels in "
        f"the data, edges={y!r} if it is a table of edges."
    )


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("label", "did you mean 'labels'?"),
        ("edge_list", "did you mean 'edges'?"),
        ("epochs", r"what is not about reading is for OpenWorldClassifier\(...\)."),
    ],
)
def test_an_unknown_option_is_refused_with_the_known_ones(name: str, remedy: str) -> None:
    with pytest.raises(InputError, match=rf"no option '{name}'.*edges, labels, .* k\. .*{remedy}"):
        refuse_unknown({"text": "title", name: 1})


def test_options_without_a_graph_are_refused() -> None:
    refuse_alone({})
    with pytest.raises(InputError, match=r"no graph that the option 'edges' could be of"):
        refuse_alone({"edges": "edges.csv"})


def test_all_options_of_read_graph_are_known() -> None:
    refuse_unknown(dict.fromkeys(list(signature(read_graph).parameters)[1:]))


def test_what_is_of_one_graph_is_not_kept_for_another() -> None:
    read = {"edges": "e.csv", "unknown": "?", "labels": "field", "features": "x.npy"}
    assert of_any_graph({"read": read}) == {"labels": "field"}
    assert of_any_graph({"read": {"features": "X_pca"}}) == {"features": "X_pca"}
