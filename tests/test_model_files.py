import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load_file

from openima import OpenWorldClassifier, model_files
from openima.errors import InputError, MissingFileError
from openima.graph.graph import Graph
from openima.graph.task import Task
from openima.model_files import FORMAT, HEADER, TABLES, TENSORS

LEAST = {"hidden": 4, "heads": 1, "clustering": {"kind": "kmeans", "n_init": 1}}


@pytest.fixture(scope="module")
def fitted(tiny_task: Task) -> OpenWorldClassifier:
    classifier = OpenWorldClassifier(
        n_novel=2,
        epochs=2,
        settings=LEAST,
        device="cpu",
        checkpoint=None,
        progress=False,
    )
    return classifier.fit(tiny_task)


@pytest.fixture
def saved(fitted: OpenWorldClassifier, tmp_path: Path) -> Path:
    fitted.save(tmp_path / "model")
    return tmp_path / "model"


def test_what_is_loaded_says_the_same_to_the_byte(
    fitted: OpenWorldClassifier, saved: Path, tiny_task: Task
) -> None:
    loaded = OpenWorldClassifier.load(saved)
    assert loaded.get_params() == fitted.get_params()
    for data in (None, tiny_task):
        exact: dict[str, Any] = {"check_exact": True}
        pd.testing.assert_frame_equal(loaded.predictions(data), fitted.predictions(data), **exact)
        assert loaded.transform(data).tobytes() == fitted.transform(data).tobytes()
        assert loaded.predict_proba(data).tobytes() == fitted.predict_proba(data).tobytes()
        assert loaded.predict(data).tolist() == fitted.predict(data).tolist()
    for name in ("labels_", "classes_", "is_novel_", "confidence_", "novelty_score_"):
        assert getattr(loaded, name).tolist() == getattr(fitted, name).tolist()
        assert getattr(loaded, name).dtype == getattr(fitted, name).dtype
    assert loaded.n_features_in_ == fitted.n_features_in_
    pd.testing.assert_frame_equal(loaded.classes_table_, fitted.classes_table_, **exact)
    pd.testing.assert_frame_equal(loaded.history_, fitted.history_, **exact)
    assert isinstance(loaded.classes_table_["exemplars"][0][0], int)


def test_saving_what_was_loaded_gives_the_same_files(saved: Path, tmp_path: Path) -> None:
    OpenWorldClassifier.load(saved).save(tmp_path / "again")
    for path in saved.iterdir():
        assert (tmp_path / "again" / path.name).read_bytes() == path.read_bytes()


def test_what_was_loaded_can_be_fitted_anew(
    fitted: OpenWorldClassifier, saved: Path, tiny_task: Task
) -> None:
    again = OpenWorldClassifier.load(saved).fit(tiny_task)
    assert again.embeddings_.tobytes() == fitted.embeddings_.tobytes()


def test_ids_and_names_of_features_are_kept(tiny_task: Task, tmp_path: Path) -> None:
    x = np.asarray(tiny_task.graph.features)
    ids, names = (
        np.asarray([f"{a}{i}" for i in range(n)]) for a, n in zip("nf", x.shape, strict=True)
    )
    graph = Graph.from_edges([], [], x, directed=False, node_ids=ids, feature_names=names)
    classifier = OpenWorldClassifier(n_novel=2, epochs=1, settings=LEAST, progress=False)
    y = np.where(tiny_task.labels < 0, "", tiny_task.labels.astype(str))
    classifier.fit(graph, y).save(tmp_path / "model")
    loaded = OpenWorldClassifier.load(tmp_path / "model")
    assert loaded.predictions()["id"].tolist() == ids.tolist()
    turned = Graph.from_edges([], [], x[:, ::-1], directed=False, feature_names=names[::-1])
    assert loaded.transform(turned).tobytes() == classifier.embeddings_.tobytes()


def test_files_are_of_formats_that_run_nothing(saved: Path) -> None:
    assert sorted(path.name for path in saved.iterdir()) == sorted([HEADER, TENSORS, *TABLES])
    json.loads((saved / HEADER).read_text())
    assert "z" in load_file(saved / TENSORS)
    for name in TABLES:
        pd.read_parquet(saved / name)


def test_only_a_saved_model_is_replaced(fitted: OpenWorldClassifier, saved: Path) -> None:
    with pytest.raises(InputError, match=r"there already.*force=True"):
        fitted.save(saved)
    fitted.save(saved, force=True)
    OpenWorldClassifier.load(saved)


@pytest.mark.parametrize("name", [HEADER, TENSORS, *TABLES])
def test_a_missing_part_is_named(saved: Path, name: str) -> None:
    (saved / name).unlink()
    with pytest.raises((InputError, MissingFileError), match=name):
        OpenWorldClassifier.load(saved)


@pytest.mark.parametrize("name", [TENSORS, *TABLES])
@pytest.mark.parametrize("damage", ["cut", "flip"])
def test_a_damaged_part_is_named(saved: Path, name: str, damage: str) -> None:
    content = bytearray((saved / name).read_bytes())
    if damage == "cut":
        content = content[: len(content) // 2]
    else:
        content[len(content) // 2] ^= 1
    (saved / name).write_bytes(content)
    with pytest.raises(InputError, match=rf"{name}: the saved model is damaged"):
        OpenWorldClassifier.load(saved)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": FORMAT + 1}, "of a newer openima.*Got format 2, written by openima"),
        ({"format": 0}, "another format. Expected format 1. Got format 0"),
        ({"format": "x"}, "damaged"),
        ({"n_seen": 1}, "model.json: the saved model is damaged"),
        ({"classes": 3}, "model.json: the saved model is damaged"),
        ({"sha256": {}}, "model.json: the saved model is damaged"),
    ],
)
def test_a_header_that_does_not_fit_is_refused(
    saved: Path, change: dict[str, Any], message: str
) -> None:
    header = {**json.loads((saved / HEADER).read_text()), **change}
    (saved / HEADER).write_text(json.dumps(header))
    with pytest.raises(InputError, match=message):
        OpenWorldClassifier.load(saved)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": "nonesuch"}, "no method 'nonesuch'"),
        ({"n_features": 5}, "damaged.*size mismatch"),
    ],
)
def test_a_header_that_means_something_else_is_refused_in_one_line(
    saved: Path, change: dict[str, Any], message: str
) -> None:
    header = {**json.loads((saved / HEADER).read_text()), **change}
    header["seal"] = model_files._seal({k: v for k, v in header.items() if k != "seal"})
    (saved / HEADER).write_text(json.dumps(header))
    with pytest.raises(InputError, match=message) as caught:
        OpenWorldClassifier.load(saved)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b'{"format": 1}'])
def test_a_header_that_is_none_is_refused(saved: Path, content: bytes) -> None:
    (saved / HEADER).write_bytes(content)
    with pytest.raises(InputError, match=r"damaged"):
        OpenWorldClassifier.load(saved)


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(MissingFileError, match=r"no saved model.*with a file model.json"):
            OpenWorldClassifier.load(path)


def test_the_folder_of_a_run_has_the_model_in_it(fitted: OpenWorldClassifier, saved: Path) -> None:
    again = OpenWorldClassifier.load(saved.parent)
    assert again.labels_.tolist() == fitted.labels_.tolist()


def test_a_model_moves_to_the_device_that_is_asked_for(saved: Path) -> None:
    assert OpenWorldClassifier.load(saved, device="cpu").device == "cpu"
    with pytest.raises(InputError, match=r"the device 'tpu' cannot be used"):
        OpenWorldClassifier.load(saved, device="tpu")
