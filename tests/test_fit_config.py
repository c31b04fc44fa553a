from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from openima.errors import InputError
from openima.fit_config import FitConfig

FULL = FitConfig(
    graph="nodes.csv",
    method="orca",
    n_novel=3,
    seed=7,
    val_share=0.1,
    hide_classes=True,
    read={"edges": "edges.csv", "labels": 'a "quoted" column', "directed": True, "features": ["x"]},
    settings={"epochs": 4, "clustering": {"kind": "kmeans", "n_init": 2}, "batch_size": "none"},
)


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("config", [FULL, FitConfig()])
def test_what_is_written_is_read_again(config: FitConfig, tmp_path: Path) -> None:
    assert FitConfig.from_file(written(tmp_path / "c.toml", config.to_toml())) == config


def test_what_is_given_replaces_what_was() -> None:
    after = FULL.changed(
        n_novel=0, seed=None, method=None, read={"labels": "b"}, settings={"epochs": 9}
    )
    assert (after.n_novel, after.seed, after.method) == (0, 7, "orca")
    assert after.read == {**FULL.read, "labels": "b"}
    assert after.settings == {**FULL.settings, "epochs": 9}
    assert FULL.changed(read={}, settings={}) == FULL


def test_another_graph_does_not_keep_the_edges() -> None:
    after = FULL.changed(graph="other.npz", read={}, settings={})
    assert "edges" not in after.read
    assert after.read["labels"] == FULL.read["labels"]
    both = FULL.changed(graph="n.csv", read={"edges": "e.csv"}, settings={})
    assert both.read["edges"] == "e.csv"


def test_another_method_does_not_keep_the_settings() -> None:
    assert FULL.changed(method="openima", read={}, settings={"eta": 2.0}).settings == {"eta": 2.0}
    assert FULL.changed(method="orca", read={}, settings={}).settings == FULL.settings


def test_a_seed_among_the_settings_is_the_seed() -> None:
    by_setting = FULL.changed(read={}, settings={"seed": 3})
    assert by_setting.seed == 3
    assert by_setting.settings == FULL.settings
    assert FULL.changed(seed=5, read={}, settings={"seed": 3}).seed == 5


def test_the_classifier_has_all_of_it(tmp_path: Path) -> None:
    made = FULL.classifier(checkpoint=tmp_path / "c", progress=False)
    own = {"method": "orca", "n_novel": 3, "seed": 7, "val_share": 0.1, "hide_classes": True}
    assert made.get_params(deep=False) == {
        **own,
        **{"epochs": None, "settings": FULL.settings, "device": "auto"},
        **{"checkpoint": tmp_path / "c", "progress": False},
    }
    on_cpu = FULL.changed(read={}, settings={"device": "cpu"})
    assert on_cpu.classifier(checkpoint=tmp_path, progress=False).device == "cpu"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("novel = 2", r"unknown key 'novel'. Expected one of graph, method, n_novel, seed"),
        ("[read]\nlabel = 'x'", r"\[read\]: unknown key 'label'. Expected one of edges, labels"),
        ("n_novel = 1.5", "n_novel has a value of another kind. Expected a whole number. Got 1.5"),
        ("seed = true", "Expected a whole number. Got True"),
        ("val_share = 'x'", "Expected a number"),
        ("graph = 1", "Expected a text"),
        ("hide_classes = 1", "Expected true or false"),
        ("read = 'x'", "Expected a table"),
        ("read = {k = 'x'}", "k has a value of another kind. Expected a whole number"),
        ("read = {features = 1}", "Expected a text or a list"),
    ],
)
def test_what_is_not_known_is_refused(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        FitConfig.from_file(written(tmp_path / "c.toml", text))


@pytest.mark.parametrize("share", [1, 0.5])
def test_a_share_may_be_whole(share: Any, tmp_path: Path) -> None:
    path = written(tmp_path / "c.toml", f"val_share = {share}")
    assert FitConfig.from_file(path).val_share == share
