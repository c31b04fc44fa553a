import numpy as np
import pytest
import torch
from numpy.typing import ArrayLike

from openima.checks import as_ids, as_matrix
from openima.errors import InputError


def test_ids_of_any_integer_type_become_int64() -> None:
    for ids in ([3, 0], np.array([3, 0], dtype=np.uint8), np.asarray(torch.tensor([3, 0]))):
        found = as_ids(ids, "ids")
        assert found.dtype == np.int64
        assert found.tolist() == [3, 0]
    assert as_ids([], "ids", length=0).dtype == np.int64
    assert as_ids([-5], "ids", lowest=None).tolist() == [-5]


def test_a_matrix_keeps_its_precision_and_is_not_copied() -> None:
    z = np.ones((2, 3), dtype=np.float32)
    assert np.shares_memory(as_matrix(z, "z"), z)
    assert as_matrix(z, "z").dtype == np.float32
    assert as_matrix([[1, 2]], "z").dtype.kind == "i"


def test_ids_say_what_and_where() -> None:
    with pytest.raises(InputError) as caught:
        as_ids([0, 2, -3, -4], "clusters", length=4)
    assert str(caught.value) == (
        "clusters of row 2 is -3. Expected numbers from 0. "
        "Remedy: leave out nodes whose class is not known."
    )


@pytest.mark.parametrize("values", [5, [[1]], [0.5], ["a"], [None], [True], [[1], [1, 2]]])
def test_ids_that_are_no_list_of_whole_numbers(values: ArrayLike) -> None:
    with pytest.raises(InputError, match=r"^ids "):
        as_ids(values, "ids")


@pytest.mark.parametrize("values", [5, [1.0], [["a"]], [[1j]], [[True]], [[1], [1, 2]]])
def test_what_is_no_matrix_of_numbers(values: ArrayLike) -> None:
    with pytest.raises(InputError, match=r"^z "):
        as_matrix(values, "z")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite(value: float) -> None:
    with pytest.raises(InputError, match=r"^row 1 of z holds values that are not finite"):
        as_matrix([[0.0, 1.0], [0.0, value], [value, 0.0]], "z")


def test_rows_of_a_large_matrix_are_counted_from_its_start() -> None:
    z = np.zeros((200_000, 1), dtype=np.float32)
    z[150_000] = np.nan
    with pytest.raises(InputError, match="row 150,000 of z"):
        as_matrix(z, "z")
