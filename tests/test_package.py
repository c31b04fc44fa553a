"""The public names are there, whatever was imported before."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import openima


@pytest.mark.parametrize("name", openima.__all__)
def test_every_public_name_is_found_and_listed(name: str) -> None:
    assert getattr(openima, name) is not None
    assert name in dir(openima)


def test_other_names_are_not_there() -> None:
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        importlib.import_module("openima").__getattr__("trian")


@pytest.mark.parametrize("first", ["import openima", "from openima.train import trainer"])
def test_train_is_the_function_and_not_the_folder(first: str) -> None:
    program = f"{first}\nimport openima\nassert openima.train.__name__ == 'train'"
    subprocess.run([sys.executable, "-c", program], check=True)
