"""AnnData: tables of cells, as objects and as .h5ad files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.decomposition import PCA, TruncatedSVD

from openima.errors import InputError
from openima.graph.neighbours import knn_edges
from openima.graph.readers.common import (
    assemble,
    damaged,
    existing_file,
    labels_from_names,
    listed,
    optional_package,
)
from openima.graph.task import UNKNOWN, LabelledGraph, Labels

_K = 15  # neighbours, as is usual for cells
_WIDEST = 50  # columns in which neighbours are looked for


def read_anndata(
    source: Any,
    *,
    labels: str | None = None,
    unknown: str | None = None,
    features: str | Sequence[str] | None = None,
    k: int | None = None,
) -> LabelledGraph:
    """Read an `AnnData`, or the path of a .h5ad file; the nodes are its observations.

    - `features`: `"X"` (the default) or a key of `obsm`, such as `"X_pca"`; dense or sparse, in
      the type they have.
    - The graph is undirected: `obsp["connectivities"]` with its weights if it is there. Else, or
      if `k` is given, every observation is linked to its `k` nearest ones by `features`
      (Euclidean; 15, or all others if there are fewer). In an X of more than 50 columns they are
      looked for among its 50 first principal components (truncated SVD if X is sparse).
    - `labels`: the column of `obs` with the classes. Without it all are unknown. A blank, NaN or
      the category `unknown` is unknown.
    """
    if features is not None and not isinstance(features, str):
        raise InputError(
            "the features of an AnnData are one matrix",
            expected="'X' or a key of obsm",
            got=f"features={features!r}",
            remedy="name one, such as features='X_pca'",
        )
    anndata = optional_package("anndata", "anndata")
    if isinstance(source, str | Path):
        path = existing_file(Path(source))
        where, name, data = str(path), path.stem, _read_file(anndata, path)
    else:
        where = name = type(source).__name__
        data = source.to_memory() if source.isbacked else source
    matrix = _features(data, features, where)
    sources, targets, weights = _edges(data, features, matrix, k, where)
    return assemble(
        sources,
        targets,
        matrix,
        _labels(data, labels, unknown, where),
        where=where,
        name=name,
        directed=False,
        weights=weights,
        node_ids=_names(data.obs_names, "observation", where),
        feature_names=np.asarray(data.var_names, dtype=np.str_) if _is_x(features) else None,
    )


def _read_file(anndata: Any, path: Path) -> Any:
    try:
        return anndata.read_h5ad(path)
    except Exception as error:  # whatever h5py and the decoders meet in a bad file
        raise damaged(path, ".h5ad", error) from error


def _is_sparse(matrix: Any) -> bool:
    return bool(sp.issparse(matrix))


def _is_x(features: str | None) -> bool:
    return features is None or features == "X"


def _features(data: Any, features: str | None, where: str) -> Any:
    """Take X or a member of obsm, an (N, D) matrix of numbers."""
    if not _is_x(features):
        if features not in data.obsm:
            raise InputError(
                f"there is no {features!r} in obsm",
                where=where,
                expected=f"X or one of {listed(list(data.obsm))}" if len(data.obsm) else "X",
                remedy=f"correct features={features!r}, or compute it first",
            )
        matrix = data.obsm[features]
    elif data.X is None:
        raise InputError(
            "X is empty",
            where=where,
            remedy=f"choose features from obsm: {listed(list(data.obsm)) or 'it is empty too'}",
        )
    else:
        matrix = data.X
    matrix = matrix.tocsr() if _is_sparse(matrix) else np.asarray(matrix)
    if matrix.dtype.kind not in "fiub":
        raise InputError(
            f"{features or 'X'} holds something that is not a number",
            where=where,
            got=f"type {matrix.dtype}",
            remedy="convert it, or choose other features",
        )
    return matrix


def _edges(
    data: Any, features: str | None, matrix: Any, k: int | None, where: str
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]:
    if k is None and "connectivities" in data.obsp:
        links = sp.coo_array(data.obsp["connectivities"])
        stored = links.data != 0
        return links.row[stored], links.col[stored], links.data[stored]
    n_nodes = matrix.shape[0]
    _refuse_nonfinite(matrix, f"{where}, {features or 'X'}")
    if _is_x(features) and matrix.shape[1] > _WIDEST:
        matrix = _reduced(matrix)
    points = matrix.toarray() if _is_sparse(matrix) else matrix
    if n_nodes < 2 and k is None:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), None
    return *knn_edges(points, min(_K, n_nodes - 1) if k is None else k), None


def _refuse_nonfinite(matrix: Any, where: str) -> None:
    values = matrix.data if _is_sparse(matrix) else matrix
    if not np.isfinite(values).all():
        raise InputError(
            "a value is NaN or infinite, so there are no distances to look for neighbours by",
            where=where,
            expected="finite numbers",
            remedy="fill in or drop missing values, or choose other features",
        )


def _reduced(matrix: Any) -> NDArray[Any]:
    """Project an (N, D) matrix to at most 50 columns that keep most of its variance."""
    method = TruncatedSVD if _is_sparse(matrix) else PCA
    if matrix.dtype.kind != "f":
        matrix = matrix.astype(np.float32)
    model = method(n_components=min(_WIDEST, matrix.shape[0]), random_state=0)
    points: NDArray[Any] = model.fit_transform(matrix)
    return points


def _labels(
    data: Any, labels: str | None, unknown: str | None, where: str
) -> tuple[Labels, tuple[str, ...]]:
    if labels is None:
        if unknown is not None:
            raise InputError(
                f"unknown={unknown!r} is the value of a label, and no column of labels is named",
                where=where,
                expected=f"labels= one of {listed(list(data.obs.columns))}",
                remedy="name the column of obs: labels=...",
            )
        return np.full(data.n_obs, UNKNOWN, dtype=np.int64), ()
    if labels not in data.obs:
        raise InputError(
            f"obs has no column {labels!r}",
            where=where,
            expected=f"one of {listed(list(data.obs.columns)) or 'none: obs has no columns'}",
            remedy=f"correct labels={labels!r}",
        )
    column = data.obs[labels]
    values = column.astype(object).where(column.notna(), None).tolist()
    return labels_from_names(values, f"{where}, obs[{labels!r}]", unknown)


def _names(names: Any, what: str, where: str) -> NDArray[np.str_]:
    if not names.is_unique:
        raise InputError(
            f"the {what} {names[names.duplicated()][0]!r} is there twice",
            where=where,
            expected="names that differ",
            remedy=f"make them differ: data.{what[:3]}_names_make_unique()",
        )
    return np.asarray(names, dtype=np.str_)
