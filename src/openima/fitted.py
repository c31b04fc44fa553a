"""A fitted classifier without its graph: the model, what it says of each node, and the tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from openima.graph.graph import Graph
from openima.graph.readers.table_features import word_weights
from openima.model import Answer, Model
from openima.predict.align import count_matrix
from openima.report.classes import class_table
from openima.train.learned import Look
from openima.train.trainer import TrainResult


@dataclass(frozen=True, eq=False)
class Fitted:
    """All that is kept of a fit, and saved.

    `ids`, `labels` (-1 where unknown) and what `look` and `answer` hold are one a node, (N, ...);
    `train` are the nodes whose labels were learned from. `source` tells what was read and how.
    `weights` (F,) are those of the features as words, where the features are sparse.
    """

    model: Model
    look: Look
    answer: Answer
    ids: NDArray[Any]
    labels: NDArray[np.int64]
    train: NDArray[np.int64]
    classes: pd.DataFrame
    history: pd.DataFrame
    source: dict[str, Any]
    weights: NDArray[np.float32] | None

    @classmethod
    def of(cls, result: TrainResult, source: dict[str, Any]) -> Fitted:
        """Look at the nodes of the fitted graph as of the epoch that SC&ACC chooses."""
        task, model = result.task, Model.of(result)
        seen = result.chosen.snapshot
        look = Look(seen.z, seen.logits, seen.novelty)
        found = result.groups[result.best].astype(np.int64)
        answer = model.answer(look, model.classes_of(found))
        features = task.graph.features
        return cls(
            model=model,
            look=look,
            answer=answer,
            ids=ids_of(task.graph),
            labels=task.labels,
            train=task.train,
            classes=class_table(
                task.graph,
                look.z,
                answer.classes,
                answer.margin,
                task.labels,
                model.names,
                model.n_seen,
            ),
            history=result.history.assign(chosen=np.arange(len(result.history)) == result.best),
            source=source,
            weights=None if isinstance(features, np.ndarray) else word_weights(features),
        )

    def doubtful_names(self) -> list[str]:
        """Tell of known classes more of whose training nodes are in another group than in theirs.

        A class of few labels may not make a group of its own, and then its name goes to a group
        that is left over, which may well be a new class.
        """
        names, told = self.model.names, []
        counts = count_matrix(self.answer.classes[self.train], self.labels[self.train], len(names))
        for c, name in enumerate(names[: self.model.n_seen]):
            total, own, other = counts[:, c].sum(), counts[c, c], int(counts[:, c].argmax())
            if counts[other, c] > own:
                told.append(
                    f"the group called {name!r} may be another class: of the {total:,} nodes of "
                    f"{name!r} that were learned from {own:,} are in it, and {counts[other, c]:,} "
                    f"in {names[other]!r}; label more of them, look for more new classes, or "
                    "merge the class into another"
                )
        return told

    def words(self, column: str) -> dict[str, float]:
        """Return the words of a text column among the features, and what they weigh."""
        names, prefix = self.model.feature_names, f"{column}:"
        if names is None or self.weights is None:
            return {}
        pairs = zip(names.tolist(), self.weights.tolist(), strict=True)
        return {name.removeprefix(prefix): w for name, w in pairs if name.startswith(prefix)}


def ids_of(graph: Graph) -> NDArray[Any]:
    """Return the ids of the nodes, which are their numbers where they have no others."""
    return np.arange(graph.n_nodes) if graph.node_ids is None else graph.node_ids


def prediction_table(model: Model, answer: Answer, ids: NDArray[Any]) -> pd.DataFrame:
    """List id, label, is_novel, confidence and novelty of every node."""
    names = np.asarray(model.names, dtype=object)
    return pd.DataFrame(
        {
            "id": ids,
            "label": names[answer.classes],
            "is_novel": answer.classes >= model.n_seen,
            "confidence": answer.confidence,
            "novelty": answer.novelty,
        }
    )
