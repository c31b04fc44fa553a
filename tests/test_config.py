from pathlib import Path
from typing import Any

import pytest

from openima.config import plain_settings, read_toml, to_toml, with_plain_settings
from openima.errors import InputError, OpenimaError
from openima.methods import get_recipe, recipes
from openima.predict.clustering import MiniBatchKMeansClustering, SphericalKMeansClustering
from openima.train.batching import EvenBatches


@pytest.mark.parametrize("name", sorted(recipes()))
def test_settings_survive_the_way_through_a_file(name: str, tmp_path: Path) -> None:
    recipe = get_recipe(name).with_settings(
        epochs=7,
        learning_rate=1e-5,
        fan_outs=(None, 3),
        clustering=MiniBatchKMeansClustering(n_init=3),
        batching=EvenBatches(),
    )
    file = tmp_path / "settings.toml"
    file.write_text(to_toml({"method": name, "settings": plain_settings(recipe)}), encoding="utf-8")
    read = read_toml(file)
    assert read["method"] == name
    assert with_plain_settings(get_recipe(name), read["settings"]) == recipe


def test_none_is_written_as_a_word() -> None:
    recipe = get_recipe("openima").with_settings(base_temperature=None, batch_size=None)
    plain = plain_settings(recipe)
    assert plain["base_temperature"] == plain["batch_size"] == "none"
    assert plain["fan_outs"] == ["none", "none"]
    assert with_plain_settings(get_recipe("openima"), plain) == recipe


def test_a_kind_alone_takes_the_defaults() -> None:
    recipe = with_plain_settings(get_recipe("openima"), {"clustering": "spherical-kmeans"})
    assert recipe.train.clustering == SphericalKMeansClustering()


def test_a_whole_number_stands_for_a_decimal_one() -> None:
    eta = with_plain_settings(get_recipe("openima"), {"eta": 20}).config.eta
    assert isinstance(eta, float)
    assert eta == 20.0


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"etta": 1.0}, "has no setting 'etta'.*Expected one of .*did you mean 'eta'"),
        ({"eta": "much"}, "setting eta.*something like 1.0. Got 'much'"),
        ({"epochs": 2.5}, "setting epochs.*Got 2.5"),
        ({"epochs": True}, "setting epochs.*Got True"),
        ({"warm_up": 1}, "setting warm_up.*something like True. Got 1"),
        ({"fan_outs": 3}, "setting fan_outs.*Got 3"),
        ({"eta": -1}, "eta cannot be negative"),
        ({"clustering": "means"}, "unknown kind of clustering. Expected kind is one of kmeans"),
        ({"clustering": {"n_init": 2}}, "unknown kind of clustering.*Got None"),
        ({"clustering": {"kind": "kmeans", "starts": 2}}, "'kmeans' has no setting 'starts'"),
        ({"batching": {"kind": "even", "x": 2}}, "'even' has no setting 'x'. Expected none"),
    ],
)
def test_values_without_a_meaning_are_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        with_plain_settings(get_recipe("openima"), values)


@pytest.mark.parametrize(
    "values",
    [
        {"a": 1, "b": [1, "two"], "c": {"d": True, "e": 1e-05}},
        {"text": 'quotes " and \\ and\nlines\tand é', "a key": "with a space", "f": float("inf")},
        {"inline": {"table": {"kind": "kmeans", "n": 1}}},
    ],
)
def test_what_is_written_is_read_again(values: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "file.toml"
    file.write_text(to_toml(values), encoding="utf-8")
    assert read_toml(file) == values


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "no such file"), (b"a = x\n", "cannot be read as TOML.*line 1"), (b"\xff", "as TOML")],
)
def test_a_file_without_toml_is_refused(
    content: bytes | None, message: str, tmp_path: Path
) -> None:
    file = tmp_path / "file.toml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(OpenimaError, match=message):
        read_toml(file)


def test_a_byte_order_mark_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "file.toml"
    file.write_bytes(b"\xef\xbb\xbfseed = 3\n")
    assert read_toml(file) == {"seed": 3}


def test_a_folder_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"this is a folder\. Remedy: pass the file in it"):
        read_toml(tmp_path)
