import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load_file

from openima import OpenWorldClassifier
from openima.config import read_toml
from openima.errors import InputError
from openima.graph.task import Task
from openima.report.outputs import MARKER, refuse_directory, write_outputs

LEAST = {"hidden": 4, "heads": 1, "clustering": {"kind": "kmeans", "n_init": 1}}
FILES = {
    *("predictions.parquet", "predictions.csv", "nodes.parquet", "classes.parquet", "classes.csv"),
    *("embeddings.safetensors", "history.parquet", "history.csv", "config.toml", "run.json"),
    *("model", "report.html"),
}


@pytest.fixture(scope="module")
def fitted(tiny_task: Task) -> OpenWorldClassifier:
    made = OpenWorldClassifier(epochs=2, seed=3, settings=LEAST, device="cpu", progress=False)
    return made.fit(tiny_task)


@pytest.fixture(scope="module")
def out(fitted: OpenWorldClassifier, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("outputs") / "out"
    write_outputs(fitted, folder)
    return folder


def test_predictions_are_those_of_the_classifier(fitted: OpenWorldClassifier, out: Path) -> None:
    table = pd.read_parquet(out / "predictions.parquet")
    pd.testing.assert_frame_equal(table, fitted.predictions(), check_exact=True)
    pd.testing.assert_frame_equal(
        pd.read_csv(out / "predictions.csv", dtype=table.dtypes.to_dict()), table
    )


def test_nodes_tell_what_was_given_and_what_is_true(tiny_task: Task, out: Path) -> None:
    table = pd.read_parquet(out / "nodes.parquet")
    assert table.columns.tolist() == ["id", "given", "part", "truth"]
    names = [*tiny_task.class_names, *tiny_task.novel_names]
    assert tiny_task.truth is not None
    assert table["truth"].tolist() == [names[c] for c in tiny_task.truth]
    assert table["given"].tolist() == [names[c] if c >= 0 else None for c in tiny_task.labels]
    for part in ("train", "val", "test"):
        nodes = np.flatnonzero(table["part"] == part)
        assert nodes.tolist() == sorted(getattr(tiny_task, part))


def test_classes_are_written_with_their_lists(fitted: OpenWorldClassifier, out: Path) -> None:
    table = pd.read_parquet(out / "classes.parquet")
    assert table["class"].tolist() == fitted.classes_.tolist()
    assert [list(x) for x in table["exemplars"]] == fitted.classes_table_["exemplars"].tolist()
    plain = pd.read_csv(out / "classes.csv")
    assert plain.columns.tolist() == table.columns.tolist()
    joined = ["; ".join(map(str, ids)) for ids in fitted.classes_table_["exemplars"]]
    assert plain["exemplars"].tolist() == joined


def test_embeddings_and_history_are_complete(fitted: OpenWorldClassifier, out: Path) -> None:
    z = load_file(out / "embeddings.safetensors")["z"]
    assert z.tobytes() == fitted.embeddings_.tobytes()
    history = pd.read_parquet(out / "history.parquet")
    pd.testing.assert_frame_equal(history, fitted.history_)
    assert pd.read_csv(out / "history.csv")["chosen"].sum() == 1


def test_the_configuration_repeats_the_run(
    fitted: OpenWorldClassifier, out: Path, tiny_task: Task
) -> None:
    config = read_toml(out / "config.toml")
    assert config["graph"] == tiny_task.graph.name
    assert config["read"] == {}
    parameters = {k: config[k] for k in ("method", "n_novel", "seed", "val_share", "settings")}
    again = OpenWorldClassifier(**parameters, progress=False).fit(tiny_task)
    assert again.embeddings_.tobytes() == fitted.embeddings_.tobytes()
    assert again.labels_.tolist() == fitted.labels_.tolist()


def test_the_run_is_described(out: Path) -> None:
    run = json.loads((out / MARKER).read_text())
    assert run["graph"] == {
        "name": "synthetic-1",
        "nodes": 120,
        "links": 600,
        "features": 16,
        "directed": False,
    }
    assert (run["n_seen"], run["n_novel"], run["epochs"], run["seed"]) == (2, 2, 2, 3)
    assert run["chosen_epoch"] in (1, 2)


def test_the_model_is_in_it(fitted: OpenWorldClassifier, out: Path, tiny_task: Task) -> None:
    loaded = OpenWorldClassifier.load(out / "model")
    assert loaded.predict(tiny_task).tolist() == fitted.labels_.tolist()


def test_there_is_nothing_else(out: Path) -> None:
    assert {path.name for path in out.iterdir()} == FILES
    assert [path.name for path in out.parent.iterdir()] == ["out"]


def test_who_may_read_one_file_may_read_all(out: Path) -> None:
    modes = {path.name: path.stat().st_mode for path in out.rglob("*") if path.is_file()}
    assert modes == dict.fromkeys(modes, modes["run.json"])


def test_images_come_along(fitted: OpenWorldClassifier, tmp_path: Path) -> None:
    images = np.arange(120 * 4 * 3, dtype=np.uint8).reshape(120, 4, 3)
    write_outputs(fitted, tmp_path / "out", images=images)
    with np.load(tmp_path / "out" / "images.npz", allow_pickle=False) as file:
        np.testing.assert_array_equal(file["images"], images)
    for bad in (images[:5], images.astype(float), images[0]):
        with pytest.raises(InputError, match=r"images are one picture a node"):
            write_outputs(fitted, tmp_path / "other", images=bad)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_an_old_folder_is_replaced_with_force_only(
    fitted: OpenWorldClassifier, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    write_outputs(fitted, out)
    (out / "mine.txt").touch()
    for refused in (refuse_directory, lambda path: write_outputs(fitted, path)):
        with pytest.raises(InputError, match=r"there already.*--force"):
            refused(out)
    assert (out / "mine.txt").exists()
    refuse_directory(out, force=True)
    write_outputs(fitted, out, force=True)
    assert not (out / "mine.txt").exists()


def test_a_loaded_classifier_has_no_graph_to_write_of(out: Path, tmp_path: Path) -> None:
    loaded = OpenWorldClassifier.load(out / "model")
    with pytest.raises(InputError, match=r"does not have the graph"):
        write_outputs(loaded, tmp_path / "out")
