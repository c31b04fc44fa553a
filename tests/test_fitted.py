from dataclasses import replace

import numpy as np
import pytest

from openima import OpenWorldClassifier
from openima.fitted import Fitted
from openima.graph.task import Task

LEAST = {"hidden": 4, "heads": 1, "clustering": {"kind": "kmeans", "n_init": 1}}


@pytest.fixture(scope="module")
def fitted(tiny_task: Task) -> Fitted:
    made = OpenWorldClassifier(epochs=1, settings=LEAST, device="cpu", progress=False)
    return made.fit(tiny_task).fitted_


def put(fitted: Fitted, of_first: list[int], of_second: list[int]) -> Fitted:
    """Learn from the first nodes, and put those of either known class into these classes."""
    train = np.arange(len(of_first) + len(of_second))
    classes, labels = np.zeros_like(fitted.answer.classes), fitted.labels.copy()
    classes[train] = of_first + of_second
    labels[train] = [0] * len(of_first) + [1] * len(of_second)
    answer = replace(fitted.answer, classes=classes)
    return replace(fitted, train=train, labels=labels, answer=answer)


def test_names_that_training_nodes_bear_out_are_not_doubted(fitted: Fitted) -> None:
    assert put(fitted, [0, 0, 0, 1], [1, 1, 2, 2, 3, 3]).doubtful_names() == []


def test_a_name_is_doubted_if_more_training_nodes_are_in_another_group(fitted: Fitted) -> None:
    first, second = fitted.model.names[:2]
    (told,) = put(fitted, [0, 0, 0], [1, 2, 2, 3]).doubtful_names()
    assert told.startswith(f"the group called {second!r} may be another class")
    assert "of the 4 nodes" in told
    assert "1 are in it, and 2 in 'novel_1'" in told
    (told,) = put(fitted, [1], [1, 1]).doubtful_names()
    assert f"0 are in it, and 1 in {second!r}" in told
    assert first in told


def test_only_nodes_that_were_learned_from_cast_doubt(fitted: Fitted) -> None:
    found = put(fitted, [0, 0], [1, 1])
    others = np.setdiff1d(np.arange(len(found.labels)), found.train)
    found.labels[others] = 1  # all of them are in the first class
    assert found.doubtful_names() == []


def test_a_class_that_nothing_was_learned_from_is_not_doubted(fitted: Fitted) -> None:
    assert put(fitted, [0, 0], []).doubtful_names() == []
