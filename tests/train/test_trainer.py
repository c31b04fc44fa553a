from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from numpy.typing import NDArray

from openima.errors import InputError
from openima.graph.blocks import Neighbourhoods
from openima.graph.graph import Features, Graph
from openima.graph.synthetic import synthetic
from openima.graph.task import LabelledGraph, Task
from openima.methods.base import Recipe
from openima.metrics.selection import best_row
from openima.metrics.variance import SeenNovelVariance
from openima.nn.inference import embed_all
from openima.nn.rows import FeatureStore
from openima.predict.clustering import SphericalKMeansClustering
from openima.train.trainer import TrainResult, train

Tiny = Callable[..., Recipe]
LOSSES = ["loss_embedding", "loss_logit", "loss_ce"]
FIGURES = ["sc", "val_acc", "all", "seen", "novel"]
FIGURES += [field.name for field in fields(SeenNovelVariance)]
TIMES = ["seconds", "cpu_seconds", "cpu_seconds_steps"]


def fit(task: Task, recipe: Recipe) -> TrainResult:
    return train(task, recipe, progress=False)


def with_features(task: Task, features: Features) -> Task:
    return replace(task, graph=replace(task.graph, features=features))


def dense(task: Task) -> NDArray[Any]:
    features = task.graph.features
    assert isinstance(features, np.ndarray)
    return features


def hard(task: Task) -> Task:
    """The same task with blurred features, so that settings matter to the clusters too."""
    noise = np.random.default_rng(0).standard_normal(dense(task).shape)
    return with_features(task, (dense(task) + 2 * noise).astype(np.float32))


def weights(result: TrainResult) -> bytes:
    state = {**result.encoder.state_dict(), **result.objective.state_dict()}
    return b"".join(tensor.numpy().tobytes() for tensor in state.values())


def test_the_same_seed_gives_the_same_bytes(tiny_task: Task, tiny: Tiny) -> None:
    once, again = (fit(tiny_task, tiny(seed=7)) for _ in range(2))
    assert once.snapshot.z.tobytes() == again.snapshot.z.tobytes()
    assert once.groups.tobytes() == again.groups.tobytes()
    assert weights(once) == weights(again)
    pd.testing.assert_frame_equal(
        once.history.drop(columns=TIMES), again.history.drop(columns=TIMES), check_exact=True
    )


def test_chance_comes_from_the_seed_alone(tiny_task: Task, tiny: Tiny) -> None:
    torch.manual_seed(1)
    state = torch.get_rng_state()
    once = fit(tiny_task, tiny())
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(2)
    assert fit(tiny_task, tiny()).snapshot.z.tobytes() == once.snapshot.z.tobytes()


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 1},
        {"learning_rate": 0.011},
        {"weight_decay": 0.1},
        {"batch_size": 50},
        {"fan_outs": (2, 2)},
        {"fan_outs": (None, 2)},
        {"fan_outs": (2, None)},
        {"look_fan_out": 2},
        {"clustering": SphericalKMeansClustering(n_init=1)},
        {"precision": "bfloat16"},
        {"epochs": 4},
        {"hidden": 8},
        {"heads": 1},
        {"feature_dropout": 0.4},
        {"attention_dropout": 0.4},
        {"negative_slope": 0.1},
        {"eta": 2.0},
        {"temperature": 0.5},
        {"base_temperature": None},
        {"pseudo_share": 0.3},
        {"warm_up": False},
        {"use_embedding": False},
        {"use_logit": False},
        {"use_ce": False},
        {"use_pair": True},
        {"ce_nodes": 3},
    ],
    ids=str,
)
def test_every_setting_does_something(tiny_task: Task, tiny: Tiny, change: dict[str, Any]) -> None:
    recipe = tiny(weight_decay=1e-4)
    task = hard(tiny_task)
    before, after = fit(task, recipe), fit(task, recipe.with_settings(**change))
    assert before.snapshot.z.tobytes() != after.snapshot.z.tobytes()


def test_history_has_a_row_an_epoch(tiny_task: Task, tiny: Tiny) -> None:
    result = fit(tiny_task, tiny(epochs=4))
    history = result.history
    assert set(history.columns) == {"epoch", *LOSSES, *FIGURES, *TIMES}
    assert history["epoch"].tolist() == [1, 2, 3, 4]
    assert np.isfinite(history.drop(columns=["loss_logit", "loss_ce"])).all().all()
    # The first epoch of OpenIMA is InfoNCE alone.
    assert history["loss_logit"].isna().tolist() == [True, False, False, False]
    assert history["loss_ce"].isna().tolist() == [True, False, False, False]
    assert (history[TIMES] > 0).all().all()
    assert (history["cpu_seconds_steps"] < history["cpu_seconds"]).all()
    assert result.groups.shape == (4, 120)
    assert result.best == best_row(history["sc"], history["val_acc"])
    assert result.snapshot.epoch == 4


