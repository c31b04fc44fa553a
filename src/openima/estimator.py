"""The front door in Python: fit a half-labelled graph, and look at what was found."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from openima.config import with_plain_settings
from openima.errors import InputError
from openima.fitted import Fitted, ids_of, prediction_table
from openima.graph.datasets import find_dataset, is_dataset
from openima.graph.graph import Graph
from openima.graph.task import LabelledGraph, Task
from openima.inputs import read_any, task_of
from openima.methods import get_recipe
from openima.methods.base import Recipe
from openima.model_files import load_fitted, save_fitted
from openima.read_options import of_any_graph, refuse_alone, source_of, tables_apart
from openima.report.anndata import is_anndata, write_back
from openima.train.device import pick_device
from openima.train.learned import Look
from openima.train.trainer import train


class OpenWorldClassifier(BaseEstimator):
    """Puts every node of a graph into a known class or into one of several new classes.

    Parameters, which are only looked at in `fit`:

    - `method`: the name of a recipe, as `openima methods` lists them.
    - `n_novel`: how many new classes to look for; 0 is plain semi-supervised classification.
    - `epochs`: how long to train; None is as long as the method is used to.
    - `seed`: the same seed on the same machine gives the same bytes.
    - `val_share`: the share of the labelled nodes of each class that is set aside to choose an
      epoch.
    - `hide_classes`: whether to hide half of the classes and most labels of the rest, as the
      paper's experiments do, to see how well they are found again; `val_share` is not used then.
    - `settings`: other settings of the method and its training by name, as plain values; of
      those that are parameters too, the parameter holds.
    - `device`: "auto" (a GPU if there is one), "cpu" or "cuda".
    - `checkpoint`: a file that is written after every epoch, and gone on from if it is there.
    - `progress`: whether to show a progress bar on standard error.

    Learned attributes, for N nodes and C classes, known ones first. All of them are of one epoch,
    which SC&ACC chooses:

    - `labels_` (N,): the names of the classes; new ones are called novel_1, novel_2, ..., the
      largest first. Nodes whose label was given are judged like all others, so that a doubtful
      label shows.
    - `classes_` (C,): all names. `is_novel_` (N,): whether the label is a new class.
    - `confidence_` (N,): the probability of the label, as `predict_proba` has it. It orders nodes
      and is not calibrated: it does not say how many of them are right.
    - `novelty_score_` (N,): higher is newer. The score of the method's detector of new classes,
      if it has one, else the total probability of all new classes; not calibrated either.
    - `embeddings_` (N, d): of unit length. `n_features_in_`: how many features a node has.
    - `classes_table_`: a row a class; `report.classes.class_table` describes the columns.
    - `history_`: a row an epoch; in the column `chosen` True at the epoch that is used.
    - `graph_`, `task_`, `result_`: what was trained on, and what training left behind. They are
      not saved, so a loaded classifier does not have them.
    """

    def __init__(
        self,
        method: str = "openima",
        *,
        n_novel: int | None = None,
        epochs: int | None = None,
        seed: int = 0,
        val_share: float = 0.2,
        hide_classes: bool = False,
        settings: Mapping[str, Any] | None = None,
        device: str = "auto",
        checkpoint: str | Path | None = None,
        progress: bool = True,
    ) -> None:
        """Store the parameters as they are."""
        self.method = method
        self.n_novel = n_novel
        self.epochs = epochs
        self.seed = seed
        self.val_share = val_share
        self.hide_classes = hide_classes
        self.settings = settings
        self.device = device
        self.checkpoint = checkpoint
        self.progress = progress

    def fit(self, data: Any, y: Any = None, **read_options: Any) -> OpenWorldClassifier:
        """Learn from a graph some of whose nodes have a label.

        `data` is whatever `read_graph` reads, with its options (`edges=`, `labels=`, ...), a
        `LabelledGraph`, a `Graph` with `y`, or a `Task`, whose split is used as it is. `y` (N,)
        replaces the labels: names or whole numbers; None, NaN, "" and -1 mean unknown. The path
        of a table in its place is taken for `edges`, as in `read_graph`.

        `data` may also be the name of a data set (`dataset_names()`). Then classes are hidden,
        as with `hide_classes`, and the paper's settings for it hold where no others are given.
        """
        recipe = self._recipe(data)
        y, read_options = tables_apart(data, y, read_options)
        task = task_of(
            data,
            y,
            read_options,
            n_novel=self.n_novel,
            val_share=self.val_share,
            hide_classes=self.hide_classes,
            seed=self.seed,
        )
        result = train(task, recipe, checkpoint=self.checkpoint, progress=self.progress)
        self.graph_, self.task_, self.result_ = task.graph, task, result
        self._take(Fitted.of(result, source_of(data, task, read_options)))
        for doubt in self.fitted_.doubtful_names():
            warnings.warn(f"{task.graph.name}: {doubt}", stacklevel=2)
        if is_anndata(data):
            write_back(self, data)
        return self

    def predict(
        self, data: Any = None, edges: Any = None, **read_options: Any
    ) -> NDArray[np.object_]:
        """Name the class of every node, (n,): of the fitted graph, or of another or a grown one.

        `data` and its options are as in `read_graph`; labels are not used. Nodes of another graph
        are embedded by the trained encoder, with all of their neighbours, and get the class of the
        nearest cluster, or the likeliest one by the head of methods that classify by a head.
        """
        return self.predictions(data, edges, **read_options)["label"].to_numpy(dtype=object)

    def predict_proba(
        self, data: Any = None, edges: Any = None, **read_options: Any
    ) -> NDArray[np.float64]:
        """Return the probability of each of `classes_`, (n, C).

        For methods that cluster, it falls with the squared distance to the centre of the class,
        and for those with a head it is the softmax of its outputs; `predict.membership` has the
        formulas.
        """
        return self._fitted().model.probabilities(self._look(data, edges, read_options))

    def transform(
        self, data: Any = None, edges: Any = None, **read_options: Any
    ) -> NDArray[np.float32]:
        """Return the embeddings of the nodes, (n, d), each of unit length."""
        return self._look(data, edges, read_options).z

    def predictions(self, data: Any = None, edges: Any = None, **read_options: Any) -> pd.DataFrame:
        """Tabulate id, label, is_novel, confidence and novelty, a row a node."""
        fitted, graph = self._fitted(), self._graph(data, edges, read_options)
        if graph is None:
            return prediction_table(fitted.model, fitted.answer, fitted.ids)
        answer = fitted.model.answer(fitted.model.look(graph))
        return prediction_table(fitted.model, answer, ids_of(graph))

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the fitted classifier, but for its graph, to a new folder.

        With `force`, a classifier that was saved there before is replaced.
        """
        save_fitted(Path(path), self._fitted(), self.get_params(deep=False), force=force)

    @classmethod
    def load(cls, path: str | Path, *, device: str | None = None) -> OpenWorldClassifier:
        """Read a classifier that `save` or `openima fit` wrote; it predicts the same bytes.

        `device` moves it to another one than it was trained on.
        """
        fitted, parameters = load_fitted(Path(path), device)
        return cls(**parameters)._take(fitted)

    def _recipe(self, data: Any) -> Recipe:
        if not isinstance(self.method, str):
            raise InputError("method is the name of a method", got=repr(self.method))
        if not isinstance(self.settings, Mapping | None):
            raise InputError(
                "settings are values by name",
                expected='something like {"hidden": 64}',
                got=repr(self.settings),
            )
        recipe = get_recipe(self.method)
        if is_dataset(data):
            recipe = recipe.for_dataset(find_dataset(data).name)
        own = {"seed": self.seed, "device": self.device}
        if self.epochs is not None:
            own["epochs"] = self.epochs
        asked = {**(self.settings or {}), **own}
        plain = {k: v.item() if isinstance(v, np.generic) else v for k, v in asked.items()}
        recipe = with_plain_settings(recipe, plain)
        pick_device(recipe.train.device)  # refuses one that cannot be used
        return recipe

    def _take(self, fitted: Fitted) -> OpenWorldClassifier:
        """Set the learned attributes."""
        self.fitted_ = fitted
        self.classes_ = self._names()
        self.labels_ = self.classes_[fitted.answer.classes]
        self.is_novel_ = fitted.answer.classes >= fitted.model.n_seen
        self.confidence_ = fitted.answer.confidence
        self.novelty_score_ = fitted.answer.novelty
        self.embeddings_ = fitted.look.z
        self.classes_table_ = fitted.classes
        self.history_ = fitted.history
        self.n_features_in_ = fitted.model.n_features
        return self

    def _fitted(self) -> Fitted:
        check_is_fitted(self, "fitted_")
        return self.fitted_

    def _names(self) -> NDArray[np.object_]:
        return np.asarray(self._fitted().model.names, dtype=object)

    def _graph(self, data: Any, edges: Any, read_options: Mapping[str, Any]) -> Graph | None:
        """Read a graph to predict, with the options of the fit where no others are given.

        Without `data` it is None, which stands for the fitted graph.
        """
        fitted = self._fitted()
        if edges is not None:
            read_options = {**read_options, "edges": edges}
        if data is None:
            refuse_alone(read_options)
            return None
        if isinstance(data, Graph | Task):
            return data if isinstance(data, Graph) else data.graph
        read_already = isinstance(data, LabelledGraph) or is_dataset(data)
        of_fit = {} if read_already else of_any_graph(fitted.source)
        options = {**of_fit, **read_options}
        if options.get("text"):
            options.setdefault("words", fitted.words(options["text"]) or None)
        try:
            return read_any(data, options).graph
        except InputError as error:
            labels = options.pop("labels", None)
            if "labels" in read_options or labels is None or repr(labels) not in str(error):
                raise
        return read_any(data, options).graph  # new nodes may come without that column

    def _look(self, data: Any, edges: Any, read_options: Mapping[str, Any]) -> Look:
        fitted, graph = self._fitted(), self._graph(data, edges, read_options)
        return fitted.look if graph is None else fitted.model.look(graph)
