"""What was found, as columns of the AnnData that was fitted: where its users look for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from openima.config import plain_settings, to_toml
from openima.version import __version__

if TYPE_CHECKING:
    from openima.estimator import OpenWorldClassifier


def is_anndata(data: object) -> bool:
    """Tell an AnnData object, without importing its package."""
    return any(kind.__module__.partition(".")[0] == "anndata" for kind in type(data).__mro__)


def write_back(classifier: OpenWorldClassifier, data: Any) -> None:
    """Add to an AnnData of N observations what the classifier that was fitted on it found.

    - `obs`: `openima_label` (categorical), `openima_is_novel`, `openima_novelty` and
      `openima_confidence`;
    - `obsm["X_openima"]`: the embeddings (N, d), for `scanpy.pp.neighbors(use_rep=...)`;
    - `uns["openima"]`: the version, method, seed, classes and settings (as TOML).

    This is the one place where openima changes what a user passed, as tools for single cells do.
    What an earlier fit left under these names is replaced; all can be written to .h5ad.
    """
    model = classifier.fitted_.model
    data.obs["openima_label"] = pd.Categorical(classifier.labels_, categories=list(model.names))
    data.obs["openima_is_novel"] = classifier.is_novel_
    data.obs["openima_novelty"] = classifier.novelty_score_
    data.obs["openima_confidence"] = classifier.confidence_
    data.obsm["X_openima"] = classifier.embeddings_
    data.uns["openima"] = {
        "version": __version__,
        "method": model.recipe.name,
        "seed": classifier.seed,
        "classes": np.asarray(model.names, dtype=np.str_),
        "n_seen": model.n_seen,
        "settings": to_toml(plain_settings(model.recipe)),
    }
