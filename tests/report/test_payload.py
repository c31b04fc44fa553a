from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from openima.report import payload as module
from openima.report.payload import make_payload
from openima.report.reading import read_run

Writer = Callable[..., Path]


def unpacked(text: str, dtype: str) -> NDArray[Any]:
    return np.frombuffer(base64.b64decode(text), dtype)


def test_points_are_the_nodes(run_in: Writer) -> None:
    files = read_run(run_in(n=60))
    payload = make_payload(files)
    points = payload["points"]
    names = np.array([entry["name"] for entry in payload["classes"]])
    assert points["total"] == 60
    assert points["id"] == files.predictions["id"].tolist()
    assert names[unpacked(points["class"], "<i4")].tolist() == files.predictions["label"].tolist()
    for name in ("confidence", "novelty"):
        np.testing.assert_array_equal(unpacked(points[name], "<f4"), files.predictions[name])
    for name in ("given", "truth"):
        codes = unpacked(points[name], "<i4")
        values = [points[f"{name}_names"][code] if code >= 0 else None for code in codes]
        assert values == [None if pd.isna(value) else value for value in files.nodes[name]]
    json.dumps(payload, allow_nan=False)


def test_above_the_limit_a_sample_is_laid_out_and_the_rest_is_of_all(run_in: Writer) -> None:
    files = read_run(run_in(n=400, images=True))
    payload = make_payload(files, limit=100)
    shown = payload["points"]["id"]
    assert payload["points"]["total"] == 400
    assert len(shown) <= 100
    for entry in payload["classes"]:
        assert set(entry["exemplars"] + entry["borderline"]) <= set(shown)
    rows = files.predictions.set_index("id").index.get_indexer(shown)
    assert files.images is not None
    pixels = unpacked(payload["images"]["pixels"], "u1").reshape(-1, 5, 4)
    np.testing.assert_array_equal(pixels, files.images[rows])
    histogram = payload["histograms"]["novelty"]
    novel, score = files.predictions["is_novel"], files.predictions["novelty"]
    for kind, chosen in (("known", ~novel), ("novel", novel)):
        np.testing.assert_array_equal(histogram[kind], np.histogram(score[chosen], 25, (0, 1))[0])


def test_large_images_are_kept_for_the_table_alone(
    run_in: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = read_run(run_in(n=60, images=True))
    named = {
        node
        for column in ("exemplars", "borderline")
        for nodes in files.classes[column]
        for node in nodes
    }
    monkeypatch.setattr(module, "_MAX_IMAGE_BYTES", 20 * len(named))
    payload = make_payload(files)
    points = unpacked(payload["images"]["point"], "<i4")
    assert {payload["points"]["id"][i] for i in points} == named
    monkeypatch.setattr(module, "_MAX_IMAGE_BYTES", 20 * len(named) - 1)
    assert make_payload(files)["images"] is None


def test_scores_beyond_one_get_bins_of_their_own(run_in: Writer) -> None:
    directory = run_in(n=60)
    path = directory / "predictions.parquet"
    predictions = pd.read_parquet(path)
    predictions["novelty"] = np.linspace(-3, 9, 60, dtype=np.float32)
    predictions.loc[5, "novelty"] = np.nan
    predictions.to_parquet(path)
    histogram = make_payload(read_run(directory))["histograms"]["novelty"]
    assert (histogram["edges"][0], histogram["edges"][-1]) == (-3, 9)
    assert sum(histogram["known"]) + sum(histogram["novel"]) == 59


def test_history_names_the_chosen_epoch_and_leaves_gaps(run_in: Writer) -> None:
    history = make_payload(read_run(run_in()))["history"]
    assert history["chosen"] == 2
    assert "chosen" not in history["columns"]
    assert history["columns"]["epoch"] == [1, 2, 3, 4]
    assert history["columns"]["loss_ce"][0] is None
    assert all(value is not None for value in history["columns"]["loss_ce"][1:])


def test_an_empty_class_has_no_numbers(run_in: Writer) -> None:
    files = read_run(run_in(n=2, novel=("novel_1",), known=("alpha", "beta")))
    entry = make_payload(files)["classes"][2]
    assert (entry["size"], entry["cohesion"], entry["exemplars"]) == (0, None, [])
