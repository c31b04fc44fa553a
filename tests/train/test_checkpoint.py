import json
import runpy
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from openima.errors import InputError
from openima.graph.task import Task
from openima.methods import Recipe
from openima.train import checkpoint as module
from openima.train.trainer import Run, TrainResult, train

Tiny = Callable[..., Recipe]
TIMES = ["seconds", "cpu_seconds", "cpu_seconds_steps"]


def fit(task: Task, recipe: Recipe, path: Path | None = None) -> TrainResult:
    return train(task, recipe, checkpoint=path, progress=False)


def header(path: Path) -> dict[str, Any]:
    with safe_open(path, framework="pt") as file:
        content: dict[str, Any] = json.loads(file.metadata()["run"])
    return content


def assert_same(one: TrainResult, other: TrainResult) -> None:
    """Equal to the byte in all but the times."""
    pd.testing.assert_frame_equal(
        one.history.drop(columns=TIMES), other.history.drop(columns=TIMES), check_exact=True
    )
    assert list(one.history.columns) == list(other.history.columns)
    assert one.groups.dtype == other.groups.dtype
    assert one.groups.tobytes() == other.groups.tobytes()
    assert one.snapshot.z.tobytes() == other.snapshot.z.tobytes()
    logits, others = one.snapshot.logits, other.snapshot.logits
    assert (logits is None) == (others is None)
    assert logits is None or others is None or logits.tobytes() == others.tobytes()
    for name in ("encoder", "objective"):
        left, right = getattr(one, name).state_dict(), getattr(other, name).state_dict()
        assert list(left) == list(right)
        assert all(left[key].numpy().tobytes() == right[key].numpy().tobytes() for key in left)
    assert one.best == other.best


@pytest.mark.parametrize("name", ["openima", "infonce", "infonce-supcon-ce"])
@pytest.mark.parametrize("stops", [[1], [3], [1, 2, 3]])
def test_an_interrupted_run_ends_like_an_uninterrupted_one(
    tiny_task: Task, tiny: Tiny, tmp_path: Path, name: str, stops: list[int]
) -> None:
    """Sampled neighbours and short batches draw from every generator that there is."""
    recipe = tiny(name, epochs=4, fan_outs=(4, 3), batch_size=50)
    path = tmp_path / "run.safetensors"
    for epochs in stops:
        fit(tiny_task, recipe.with_settings(epochs=epochs), path)
        assert header(path)["epoch"] == epochs
    assert_same(fit(tiny_task, recipe, path), fit(tiny_task, recipe))


def test_checkpoints_can_be_written_less_often(
    tiny_task: Task, tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, hours = tmp_path / "run.safetensors", iter(range(0, 3600 * 100, 3600))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(hours)))
    train(tiny_task, tiny(epochs=4), checkpoint=path, save_every=3 * 3600 - 1, progress=False)
    assert header(path)["epoch"] == 3  # looked at the clock at 0, then after epochs 1, 2, 3
    rest = tiny(epochs=4)
    assert_same(fit(tiny_task, rest, path), fit(tiny_task, rest))


JOB = """
import sys
import torch
from openima.graph.synthetic import synthetic
from openima.methods import get_recipe
from openima.train.trainer import train

task = synthetic(400, 4, n_features=16, seed=3).open_world_task(seed=1, per_class=20)
small = {"hidden": 16, "heads": 2, "batch_size": 100, "seed": 2, "device": "cpu"}
recipe = get_recipe("openima").with_settings(**small)

if __name__ == "__main__":
    torch.set_num_threads(int(sys.argv[2]))
    train(task, recipe.with_settings(epochs=2000), checkpoint=sys.argv[1], progress=False)
"""


def test_a_killed_process_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    job, path = tmp_path / "job.py", tmp_path / "run.safetensors"
    job.write_text(JOB)
    command = [sys.executable, str(job), str(path), str(torch.get_num_threads())]
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    try:
        deadline = time.monotonic() + 120
        while not path.exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
    finally:
        process.send_signal(signal.SIGKILL)
        _, errors = process.communicate()
    assert process.returncode == -signal.SIGKILL, errors.decode()
    done = header(path)["epoch"]
    assert 1 <= done < 1990
    names = runpy.run_path(str(job))
    recipe = names["recipe"].with_settings(epochs=done + 2)
    assert_same(fit(names["task"], recipe, path), fit(names["task"], recipe))


