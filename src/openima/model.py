"""A trained model: all that is needed to put the nodes of any graph into named classes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openima.errors import InputError
from openima.graph.graph import Graph
from openima.methods.base import Recipe
from openima.predict.membership import CHUNK, Membership
from openima.predict.predictors import group_of_classes
from openima.train.learned import Learned, Look, look_at
from openima.train.trainer import TrainResult


@dataclass(frozen=True, eq=False)
class Answer:
    """What is said of n nodes, each (n,).

    `classes` indexes the names of a model; `confidence` is the probability of that class and
    `margin` its log-odds against the next likeliest. `novelty` is higher for what looks newer:
    the score of the method's detector if it has one, else the probability of all novel classes.
    """

    classes: NDArray[np.int64]
    confidence: NDArray[np.float32]
    novelty: NDArray[np.float32]
    margin: NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Model:
    """Encoder and head of one epoch, and what its groups of nodes are called.

    `names` are the classes, the first `n_seen` of which are known, and `groups` (C,) says which
    group of `membership` each class is. A model that knows no names of features goes by their
    number, `n_features`.
    """

    recipe: Recipe
    learned: Learned
    membership: Membership
    groups: NDArray[np.int64]
    names: tuple[str, ...]
    n_seen: int
    n_features: int
    feature_names: NDArray[np.str_] | None

    @classmethod
    def of(cls, result: TrainResult) -> Model:
        """Take from a training what it learned up to the epoch that it is used from."""
        task, chosen = result.task, result.chosen
        found = result.groups[result.best].astype(np.int64)
        return cls(
            recipe=result.recipe,
            learned=chosen.learned,
            membership=result.recipe.predictor.membership(chosen.snapshot),
            groups=group_of_classes(found, task.labels, task.n_seen, task.n_classes),
            names=(*task.class_names, *novel_names(task.class_names, task.n_classes)),
            n_seen=task.n_seen,
            n_features=task.graph.n_features,
            feature_names=task.graph.feature_names,
        )

    def look(self, graph: Graph) -> Look:
        """Look at all nodes of a graph that has the features of the fitted one."""
        return look_at(self.learned, self._with_own_features(graph), self.recipe)

    def classes_of(self, groups: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the class of nodes whose group is known."""
        return np.argsort(self.groups)[groups]

    def probabilities(self, look: Look) -> NDArray[np.float64]:
        """Return the probability of every class, (n, C); each row adds up to 1."""
        parts = [np.exp(scores[:, self.groups]) for _, scores in self._scores(look)]
        return np.concatenate(parts)

    def answer(self, look: Look, classes: NDArray[np.int64] | None = None) -> Answer:
        """Judge nodes by what is seen of them; `classes` (n,), if given, is decided already."""
        n = len(look.z)
        decided = np.empty(n, dtype=np.int64) if classes is None else classes
        confidence, novelty, margin = (np.empty(n, dtype=np.float32) for _ in range(3))
        for rows, scores in self._scores(look):
            if classes is None:
                detected = None if look.novelty is None else look.novelty[rows]
                decided[rows] = self.classes_of(self.membership.groups(scores, detected))
            scores = scores[:, self.groups]
            own = np.arange(len(scores)), decided[rows]
            of_own = scores[own]
            confidence[rows] = np.exp(of_own)
            novelty[rows] = np.exp(scores[:, self.n_seen :]).sum(axis=1).clip(max=1.0)
            scores[own] = -np.inf
            margin[rows] = of_own - scores.max(axis=1)
        return Answer(
            decided, confidence, novelty if look.novelty is None else look.novelty, margin
        )

    def _scores(self, look: Look) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        """Score every group for some nodes at a time."""
        for start in range(0, len(look.z), CHUNK):
            rows = slice(start, start + CHUNK)
            parts = (None if part is None else part[rows] for part in (look.logits, look.novelty))
            yield rows, self.membership.scores(look.z[rows], *parts)

    def _with_own_features(self, graph: Graph) -> Graph:
        """Refuse other features than those of the fitted graph; bring columns into its order."""
        names, found = self.feature_names, graph.feature_names
        if names is None or found is None:
            if graph.n_features != self.n_features:
                raise _other_features(
                    graph, f"{self.n_features:,} features", f"{graph.n_features:,}"
                )
            return graph
        if np.array_equal(names, found):
            return graph
        missing, unknown = (sorted(set(a) - set(b)) for a, b in ((names, found), (found, names)))
        if missing or unknown or len(names) != len(found):
            raise _other_features(
                graph,
                f"{len(names):,} features by their names",
                f"{len(found):,}, {_some('without', missing)}{_some('with', unknown)}",
            )
        column = {name: i for i, name in enumerate(found.tolist())}
        order = [column[name] for name in names.tolist()]
        features: Any = graph.features
        return replace(graph, features=features[:, order], feature_names=names)


def novel_names(taken: Sequence[str], n_classes: int) -> list[str]:
    """Name the classes beyond those `taken`: novel_1, novel_2, ... but for names in use."""
    free = (name for k in count(1) if (name := f"novel_{k}") not in taken)
    return [next(free) for _ in range(n_classes - len(taken))]


def _some(word: str, names: Sequence[str]) -> str:
    if not names:
        return ""
    more = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
    return f"{word} {', '.join(map(repr, map(str, names[:3])))}{more} "


def _other_features(graph: Graph, expected: str, got: str) -> InputError:
    return InputError(
        "the graph has other features than the one that the model was fitted on",
        where=graph.name,
        expected=expected,
        got=got,
        remedy="give the nodes the same features, read in the same way",
    )
