from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import save_file

from openima.errors import InputError, MissingFileError
from openima.report.reading import read_run

Writer = Callable[..., Path]
FILES = ["predictions.parquet", "nodes.parquet", "classes.parquet", "history.parquet"]
FILES += ["embeddings.safetensors", "run.json", "images.npz"]


def test_reads_what_was_written(run_in: Writer) -> None:
    files = read_run(run_in(n=12, images=True))
    assert len(files.predictions) == len(files.nodes) == len(files.z) == 12
    assert files.images is not None
    assert files.images.shape == (12, 5, 4)
    assert files.novel.tolist() == [False, False, True, True]
    names = files.classes["class"].to_numpy()
    assert names[files.class_of].tolist() == files.predictions["label"].tolist()


@pytest.mark.parametrize("name", FILES)
def test_a_missing_or_damaged_file_is_named(run_in: Writer, name: str) -> None:
    directory = run_in(n=12, images=True)
    (directory / name).write_bytes(b"nonsense")
    with pytest.raises(InputError, match=rf"{name}: the file cannot be read"):
        read_run(directory)
    (directory / name).unlink()
    if name == "images.npz":
        assert read_run(directory).images is None
    else:
        with pytest.raises(MissingFileError, match=rf"{name}: the file is missing"):
            read_run(directory)


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match=r"openima fit --out"):
        read_run(tmp_path / "nowhere")
    (tmp_path / "file").touch()
    with pytest.raises(MissingFileError, match=r"openima fit --out"):
        read_run(tmp_path / "file")


def test_files_of_two_runs_do_not_mix(run_in: Writer) -> None:
    directory = run_in(n=12)
    save_file({"z": np.zeros((11, 8), dtype=np.float32)}, directory / "embeddings.safetensors")
    with pytest.raises(InputError, match=r"Expected 12 rows\. Got 11"):
        read_run(directory)


def test_a_class_without_a_row_is_an_error(run_in: Writer) -> None:
    directory = run_in(n=12)
    path = directory / "classes.parquet"
    pd.read_parquet(path).iloc[1:].to_parquet(path)
    with pytest.raises(InputError, match=r"does not have the class 'alpha'"):
        read_run(directory)


def test_a_missing_column_is_named(run_in: Writer) -> None:
    directory = run_in(n=12)
    path = directory / "predictions.parquet"
    pd.read_parquet(path).drop(columns="novelty").to_parquet(path)
    with pytest.raises(InputError, match=r"there is no column novelty"):
        read_run(directory)


def test_images_must_be_grey_pictures(run_in: Writer) -> None:
    directory = run_in(n=12)
    np.savez(directory / "images.npz", images=np.zeros((12, 4), dtype=np.uint8))
    with pytest.raises(InputError, match=r"images of type uint8 and shape \(12, 4\)"):
        read_run(directory)