def test_whoever_trains_hears_of_each_epoch(tiny_task: Task, tiny: Tiny) -> None:
    heard = []
    train(tiny_task, tiny(), progress=False, on_epoch=lambda run: heard.append(len(run.rows)))
    assert heard == [1, 2, 3]


def test_more_epochs_begin_like_fewer(tiny_task: Task, tiny: Tiny) -> None:
    short, long = fit(tiny_task, tiny(epochs=2)), fit(tiny_task, tiny(epochs=4))
    assert short.groups.tobytes() == long.groups[:2].tobytes()
    pd.testing.assert_frame_equal(
        short.history.drop(columns=TIMES), long.history.drop(columns=TIMES)[:2], check_exact=True
    )


def test_the_snapshot_is_what_the_encoder_says_of_all_nodes(tiny_task: Task, tiny: Tiny) -> None:
    result = fit(tiny_task, tiny())
    store = FeatureStore(tiny_task.graph, torch.device("cpu"))
    embedding = embed_all(result.encoder, store, Neighbourhoods(tiny_task.graph))
    np.testing.assert_array_equal(result.snapshot.z, embedding.z.numpy())
    logits = result.objective.logits(embedding)
    assert logits is not None
    assert result.snapshot.logits is not None
    np.testing.assert_array_equal(result.snapshot.logits, logits.detach().numpy())
    assert result.groups[-1].tolist() == result.snapshot.clusters.labels.tolist()


@pytest.mark.parametrize("batch_size", [1, 119, 120, 10_000])
def test_any_batch_size_trains(tiny_task: Task, tiny: Tiny, batch_size: int) -> None:
    result = fit(tiny_task, tiny(batch_size=batch_size, epochs=2))
    assert np.isfinite(result.history["loss_ce"].iloc[-1])
    assert np.isfinite(result.snapshot.z).all()


def test_sampled_neighbours_train(tiny_task: Task, tiny: Tiny) -> None:
    sampled = fit(tiny_task, tiny(fan_outs=(5, 5), epochs=6))
    assert sampled.history["all"].iloc[-1] > 0.8
    enough = fit(tiny_task, tiny(fan_outs=(10_000, 10_000)))
    full = fit(tiny_task, tiny())
    # All neighbours in either way: only the order of sums may differ.
    np.testing.assert_allclose(enough.history["sc"], full.history["sc"], atol=1e-2)


def sparse_task() -> Task:
    """A task whose features are 2% filled, so that the sparse path is taken."""
    labelled = synthetic(120, 4, homophily=0.9, seed=1)
    rng = np.random.default_rng(0)
    words = labelled.labels[:, None] * 50 + rng.integers(0, 50, (120, 5))
    features = np.zeros((120, 200), dtype=np.float32)
    np.put_along_axis(features, words, 1.0, axis=1)
    task = labelled.open_world_task(seed=0, per_class=8)
    return with_features(task, sp.csr_array(features))


def test_sparse_features_train(tiny: Tiny) -> None:
    task = sparse_task()
    result = fit(task, tiny(epochs=6))
    assert result.history["all"].iloc[-1] > 0.8
    features = task.graph.features
    assert not isinstance(features, np.ndarray)
    assert fit(with_features(task, features.toarray()), tiny(epochs=6)).groups.tobytes() == (
        result.groups.tobytes()
    )


def test_features_in_double_precision_and_whole_numbers_train(tiny_task: Task, tiny: Tiny) -> None:
    exact = np.round(dense(tiny_task) * 4)
    single = fit(with_features(tiny_task, exact.astype(np.float32)), tiny())
    double = fit(with_features(tiny_task, exact.astype(np.float64)), tiny())
    assert single.snapshot.z.tobytes() == double.snapshot.z.tobytes()


def test_a_graph_without_edges_trains(tiny_task: Task, tiny: Tiny) -> None:
    graph = Graph.from_edges([], [], tiny_task.graph.features, directed=False)
    result = fit(replace(tiny_task, graph=graph), tiny())
    assert np.isfinite(result.snapshot.z).all()


@pytest.fixture
def user_task() -> Task:
    """A task as users have it: some labels known, no truth."""
    labelled = synthetic(120, 4, n_features=16, homophily=0.9, feature_noise=0.4, seed=1)
    known = np.where((labelled.labels < 3) & (np.arange(120) % 2 == 0), labelled.labels, -1)
    return LabelledGraph(labelled.graph, known, labelled.class_names).task(n_novel=1)