def test_a_finished_run_is_loaded_and_not_trained(
    tiny_task: Task, tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.safetensors"
    first = fit(tiny_task, tiny(), path)
    content = path.read_bytes()

    monkeypatch.setattr(Run, "one_epoch", None)
    again = fit(tiny_task, tiny(), path)
    assert_same(first, again)
    pd.testing.assert_frame_equal(first.history, again.history, check_exact=True)
    assert again.classes().tolist() == first.classes().tolist()
    assert path.read_bytes() == content


def test_a_finished_run_fills_its_bar(
    tiny_task: Task,
    tiny: Tiny,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for _ in range(2):
        train(tiny_task, tiny(), checkpoint=tmp_path / "run")
        out, err = capsys.readouterr()
        assert out == ""
        assert "100%" in err
        assert "6/6" in err


def test_folders_are_made_and_only_the_file_is_left(
    tiny_task: Task, tiny: Tiny, tmp_path: Path
) -> None:
    path = tmp_path / "a" / "b" / "run.safetensors"
    fit(tiny_task, tiny(), path)
    assert [p.name for p in path.parent.iterdir()] == [path.name]
    (tmp_path / "usual").touch()
    assert path.stat().st_mode == (tmp_path / "usual").stat().st_mode
    train(tiny_task, tiny(), checkpoint=str(path), progress=False)


def test_a_checkpoint_does_not_change_the_run(tiny_task: Task, tiny: Tiny, tmp_path: Path) -> None:
    assert_same(fit(tiny_task, tiny(), tmp_path / "run"), fit(tiny_task, tiny()))


def test_a_failed_write_leaves_the_old_file_and_no_other(
    tiny_task: Task, tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.safetensors"
    fit(tiny_task, tiny(epochs=1), path)
    content = path.read_bytes()

    def full_disk(tensors: Any, filename: Path, metadata: Any) -> None:
        assert tensors
        assert metadata
        filename.write_bytes(b"half of it")
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(module, "save_tensors", full_disk)
        with pytest.raises(OSError, match=r"no space left"):
            fit(tiny_task, tiny(), path)
    assert path.read_bytes() == content
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    assert_same(fit(tiny_task, tiny(), path), fit(tiny_task, tiny()))


def rolled(task: Task, part: str) -> Task:
    labels = task.labels.copy()
    nodes = getattr(task, part)
    labels[nodes] = np.roll(labels[nodes], 1)
    return replace(task, labels=labels)


def with_features(task: Task) -> Task:
    features = np.array(task.graph.features)
    features[5, 3] += 1.0
    return replace(task, graph=replace(task.graph, features=features))


def with_other_edges(task: Task) -> Task:
    sources = np.array(task.graph.sources)
    sources[0] = (sources[0] + 1) % 120
    return replace(task, graph=replace(task.graph, sources=sources))


OTHER_TASKS: dict[str, Callable[[Task], Task]] = {
    "train labels": lambda task: rolled(task, "train"),
    "val labels": lambda task: rolled(task, "val"),
    "features": with_features,
    "edges": with_other_edges,
    "classes": lambda task: replace(task, n_novel=3),
    "train nodes": lambda task: replace(task, train=task.train[1:]),
    "test nodes": lambda task: replace(task, test=task.test[1:]),
}


@pytest.mark.parametrize("name", OTHER_TASKS)
def test_another_task_is_refused(tiny_task: Task, tiny: Tiny, tmp_path: Path, name: str) -> None:
    path = tmp_path / "run.safetensors"
    fit(tiny_task, tiny("infonce", epochs=1), path)
    with pytest.raises(InputError, match=r"run.safetensors: the checkpoint is of another run"):
        fit(OTHER_TASKS[name](tiny_task), tiny("infonce"), path)


@pytest.mark.parametrize(
    "change",
    [{"seed": 1}, {"temperature": 0.2}, {"hidden": 8}, {"learning_rate": 0.02}, {"eta": 2.0}],
    ids=str,
)
def test_other_settings_are_refused(
    tiny_task: Task, tiny: Tiny, tmp_path: Path, change: dict[str, Any]
) -> None:
    path = tmp_path / "run.safetensors"
    fit(tiny_task, tiny(epochs=1), path)
    with pytest.raises(InputError, match=r"another run.*use another file for this run, or delete"):
        fit(tiny_task, tiny(**change), path)
    with pytest.raises(InputError, match=r"another run"):
        fit(tiny_task, tiny("openima-no-ce"), path)


def test_the_truth_does_not_tell_runs_apart(tiny_task: Task, tiny: Tiny, tmp_path: Path) -> None:
    """A run may go on without the truth; then only its later rows lack what needs the truth."""
    path = tmp_path / "run.safetensors"
    fit(tiny_task, tiny(epochs=1), path)
    history = fit(replace(tiny_task, truth=None), tiny(epochs=2), path).history
    assert history["all"].isna().tolist() == [False, True]


def test_fewer_epochs_than_are_done_are_refused(
    tiny_task: Task, tiny: Tiny, tmp_path: Path
) -> None:
    path = tmp_path / "run.safetensors"
    fit(tiny_task, tiny(epochs=3), path)
    with pytest.raises(InputError, match=r"further than this run.*at most 2 epochs. Got 3"):
        fit(tiny_task, tiny(epochs=2), path)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.1, 0.5, 0.999])
def test_a_file_cut_off_is_refused(
    tiny_task: Task, tiny: Tiny, tmp_path: Path, share: float
) -> None:
    path = tmp_path / "run.safetensors"
    fit(tiny_task, tiny(epochs=1), path)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(
        InputError, match=r"run.safetensors: this is no readable checkpoint.*delete"
    ):
        fit(tiny_task, tiny(), path)


@pytest.mark.parametrize("content", [b"", b"epoch,loss\n1,0.5\n", b"\x00" * 100, b"\xff" * 100])
def test_another_kind_of_file_is_refused(
    tiny_task: Task, tiny: Tiny, tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"notes.txt: this is no readable checkpoint"):
        fit(tiny_task, tiny(), path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("metadata", [None, {"run": "{}"}, {"run": "[]"}, {"run": "{"}])
def test_other_tensors_are_refused(
    tiny_task: Task, tiny: Tiny, tmp_path: Path, metadata: dict[str, str] | None
) -> None:
    path = tmp_path / "model.safetensors"
    save_file({"weight": torch.zeros(3)}, path, metadata=metadata)
    with pytest.raises(InputError, match=r"model.safetensors: this is no readable checkpoint"):
        fit(tiny_task, tiny(), path)


def test_another_format_is_refused(tiny_task: Task, tiny: Tiny, tmp_path: Path) -> None:
    path = tmp_path / "run.safetensors"
    fit(tiny_task, tiny(epochs=1), path)
    state = header(path) | {"format": 99}
    save_file(load_file(path), path, metadata={"run": json.dumps(state)})
    with pytest.raises(InputError, match=r"another format. Expected format 2. Got format 99"):
        fit(tiny_task, tiny(), path)


def test_a_run_of_another_kind_of_device_is_refused(
    tiny_task: Task, tiny: Tiny, tmp_path: Path
) -> None:
    """Of a GPU the file holds seed and offset, 16 bytes."""
    path = tmp_path / "run.safetensors"
    fit(tiny_task, tiny(epochs=1), path)
    tensors = load_file(path) | {"generator": torch.zeros(16, dtype=torch.uint8)}
    save_file(tensors, path, metadata={"run": json.dumps(header(path))})
    with pytest.raises(InputError, match=r"run.safetensors: .* another kind of device.*Got cpu"):
        fit(tiny_task, tiny(), path)


def test_a_folder_in_place_of_the_file_is_refused(
    tiny_task: Task, tiny: Tiny, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=r"the checkpoint is a file, and this is a folder"):
        fit(tiny_task, tiny(), tmp_path)


def test_a_file_in_place_of_the_folder_is_refused_before_training(
    tiny_task: Task, tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(Run, "one_epoch", None)
    with pytest.raises(InputError, match=r"the folder of the checkpoint cannot be made"):
        fit(tiny_task, tiny(), tmp_path / "file" / "run")


def test_the_file_holds_tensors_and_json_alone(tiny_task: Task, tiny: Tiny, tmp_path: Path) -> None:
    path = tmp_path / "run.safetensors"
    result = fit(tiny_task, tiny(), path)
    tensors, state = load_file(path), header(path)
    assert state["epoch"] == 3
    assert [row["epoch"] for row in state["rows"]] == [1, 2, 3]
    assert tensors["z"].numpy().tobytes() == result.snapshot.z.tobytes()
    assert tensors["groups"].shape == (3, 120)
    assert path.stat().st_size < 1_000_000
