"""Fixtures of the report: a small folder such as a run leaves behind."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import save_file

Writer = Callable[..., Path]

KNOWN, NOVEL = ("alpha", "beta"), ("novel_1", "novel_2")


def ids_of(n: int) -> list[str]:
    return [f"node {i}" for i in range(n)]


def write_run(
    directory: Path,
    *,
    n: int = 80,
    known: Sequence[str] = KNOWN,
    novel: Sequence[str] = NOVEL,
    ids: Sequence[str | int] | None = None,
    features: Sequence[str] = ("wings", "legs"),
    truth: bool = True,
    images: bool = False,
    epochs: int = 4,
) -> Path:
    """Write the files that a page is made of: blobs, one a class, and some mistakes."""
    directory.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    names = [*known, *novel]
    centres = rng.normal(size=(len(names), 8))
    true = np.arange(n) % len(names)
    z = centres[true] + 0.2 * rng.normal(size=(n, 8))
    z = (z / np.linalg.norm(z, axis=1, keepdims=True)).astype(np.float32)
    found = np.where(rng.random(n) < 0.1, rng.integers(len(names), size=n), true)
    node_ids = np.asarray(ids_of(n) if ids is None else ids, dtype=object)
    label = np.asarray(names, dtype=object)[found]
    predictions = pd.DataFrame(
        {
            "id": node_ids,
            "label": label,
            "is_novel": found >= len(known),
            "confidence": rng.random(n, dtype=np.float32),
            "novelty": rng.random(n, dtype=np.float32),
        }
    )
    predictions.to_parquet(directory / "predictions.parquet")
    hidden = [*known, *(f"hidden {i}" for i in range(len(novel)))]
    part = np.where((true < len(known)) & (rng.random(n) < 0.4), "train", "test")
    nodes = pd.DataFrame({"id": node_ids, "given": pd.Series(label).where(part == "train")})
    nodes["part"] = part
    if truth:
        names_of_truth = pd.Series(np.asarray(hidden, object)[true])
        nodes["truth"] = names_of_truth.where(rng.random(n) < 0.9)
    nodes.to_parquet(directory / "nodes.parquet")
    _classes(predictions, nodes, names, len(known), list(features)).to_parquet(
        directory / "classes.parquet"
    )
    history = pd.DataFrame({"epoch": range(1, epochs + 1), "sc": rng.random(epochs)})
    history["loss_ce"] = [np.nan, *rng.random(epochs - 1)]
    history["chosen"] = np.arange(epochs) == epochs // 2
    if truth:
        history = history.assign(**{k: rng.random(epochs) for k in ("all", "seen", "novel")})
        history = history.assign(imbalance=1.2, separation=rng.random(epochs))
    history.to_parquet(directory / "history.parquet")
    save_file({"z": z}, directory / "embeddings.safetensors")
    graph = {"name": "animals", "nodes": n, "links": 3 * n, "features": 8}
    run = {"format": 1, "openima": "1.2.3", "title": "OpenIMA", "graph": graph, "seconds": 4.2}
    (directory / "run.json").write_text(json.dumps(run))
    if images:
        np.savez(directory / "images.npz", images=rng.integers(256, size=(n, 5, 4), dtype=np.uint8))
    return directory


def _classes(
    predictions: pd.DataFrame,
    nodes: pd.DataFrame,
    names: Sequence[str],
    n_known: int,
    features: list[str],
) -> pd.DataFrame:
    rows = []
    for k, name in enumerate(names):
        members = predictions["id"][predictions["label"] == name].tolist()
        rows.append(
            {
                "class": name,
                "status": "seen" if k < n_known else "novel",
                "size": len(members),
                "n_known": int((nodes["given"] == name).sum()),
                "cohesion": 0.5 + 0.01 * k if members else np.nan,
                "separation": 1.5 - 0.1 * k if members else np.nan,
                "nearest_known": names[0] if k >= n_known > 0 else None,
                "top_features": features if members else [],
                "exemplars": members[:3],
                "borderline": members[-2:],
            }
        )
    return pd.DataFrame(rows)


@pytest.fixture(scope="session")
def run_in(tmp_path_factory: pytest.TempPathFactory) -> Writer:
    """Return a function that writes the files of a run to a new folder: `run_in(n=5)`."""

    def write(**options: Any) -> Path:
        return write_run(tmp_path_factory.mktemp("run"), **options)

    return write
