"""The front door, on graphs that train in a second."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import estimator_checks

from openima import OpenWorldClassifier, estimator, get_recipe
from openima.errors import InputError
from openima.graph.datasets import load_dataset
from openima.graph.graph import Graph
from openima.graph.synthetic import synthetic
from openima.graph.task import LabelledGraph, Task
from openima.methods import recipes
from openima.predict.clustering import MiniBatchKMeansClustering
from openima.predict.predictors import HeadPredictor

SMALL = {
    "hidden": 16,
    "heads": 2,
    "batch_size": 64,
    "learning_rate": 1e-2,
    "clustering": {"kind": "kmeans", "n_init": 2},
}


def make(**parameters: Any) -> OpenWorldClassifier:
    settings = {**SMALL, **parameters.pop("settings", {})}
    quiet = {"epochs": 3, "settings": settings, "device": "cpu", "progress": False}
    return OpenWorldClassifier(**{**quiet, **parameters})


def half_labelled(n: int = 120, seed: int = 1) -> LabelledGraph:
    """A graph of four classes, of which some nodes of the first two have a label."""
    full = synthetic(n, 4, n_features=16, homophily=0.9, feature_noise=0.4, seed=seed)
    shown = (full.labels < 2) & (np.random.default_rng(0).random(n) < 0.5)
    return LabelledGraph(full.graph, np.where(shown, full.labels, -1), full.class_names)


@pytest.fixture(scope="module")
def graph() -> LabelledGraph:
    return half_labelled()


@pytest.fixture(scope="module")
def fitted(graph: LabelledGraph) -> OpenWorldClassifier:
    return make(n_novel=2).fit(graph)


def test_fit_learns_one_answer_a_node(fitted: OpenWorldClassifier, graph: LabelledGraph) -> None:
    assert fitted.classes_.tolist() == ["class 0", "class 1", "novel_1", "novel_2"]
    assert fitted.labels_.shape == fitted.is_novel_.shape == (120,)
    assert set(fitted.labels_) <= set(fitted.classes_)
    expected = [label.startswith("novel_") for label in fitted.labels_]
    assert fitted.is_novel_.tolist() == expected
    sizes = pd.Series(fitted.labels_).value_counts()
    assert sizes["novel_1"] >= sizes["novel_2"]
    assert fitted.embeddings_.shape == (120, 16)
    assert fitted.n_features_in_ == 16
    assert fitted.graph_ is graph.graph
    assert fitted.task_.n_novel == 2
    known = graph.labels >= 0
    agree = fitted.labels_[known] == np.asarray(graph.class_names)[graph.labels[known]]
    assert agree.mean() > 0.9


def test_everything_is_of_the_epoch_that_is_chosen(fitted: OpenWorldClassifier) -> None:
    result = fitted.result_
    assert fitted.history_["chosen"].tolist() == [i == result.best for i in range(3)]
    names = fitted.classes_
    own = pd.Series(result.classes()).map(lambda c: names[c] if c < 2 else "novel")
    assert own.tolist() == [n if n in names[:2] else "novel" for n in fitted.labels_]
    np.testing.assert_array_equal(fitted.embeddings_, result.chosen.snapshot.z)
    np.testing.assert_array_equal(fitted.predict(), fitted.labels_)
    np.testing.assert_array_equal(fitted.transform(), fitted.embeddings_)


def test_probabilities_confidence_and_novelty_agree(fitted: OpenWorldClassifier) -> None:
    proba = fitted.predict_proba()
    assert proba.shape == (120, 4)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    np.testing.assert_array_equal(fitted.classes_[proba.argmax(axis=1)], fitted.labels_)
    np.testing.assert_allclose(proba.max(axis=1), fitted.confidence_, rtol=1e-6)
    np.testing.assert_allclose(proba[:, 2:].sum(axis=1), fitted.novelty_score_, rtol=1e-6)
    new, known = (fitted.novelty_score_[fitted.is_novel_ == novel] for novel in (True, False))
    assert new.min() > known.max()


def test_the_table_has_a_row_a_class(fitted: OpenWorldClassifier) -> None:
    table = fitted.classes_table_
    assert table["class"].tolist() == fitted.classes_.tolist()
    assert table["size"].tolist() == [int((fitted.labels_ == c).sum()) for c in fitted.classes_]
    assert table["n_known"].sum() == (fitted.task_.labels >= 0).sum()


def test_predictions_are_a_table(fitted: OpenWorldClassifier) -> None:
    table = fitted.predictions()
    assert table.columns.tolist() == ["id", "label", "is_novel", "confidence", "novelty"]
    assert table["id"].tolist() == list(range(120))
    assert table["label"].tolist() == fitted.labels_.tolist()


def test_the_fitted_graph_as_a_new_one_gives_the_same_bytes(
    fitted: OpenWorldClassifier, graph: LabelledGraph
) -> None:
    for again in (graph, graph.graph, fitted.task_):
        assert fitted.predict(again).tolist() == fitted.labels_.tolist()
        assert fitted.transform(again).tobytes() == fitted.embeddings_.tobytes()
        assert fitted.predict_proba(again).tobytes() == fitted.predict_proba().tobytes()
        pd.testing.assert_frame_equal(
            fitted.predictions(again), fitted.predictions(), check_exact=True
        )


def test_a_grown_graph_keeps_its_classes_and_new_nodes_find_theirs(
    fitted: OpenWorldClassifier, graph: LabelledGraph
) -> None:
    """Twenty copies of nodes, each linked to the original and its neighbours."""
    old = graph.graph
    copied = np.arange(0, 120, 6)
    targets = np.repeat(np.arange(120), old.in_degrees)
    links = [(s, t) for s, t in zip(old.sources.tolist(), targets.tolist(), strict=True)]
    for new, original in enumerate(copied.tolist(), 120):
        near = [s for s, t in links if t == original]
        links += [(new, other) for other in [original, *near]]
    x = np.asarray(old.features)
    features, ends = np.vstack([x, x[copied]]), np.asarray(links).T
    grown = Graph.from_edges(ends[0], ends[1], features, directed=False)
    found = fitted.predict(grown)
    assert found.shape == (140,)
    assert (found[:120] == fitted.labels_).mean() > 0.95
    assert (found[120:] == fitted.labels_[copied]).mean() > 0.9


def test_another_graph_of_the_same_kind_is_sorted_too(fitted: OpenWorldClassifier) -> None:
    """The same nodes without links: what is predicted depends on the features alone."""
    graph = fitted.graph_
    alone = Graph.from_edges([], [], graph.features, directed=False)
    assert (fitted.predict(alone) == fitted.labels_).mean() > 0.7
    turned = Graph.from_edges([], [], np.asarray(graph.features)[::-1], directed=False)
    assert fitted.predict(turned).tolist() == fitted.predict(alone)[::-1].tolist()


def test_graphs_with_other_features_are_refused(graph: LabelledGraph) -> None:
    names = np.asarray([f"f{i}" for i in range(16)])
    x = np.asarray(graph.graph.features)

    def other(x: Any, names: Any = None) -> Graph:
        return Graph.from_edges([], [], x, directed=False, feature_names=names, name="other")

    named = LabelledGraph(other(x, names), graph.labels, graph.class_names)
    classifier = make(n_novel=2, epochs=1).fit(named)
    turned = other(x[:, ::-1].copy(), names[::-1])
    assert classifier.transform(turned).tobytes() == classifier.embeddings_.tobytes()
    assert classifier.transform(other(x)).tobytes() == classifier.embeddings_.tobytes()
    with pytest.raises(InputError, match=r"other: .* Expected 16 features. Got 15"):
        classifier.predict(other(x[:, 1:]))
    swapped = names.copy()
    swapped[3] = "g3"
    with pytest.raises(InputError, match=r"Got 16, without 'f3' with 'g3'"):
        classifier.predict(other(x, swapped))


def test_labels_may_be_names_numbers_or_missing(graph: LabelledGraph) -> None:
    numbers = graph.labels
    names = np.asarray([*graph.class_names, None], dtype=object)[numbers]
    same = [
        make(n_novel=2, epochs=1).fit(graph.graph, y)
        for y in (
            names,
            names.tolist(),
            pd.Series(names),
            pd.Categorical(names),
            np.where(numbers < 0, "", names.astype(str)),
        )
    ]
    for classifier in same:
        assert classifier.classes_.tolist() == ["class 0", "class 1", "novel_1", "novel_2"]
        assert classifier.labels_.tolist() == same[0].labels_.tolist()
    by_number = make(n_novel=2, epochs=1).fit(graph.graph, numbers)
    assert by_number.classes_.tolist() == ["0", "1", "novel_1", "novel_2"]
    assert by_number.embeddings_.tobytes() == same[0].embeddings_.tobytes()


def test_an_infinite_label_is_refused(graph: LabelledGraph) -> None:
    y = np.where(graph.labels < 0, np.inf, graph.labels)
    with pytest.raises(InputError, match=r"is not a class.*a whole number. Got inf"):
        make(n_novel=2).fit(graph.graph, y)


def test_y_replaces_the_labels_of_a_graph_that_has_some(graph: LabelledGraph) -> None:
    y = np.where(graph.labels == 0, "first", np.where(graph.labels == 1, "second", ""))
    assert make(n_novel=1, epochs=1).fit(graph, y).classes_.tolist() == [
        "first",
        "second",
        "novel_1",
    ]


def test_names_of_new_classes_avoid_names_in_use(graph: LabelledGraph) -> None:
    y = np.asarray(["novel_1", "novel_3", ""])[graph.labels]
    found = make(n_novel=3, epochs=1).fit(graph.graph, y).classes_.tolist()
    assert found == ["novel_1", "novel_3", "novel_2", "novel_4", "novel_5"]


def test_a_task_is_used_as_it_is(tiny_task: Task) -> None:
    classifier = make().fit(tiny_task)
    assert classifier.task_ is tiny_task
    assert len(classifier.classes_) == tiny_task.n_classes
    assert "all" in classifier.history_
    assert len(make(n_novel=3, epochs=1).fit(tiny_task).classes_) == tiny_task.n_seen + 3


def test_settings_reach_the_recipe(graph: LabelledGraph) -> None:
    clustering = {"kind": "mini-batch-kmeans", "n_init": 2}
    classifier = make(n_novel=2, epochs=2, seed=np.int64(7), settings={"clustering": clustering})
    train = classifier.fit(graph).result_.recipe.train
    assert (train.epochs, train.seed, train.batch_size) == (2, 7, 64)
    assert train.clustering == MiniBatchKMeansClustering(n_init=2)


def test_the_seed_decides(graph: LabelledGraph, fitted: OpenWorldClassifier) -> None:
    again, other = make(n_novel=2).fit(graph), make(n_novel=2, seed=1).fit(graph)
    assert again.embeddings_.tobytes() == fitted.embeddings_.tobytes()
    assert other.embeddings_.tobytes() != fitted.embeddings_.tobytes()


def test_a_checkpoint_is_gone_on_from(
    graph: LabelledGraph, fitted: OpenWorldClassifier, tmp_path: Path
) -> None:
    path = tmp_path / "run.safetensors"
    make(n_novel=2, epochs=2, checkpoint=path).fit(graph)
    resumed = make(n_novel=2, checkpoint=path).fit(graph)
    assert resumed.embeddings_.tobytes() == fitted.embeddings_.tobytes()
    assert resumed.labels_.tolist() == fitted.labels_.tolist()


@pytest.mark.parametrize("name", sorted(recipes()))
def test_every_method_fits_and_predicts(tiny_task: Task, name: str) -> None:
    classifier = make(method=name, epochs=2).fit(tiny_task)
    again = classifier.predictions(tiny_task)
    pd.testing.assert_frame_equal(again, classifier.predictions(), check_exact=True)


def test_a_method_with_a_head_predicts_by_its_head(
    tiny_task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_head = replace(get_recipe("openima"), predictor=HeadPredictor())
    monkeypatch.setattr(estimator, "get_recipe", {"openima": by_head}.__getitem__)
    classifier = make().fit(tiny_task)
    logits = classifier.result_.chosen.snapshot.logits
    assert logits is not None
    groups = classifier.result_.groups[classifier.result_.best]
    assert logits.argmax(axis=1).tolist() == groups.tolist()
    weights = np.exp(logits.astype(np.float64))
    expected = np.sort(weights / weights.sum(axis=1, keepdims=True), axis=1)
    np.testing.assert_allclose(np.sort(classifier.predict_proba(), axis=1), expected)
    assert classifier.predict(tiny_task).tolist() == classifier.labels_.tolist()


def test_hidden_labels_change_nothing(tiny_task: Task) -> None:
    assert tiny_task.truth is not None
    truth = np.random.default_rng(0).permutation(tiny_task.truth)
    honest = make().fit(tiny_task)
    for task in (replace(tiny_task, truth=truth), replace(tiny_task, truth=None)):
        other = make().fit(task)
        pd.testing.assert_frame_equal(other.predictions(), honest.predictions(), check_exact=True)
        assert other.embeddings_.tobytes() == honest.embeddings_.tobytes()
        pd.testing.assert_frame_equal(other.classes_table_, honest.classes_table_)


def test_labels_of_a_new_graph_are_not_looked_at(
    fitted: OpenWorldClassifier, graph: LabelledGraph
) -> None:
    mixed = np.random.default_rng(0).permutation(graph.labels)
    other = LabelledGraph(graph.graph, mixed, graph.class_names)
    pd.testing.assert_frame_equal(fitted.predictions(other), fitted.predictions())


def test_nothing_that_was_passed_is_changed(graph: LabelledGraph) -> None:
    before = graph.labels.copy(), np.asarray(graph.graph.features).copy()
    settings = {"hidden": 8, "heads": 1, "batch_size": 64}
    OpenWorldClassifier(n_novel=2, epochs=1, settings=settings, progress=False).fit(graph)
    assert settings == {"hidden": 8, "heads": 1, "batch_size": 64}
    np.testing.assert_array_equal(graph.labels, before[0])
    np.testing.assert_array_equal(np.asarray(graph.graph.features), before[1])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({}, "how many new classes.*pass n_novel"),
        ({"n_novel": -1}, "n_novel cannot be negative"),
        ({"n_novel": 1.5}, "n_novel is a whole number"),
        ({"n_novel": "2"}, "n_novel is a whole number"),
        ({"n_novel": 119}, "cannot be put into 121 classes"),
        ({"n_novel": 2, "val_share": 1.0}, "val_share is a share"),
        ({"n_novel": 2, "val_share": "some"}, "val_share is a share"),
        ({"n_novel": 2, "epochs": 0}, "epochs must be at least 1"),
        ({"n_novel": 2, "seed": None}, "the setting seed has a value of another kind"),
        ({"n_novel": 2, "hide_classes": "no"}, "hide_classes is True or False. Got 'no'"),
        ({"n_novel": 2, "method": None}, "method is the name of a method. Got None"),
        ({"n_novel": 2, "method": "openina"}, "did you mean 'openima'"),
        ({"n_novel": 2, "settings": {"hiden": 3}}, "no setting 'hiden'.*did you mean 'hidden'"),
        ({"n_novel": 2, "device": "tpu"}, "the device 'tpu' cannot be used"),
    ],
)
def test_parameters_that_cannot_be_used_are_refused(
    graph: LabelledGraph, parameters: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        make(**parameters).fit(graph)


def test_settings_that_are_no_values_by_name_are_refused(graph: LabelledGraph) -> None:
    settings: Any = ["hidden=3"]
    with pytest.raises(InputError, match=r"settings are values by name.*Got \['hidden=3'\]"):
        OpenWorldClassifier(n_novel=2, settings=settings).fit(graph)


def test_settings_may_be_numpys_numbers(graph: LabelledGraph) -> None:
    made = make(n_novel=2, epochs=np.int64(1), settings={"hidden": np.int64(4)}).fit(graph)
    assert made.embeddings_.shape[1] == 4


def test_before_fitting_there_is_nothing_to_ask() -> None:
    for ask in ("predict", "predict_proba", "transform", "predictions"):
        with pytest.raises(NotFittedError):
            getattr(make(), ask)()
    with pytest.raises(NotFittedError):
        make().save("anywhere")


def test_clones_and_representations_are_scikit_learns() -> None:
    classifier = make(n_novel=3, seed=5)
    copy = clone(classifier)
    assert copy is not classifier
    assert copy.get_params() == classifier.get_params()
    copy.set_params(seed=6)
    assert (copy.seed, classifier.seed) == (6, 5)
    assert repr(OpenWorldClassifier(n_novel=2)) == "OpenWorldClassifier(n_novel=2)"
    with pytest.raises(ValueError, match=r"Invalid parameter"):
        classifier.set_params(n_nowel=3)


@pytest.mark.parametrize(
    "check",
    [
        "check_parameters_default_constructible",
        "check_no_attributes_set_in_init",
        "check_do_not_raise_errors_in_init_or_set_params",
        "check_mixin_order",
        "check_get_params_invariance",
        "check_set_params",
        "check_estimator_cloneable",
        "check_estimator_repr",
        "check_estimator_tags_renamed",
        "check_valid_tag_types",
    ],
)
def test_the_checks_of_scikit_learn_that_need_no_table_pass(check: str) -> None:
    """The others fit a bare table, and ours is a graph."""
    getattr(estimator_checks, check)("OpenWorldClassifier", OpenWorldClassifier())


@pytest.mark.parametrize("name", ["unknown", "?", "-1", "None"])
def test_a_class_that_hardly_is_one_is_asked_about(name: str, graph: LabelledGraph) -> None:
    half = np.where(graph.labels < 0, 2, graph.labels)
    half[::7] = -1
    labelled = LabelledGraph(graph.graph, half, (*graph.class_names[:2], name))
    with pytest.warns(UserWarning, match=rf"taken for a class.*unknown='{re.escape(name)}'"):
        make(n_novel=2, epochs=1).fit(labelled)
    full = replace(labelled, labels=np.where(half < 0, 2, half))
    with pytest.raises(InputError, match=rf"all nodes have a label.*if '{re.escape(name)}' means"):
        make(n_novel=2, epochs=1).fit(full)


def test_a_data_set_by_name_is_split_as_in_the_paper() -> None:
    least = {"hidden": 4, "heads": 1, "clustering": {"kind": "kmeans", "n_init": 1}}
    classifier = make(epochs=1, seed=2, settings=least).fit("digits")
    task = load_dataset("digits").open_world_task(seed=2)
    assert classifier.task_.labels.tolist() == task.labels.tolist()
    assert classifier.classes_[:5].tolist() == list(task.class_names)
    assert classifier.predict("digits").tolist() == classifier.labels_.tolist()
    with pytest.raises(InputError, match=r"by name has its links.*'k'.*write ./digits"):
        make(epochs=1, settings=least).fit("digits", k=3)


def test_a_data_set_by_name_has_the_papers_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    own = replace(get_recipe("openima"), by_dataset={"digits": {"eta": 3.0, "heads": 2}})
    monkeypatch.setattr(estimator, "get_recipe", {"openima": own}.__getitem__)
    least = {"hidden": 4, "heads": 1, "clustering": {"kind": "kmeans", "n_init": 1}}
    recipe = make(epochs=1, settings=least).fit("digits").result_.recipe
    assert (recipe.config.eta, recipe.encoder.heads) == (3.0, 1)


def test_classes_can_be_hidden() -> None:
    full = synthetic(120, 4, n_features=16, homophily=0.9, feature_noise=0.4, seed=1)
    classifier = make(hide_classes=True, seed=4, epochs=1).fit(full)
    task = full.open_world_task(seed=4)
    assert classifier.task_.labels.tolist() == task.labels.tolist()
    assert classifier.history_["novel"].notna().all()
    assert len(make(hide_classes=True, n_novel=3, epochs=1).fit(full).classes_) == 5
    with pytest.raises(InputError, match="its split already"):
        make(hide_classes=True).fit(task)
