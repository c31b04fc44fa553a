"""Reading arrays that a caller passes: wrong kinds, shapes and lengths end in one clear line."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from openima.errors import InputError

_ROWS = 1 << 16  # of a matrix that are looked at in one go


def as_ids(
    values: ArrayLike, what: str, *, length: int | None = None, lowest: int | None = 0
) -> NDArray[np.int64]:
    """Read a list of integer ids, shape (n,); `what` names it in errors.

    `length` is the number of ids there must be, `lowest` the smallest that is allowed.
    """
    array = _as_array(values, what)
    if array.size == 0 and array.ndim == 1:
        array = array.astype(np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InputError(
            f"{what} is a list of whole numbers, one a node",
            got=f"type {array.dtype} and shape {array.shape}",
        )
    if length is not None and len(array) != length:
        raise InputError(
            f"{what} does not fit the nodes",
            expected=f"{length:,} numbers",
            got=f"{len(array):,}",
        )
    if lowest is not None and array.size and array.min() < lowest:
        row = int(np.argmax(array < lowest))
        raise InputError(
            f"{what} of row {row:,} is {array[row]}",
            expected=f"numbers from {lowest}",
            remedy="leave out nodes whose class is not known",
        )
    return array.astype(np.int64, copy=False)


def as_matrix(values: ArrayLike, what: str) -> NDArray[Any]:
    """Read a finite real matrix, shape (n, d), one row a node; floats keep their precision."""
    array = _as_array(values, what)
    if array.ndim != 2 or array.dtype.kind not in "fiu":
        raise InputError(
            f"{what} is a matrix of numbers, one row a node",
            got=f"type {array.dtype} and shape {array.shape}",
        )
    for start in range(0, len(array), _ROWS):
        finite = np.isfinite(array[start : start + _ROWS]).all(axis=1)
        if not finite.all():
            row = start + int(np.argmin(finite))
            raise InputError(
                f"row {row:,} of {what} holds values that are not finite",
                expected="finite numbers",
                remedy="lower the learning rate if they come from training",
            )
    return array


def _as_array(values: ArrayLike, what: str) -> NDArray[Any]:
    try:
        return np.asarray(values)
    except (RuntimeError, TypeError, ValueError) as error:
        raise InputError(
            f"{what} cannot be read as an array",
            got=f"{type(values).__name__} ({error})",
            remedy="pass a numpy array; of a tensor, .detach().cpu().float().numpy()",
        ) from error
