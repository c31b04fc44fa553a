"""Fitted classifiers on disk: a folder of safetensors, Parquet and JSON, nothing that can run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from safetensors.torch import load_file
from torch import Tensor

from openima.config import plain_settings, with_plain_settings
from openima.errors import InputError, MissingFileError
from openima.files import complete_folder
from openima.fitted import Fitted
from openima.methods import get_recipe
from openima.methods.base import Known, Recipe
from openima.model import Answer, Model
from openima.predict.membership import Membership
from openima.tensors import save_tensors
from openima.train.device import pick_device
from openima.train.learned import Learned, Look
from openima.version import __version__

FORMAT = 1
HEADER, TENSORS = "model.json", "model.safetensors"
TABLES = ("nodes.parquet", "features.parquet", "classes.parquet", "history.parquet")
_NUMBERS = ("temperature", "threshold", "spread")
_LISTS = ("top_features", "exemplars", "borderline")


def save_fitted(path: Path, fitted: Fitted, parameters: Mapping[str, Any], *, force: bool) -> None:
    """Write a folder with the fitted classifier and the parameters of its constructor."""
    model = fitted.model
    with complete_folder(path, force=force, marker=HEADER) as folder:
        save_tensors(_tensors_of(fitted), folder / TENSORS)
        for name, table in zip(TABLES, _tables_of(fitted), strict=True):
            table.to_parquet(folder / name, index=False)
        header = {
            "format": FORMAT,
            "openima": __version__,
            "parameters": dict(parameters),
            "method": model.recipe.name,
            "settings": plain_settings(model.recipe),
            "classes": list(model.names),
            "n_seen": model.n_seen,
            "n_features": model.n_features,
            "membership": {k: getattr(model.membership, k) for k in _NUMBERS},
            "source": fitted.source,
            "sha256": {name: _digest(folder / name) for name in (TENSORS, *TABLES)},
        }
        text = json.dumps({**header, "seal": _seal(header)}, indent=2, default=_plain)
        (folder / HEADER).write_text(text + "\n", encoding="utf-8")


def load_fitted(path: Path, device: str | None) -> tuple[Fitted, dict[str, Any]]:
    """Read what `save_fitted` wrote: the fitted classifier and its constructor's parameters.

    `device` is where the model goes, if not where it was trained. The folder of a run, which has
    the model in it, will do too.
    """
    path = path / "model" if (path / "model").is_dir() else path
    header = _checked_header(path)
    try:
        tensors = load_file(path / TENSORS)
        tables = [pd.read_parquet(path / name) for name in TABLES]
        parameters = dict(header["parameters"])
        if device is not None:
            parameters["device"] = device
            header["settings"]["device"] = device
        recipe = with_plain_settings(get_recipe(header["method"]), header["settings"])
        return _fitted(recipe, header, tensors, *tables), parameters
    except InputError:
        raise
    except Exception as error:  # whatever the readers of the files meet in a bad one
        raise _damaged(path, f"{type(error).__name__}: {error}") from error


def _tensors_of(fitted: Fitted) -> dict[str, Tensor]:
    model, look = fitted.model, fitted.look
    arrays = {
        "groups": model.groups,
        "train": fitted.train,
        "z": look.z,
        "logits": look.logits,
        "novelty": look.novelty,
        "centres": model.membership.centres,
        "weights": fitted.weights,
    }
    tensors = {k: torch.from_numpy(v) for k, v in arrays.items() if v is not None}
    return tensors | model.learned.state()


def _tables_of(fitted: Fitted) -> tuple[pd.DataFrame, ...]:
    answer, names = fitted.answer, fitted.model.feature_names
    nodes = pd.DataFrame({"id": fitted.ids, "label": fitted.labels, **vars(answer)})
    features = pd.DataFrame({"name": [] if names is None else names.tolist()}, dtype=object)
    return nodes, features, fitted.classes, fitted.history


def _fitted(
    recipe: Recipe,
    header: dict[str, Any],
    tensors: dict[str, Tensor],
    nodes: pd.DataFrame,
    features: pd.DataFrame,
    classes: pd.DataFrame,
    history: pd.DataFrame,
) -> Fitted:
    arrays = {k: v.numpy() for k, v in tensors.items() if "." not in k}
    names, labels = tuple(header["classes"]), nodes["label"].to_numpy()
    device = pick_device(recipe.train.device)
    known = Known.from_labels(labels, arrays["train"], header["n_seen"], len(names), device)
    model = Model(
        recipe=recipe,
        learned=Learned.restored(recipe, known, header["n_features"], tensors),
        membership=Membership(arrays.get("centres"), **header["membership"]),
        groups=arrays["groups"],
        names=names,
        n_seen=header["n_seen"],
        n_features=header["n_features"],
        feature_names=features["name"].to_numpy().astype(np.str_) if len(features) else None,
    )
    columns = ("classes", "confidence", "novelty", "margin")
    return Fitted(
        model=model,
        look=Look(arrays["z"], arrays.get("logits"), arrays.get("novelty")),
        answer=Answer(*(nodes[column].to_numpy() for column in columns)),
        ids=nodes["id"].to_numpy(),
        labels=labels,
        train=arrays["train"],
        classes=classes.assign(
            **{column: classes[column].map(lambda items: items.tolist()) for column in _LISTS}
        ),
        history=history,
        source=header["source"],
        weights=arrays.get("weights"),
    )


def _checked_header(path: Path) -> dict[str, Any]:
    """Read the header and compare the files with what it says of them."""
    if not (path / HEADER).is_file():
        raise MissingFileError(
            "there is no saved model",
            where=str(path),
            expected=f"a folder with a file {HEADER}, as OpenWorldClassifier.save writes",
            remedy="check the path",
        )
    try:
        header: dict[str, Any] = json.loads((path / HEADER).read_text(encoding="utf-8"))
        found = int(header["format"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _damaged(path / HEADER, f"{type(error).__name__}: {error}") from None
    if found != FORMAT:
        raise InputError(
            "the model has another format" + (", of a newer openima" if found > FORMAT else ""),
            where=str(path),
            expected=f"format {FORMAT}",
            got=f"format {found}, written by openima {header.get('openima')}",
            remedy="install that version of openima, or fit again",
        )
    if header.pop("seal", None) != _seal(header):
        raise _damaged(path / HEADER, "its content is not what was saved")
    for name in (TENSORS, *TABLES):
        if not (path / name).is_file():
            raise _damaged(path / name, "the file is missing")
        if _digest(path / name) != header["sha256"][name]:
            raise _damaged(path / name, "its content is not what was saved")
    return header


def _damaged(path: Path, problem: str) -> InputError:
    return InputError(
        "the saved model is damaged",
        where=str(path),
        got=problem,
        remedy="copy the whole folder again, or fit again",
    )


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _seal(header: Mapping[str, Any]) -> str:
    """Return the digest of a header, by which a change to it shows."""
    text = json.dumps(header, sort_keys=True, default=_plain)
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(value: Any) -> Any:
    """Write numpy's numbers as numbers and paths as text."""
    return value.item() if isinstance(value, np.generic) else str(value)
