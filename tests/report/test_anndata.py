from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from openima import OpenWorldClassifier
from openima.config import read_toml, with_plain_settings
from openima.methods import get_recipe
from openima.report.anndata import is_anndata

anndata = pytest.importorskip("anndata")

LEAST = {"hidden": 4, "heads": 1, "clustering": {"kind": "kmeans", "n_init": 1}}


def cells(n: int = 60) -> Any:
    rng = np.random.default_rng(0)
    kind = np.arange(n) % 3
    x = (np.eye(3, 8)[kind] + 0.1 * rng.standard_normal((n, 8))).astype(np.float32)
    known = (kind < 2) & (rng.random(n) < 0.5)
    obs = pd.DataFrame({"type": [str(c) if k else None for c, k in zip(kind, known, strict=True)]})
    obs.index = pd.Index([f"cell {i}" for i in range(n)])
    return anndata.AnnData(x, obs=obs)


def fit(data: Any, **options: Any) -> OpenWorldClassifier:
    made = OpenWorldClassifier(n_novel=1, epochs=2, settings=LEAST, device="cpu", progress=False)
    return made.fit(data, **options)


@pytest.mark.filterwarnings("ignore::DeprecationWarning:anndata", "ignore::FutureWarning:anndata")
def test_what_was_found_is_written_into_the_cells(tmp_path: Path) -> None:
    data = cells()
    classifier = fit(data, labels="type")
    data.write_h5ad(tmp_path / "cells.h5ad")
    for found in (data, anndata.read_h5ad(tmp_path / "cells.h5ad")):
        assert found.obs["openima_label"].tolist() == classifier.labels_.tolist()
        assert found.obs["openima_label"].cat.categories.tolist() == ["0", "1", "novel_1"]
        assert found.obs["openima_is_novel"].tolist() == classifier.is_novel_.tolist()
        assert found.obs["openima_novelty"].tolist() == classifier.novelty_score_.tolist()
        assert found.obs["openima_confidence"].tolist() == classifier.confidence_.tolist()
        np.testing.assert_array_equal(found.obsm["X_openima"], classifier.embeddings_)
        told = found.uns["openima"]
        assert told["method"] == "openima"
        assert list(told["classes"]) == ["0", "1", "novel_1"]
        assert int(told["n_seen"]) == 2
    assert classifier.predictions()["id"].tolist() == data.obs_names.tolist()


def test_the_settings_can_be_read_back(tmp_path: Path) -> None:
    data = cells()
    recipe = fit(data, labels="type").result_.recipe
    (tmp_path / "settings.toml").write_text(data.uns["openima"]["settings"])
    values = read_toml(tmp_path / "settings.toml")
    assert with_plain_settings(get_recipe("openima"), values) == recipe


def test_a_second_fit_replaces_the_first() -> None:
    data = cells()
    fit(data, labels="type")
    again = fit(data, labels="type", k=5)
    assert again.n_features_in_ == 8
    np.testing.assert_array_equal(data.obsm["X_openima"], again.embeddings_)
    assert sum(name.startswith("openima") for name in data.obs) == 4


def test_predicting_changes_nothing() -> None:
    classifier, other = fit(cells(), labels="type"), cells()
    assert (classifier.predict(other) == classifier.labels_).all()
    assert list(other.obs) == ["type"]
    assert not other.uns
    assert not other.obsm


def test_only_anndata_is_taken_for_one() -> None:
    assert is_anndata(cells())
    assert not is_anndata(pd.DataFrame())