def test_a_task_without_truth_trains(user_task: Task, tiny: Tiny) -> None:
    result = fit(user_task, tiny())
    assert set(result.history.columns) == {"epoch", *LOSSES, "sc", "val_acc", *TIMES}
    assert result.classes().shape == (120,)
    assert set(result.classes().tolist()) <= {0, 1, 2, 3}


def test_without_validation_nodes_the_silhouette_chooses(user_task: Task, tiny: Tiny) -> None:
    merged = np.concatenate([user_task.train, user_task.val])
    task = replace(user_task, train=merged, val=user_task.val[:0])
    result = fit(task, tiny())
    assert result.history["val_acc"].isna().all()
    sc = result.history["sc"].tolist()
    assert result.best == max(range(3), key=lambda row: (sc[row], row))


def test_known_classes_keep_their_names(tiny_task: Task, tiny: Tiny) -> None:
    result = fit(tiny_task, tiny(epochs=6))
    assert tiny_task.truth is not None
    seen = tiny_task.truth < tiny_task.n_seen
    for row in (None, 0, 5):
        classes = result.classes(row)
        assert (classes == tiny_task.truth)[seen].mean() > 0.8
        assert (classes[~seen] >= tiny_task.n_seen).mean() > 0.8
    assert result.classes().tolist() == result.classes(result.best).tolist()


def test_naming_classes_does_not_look_at_the_truth(tiny_task: Task, tiny: Tiny) -> None:
    result = fit(tiny_task, tiny())
    assert tiny_task.truth is not None
    false = replace(tiny_task, truth=np.roll(tiny_task.truth, 17))
    for task in (false, replace(tiny_task, truth=None)):
        assert replace(result, task=task).classes().tolist() == result.classes().tolist()


def test_nothing_that_was_passed_is_changed(tiny_task: Task, tiny: Tiny) -> None:
    def arrays() -> list[bytes]:
        graph, task = tiny_task.graph, tiny_task
        parts: list[Any] = [graph.indptr, graph.sources, graph.features, task.labels]
        return [part.tobytes() for part in [*parts, task.train, task.val, task.test, task.truth]]

    before, recipe = arrays(), tiny()
    fit(tiny_task, recipe)
    assert arrays() == before
    assert recipe == tiny()


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_the_precision_of_the_process_is_left_as_it_was(
    tiny_task: Task, tiny: Tiny, precision: str
) -> None:
    before = torch.get_float32_matmul_precision()
    result = fit(tiny_task, tiny(precision=precision, epochs=6))
    assert torch.get_float32_matmul_precision() == before
    assert result.history["all"].iloc[-1] > 0.8


def test_features_that_overflow_end_in_one_clear_line(tiny_task: Task, tiny: Tiny) -> None:
    task = with_features(tiny_task, dense(tiny_task) * np.float32(1e30))
    with pytest.raises(InputError, match=r"synthetic-1: the loss became nan.*scale the features"):
        fit(task, tiny())


def test_weights_that_overflow_end_in_one_clear_line(tiny_task: Task, tiny: Tiny) -> None:
    """The only step of the epoch has a finite loss; what it leaves behind has none."""
    recipe = tiny(learning_rate=1e30, batch_size=120)
    with pytest.raises(InputError, match=r"epoch 1: the embeddings are not finite.*learning rate"):
        fit(tiny_task, recipe)


def test_features_without_content_train_without_a_warning(tiny_task: Task, tiny: Tiny) -> None:
    features = np.zeros_like(dense(tiny_task))
    result = fit(with_features(tiny_task, features), tiny())
    assert result.classes().shape == (120,)


@pytest.mark.parametrize(
    ("n_novel", "message"),
    [
        (None, "number of novel classes is not known yet.*pass n_novel"),
        (500, "120 rows cannot be put into 502 clusters.*lower n_novel"),
    ],
)
def test_impossible_numbers_of_classes_are_refused(
    tiny_task: Task, tiny: Tiny, n_novel: int | None, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        fit(replace(tiny_task, n_novel=n_novel), tiny())


@pytest.mark.parametrize("device", ["banana", "meta", "cuda:99"])
def test_a_device_that_cannot_be_used_is_refused(tiny_task: Task, tiny: Tiny, device: str) -> None:
    with pytest.raises(InputError, match=f"the device '{device}' cannot be used here"):
        fit(tiny_task, tiny(device=device))
