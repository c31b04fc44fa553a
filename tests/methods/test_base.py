from dataclasses import replace

import pytest
import torch

from openima.errors import InputError
from openima.graph.task import Task
from openima.methods import get_recipe, recipes
from openima.methods.base import Known, Recipe, register
from openima.predict.clustering import SphericalKMeansClustering

CONTRASTIVE_FAMILY = {
    "infonce",
    "infonce-supcon",
    "infonce-supcon-ce",
    "openima",
    "openima-no-embedding",
    "openima-no-logit",
    "openima-no-ce",
    "openima-only-ce",
    "openima-no-pseudo",
}

# shared settings of methods.md 4.1: temperature, pseudo share, learning rate, batch, epochs
OPENIMA_TABLE = {
    "citeseer": (1, 0.7, 0.25, 1e-3, 2048, 20),
    "photo": (10, 0.07, 0.75, 1e-2, 2048, 20),
    "computers": (10, 0.07, 0.75, 1e-2, 2048, 20),
    "cs": (1, 0.7, 0.75, 1e-4, 2048, 20),
    "physics": (10, 0.07, 0.75, 1e-3, 2048, 20),
    "ogbn-arxiv": (1, 0.7, 0.25, 1e-2, 4096, 20),
    "ogbn-products": (1, 0.7, 0.75, 1e-2, 4096, 10),
}
BASELINE_RATES = {
    "citeseer": 1e-3,
    "photo": 1e-3,
    "computers": 1e-3,
    "cs": 1e-4,
    "physics": 1e-2,
    "ogbn-arxiv": 1e-2,
    "ogbn-products": 1e-2,
}


def test_the_contrastive_family_is_there_under_its_names() -> None:
    assert set(recipes()) >= CONTRASTIVE_FAMILY
    assert all(recipe.name == name for name, recipe in recipes().items())
    assert len({recipe.title for recipe in recipes().values()}) == len(recipes())


def test_the_list_of_recipes_is_a_copy() -> None:
    recipes().clear()
    assert set(recipes()) >= CONTRASTIVE_FAMILY


def test_a_name_is_taken_once() -> None:
    with pytest.raises(ValueError, match="two recipes are called 'openima'"):
        register(get_recipe("openima"))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("openimma", "there is no method 'openimma'.*did you mean 'openima'"),
        ("infonce_supcon", "did you mean 'infonce-supcon'"),
        ("random forest", "Expected one of .*infonce, .*openima"),
    ],
)
def test_an_unknown_method_is_refused_with_the_nearest_name(name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        get_recipe(name)


def test_nothing_is_suggested_where_nothing_is_near() -> None:
    with pytest.raises(InputError) as caught:
        get_recipe("zzzzzz")
    assert "did you mean" not in str(caught.value)


def test_settings_reach_the_part_that_has_them() -> None:
    before = get_recipe("openima")
    after = before.with_settings(eta=3.0, seed=9, hidden=8, clustering=SphericalKMeansClustering())
    assert (after.config.eta, after.train.seed, after.encoder.hidden) == (3.0, 9, 8)
    assert after.train.clustering == SphericalKMeansClustering()
    assert after.config == replace(before.config, eta=3.0)
    assert before == get_recipe("openima")
    assert before.with_settings() == before


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("temprature", "openima has no setting 'temprature'.*did you mean 'temperature'"),
        ("lerning_rate", "did you mean 'learning_rate'"),
        ("supcon", "openima has no setting 'supcon'. Expected one of align_on, .*weight_decay"),
    ],
)
def test_an_unknown_setting_is_refused_with_the_nearest_name(setting: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        get_recipe("openima").with_settings(**{setting: 1.0})


@pytest.mark.parametrize("dataset", OPENIMA_TABLE)
@pytest.mark.parametrize("name", sorted(n for n in CONTRASTIVE_FAMILY if n.startswith("openima")))
def test_openima_has_the_settings_of_the_paper(name: str, dataset: str) -> None:
    recipe = get_recipe(name).for_dataset(dataset)
    eta, temperature, share, rate, batch, epochs = OPENIMA_TABLE[dataset]
    assert recipe.config.eta == eta
    assert recipe.config.temperature == temperature
    assert recipe.config.pseudo_share == (0.0 if name == "openima-no-pseudo" else share)
    train = recipe.train
    assert (train.learning_rate, train.batch_size, train.epochs) == (rate, batch, epochs)
    assert train.weight_decay == 1e-4


@pytest.mark.parametrize("dataset", OPENIMA_TABLE)
@pytest.mark.parametrize("name", sorted(n for n in CONTRASTIVE_FAMILY if n.startswith("infonce")))
def test_the_baselines_have_the_settings_of_the_paper(name: str, dataset: str) -> None:
    recipe = get_recipe(name).for_dataset(dataset)
    _, temperature, _, _, batch, epochs = OPENIMA_TABLE[dataset]
    assert recipe.config.temperature == temperature
    assert recipe.config.base_temperature == 0.07
    train = recipe.train
    assert (train.batch_size, train.epochs) == (batch, epochs)
    assert train.learning_rate == BASELINE_RATES[dataset]
    assert recipe.config.supcon == (0.0 if name == "infonce" else 1.0)
    assert recipe.config.ce == (1.0 if name == "infonce-supcon-ce" else 0.0)


def test_the_encoder_is_the_papers() -> None:
    encoder = get_recipe("openima").encoder
    assert (encoder.hidden, encoder.heads, encoder.negative_slope) == (128, 8, 0.2)
    assert (encoder.feature_dropout, encoder.attention_dropout) == (0.5, 0.5)


def test_other_data_sets_get_the_defaults() -> None:
    assert get_recipe("openima").for_dataset("my own graph") == get_recipe("openima")


def pinned(name: str) -> Recipe:
    return get_recipe("openima").variant(name, name.title(), pseudo_share=0.5, learning_rate=0.5)


def test_a_variant_holds_its_settings_on_every_data_set() -> None:
    before = get_recipe("openima")
    for recipe in (pinned("pinned"), pinned("pinned").for_dataset("photo")):
        assert (recipe.name, recipe.title) == ("pinned", "Pinned")
        assert (recipe.config.pseudo_share, recipe.train.learning_rate) == (0.5, 0.5)
    assert pinned("pinned").for_dataset("photo").config.eta == 10.0
    assert before.for_dataset("photo").config.pseudo_share == 0.75
    assert "pinned" not in recipes()


def test_training_may_know_labels_of_train_nodes_and_of_val_nodes_apart(tiny_task: Task) -> None:
    known = Known.of(tiny_task, torch.device("cpu"))
    task = tiny_task
    assert (known.n_seen, known.n_classes) == (2, 4)
    assert known.train.tolist() == task.train.tolist()
    assert known.labels[task.train].tolist() == task.labels[task.train].tolist()
    assert (known.labels >= 0).sum() == len(task.train)
    assert known.labels_with_val.tolist() == task.labels.tolist()
    assert (known.labels_with_val >= 0).sum() == len(task.train) + len(task.val)
    assert set(known.labels_with_val[task.test].tolist()) == {-1}
