from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from openima.report.palette import DARK, LIGHT, palette

# Machado, Oliveira and Fernandes 2009: linear RGB as seen without one kind of cone.
SIGHT = {
    "normal": np.eye(3),
    "no red": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "no green": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "no blue": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}
NOTICEABLE = 15
"""CIELAB distance; 2 is a just noticeable difference of two large patches side by side."""


def linear(colour: str) -> NDArray[np.float64]:
    values = np.array(list(bytes.fromhex(colour[1:]))) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def luminance(colour: str) -> float:
    return float(linear(colour) @ [0.2126, 0.7152, 0.0722])


def cielab(rgb: NDArray[np.float64]) -> NDArray[np.float64]:
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    x, y, z = np.cbrt(np.array(to_xyz) @ rgb.clip(1e-4, 1) / [0.9505, 1, 1.089])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_any_two_colours_differ_for_every_kind_of_sight(
    colours: tuple[str, ...], sight: str
) -> None:
    seen = [cielab(np.asarray(SIGHT[sight]) @ linear(colour)) for colour in colours]
    least = min(np.linalg.norm(a - b) for a, b in combinations(seen, 2))
    assert least > NOTICEABLE


def test_every_colour_stands_out_from_its_page() -> None:
    for colour in LIGHT:
        assert 1.05 / (luminance(colour) + 0.05) > 1.9
    for colour in DARK:
        assert (luminance(colour) + 0.05) / 0.06 > 3


def test_thirty_classes_have_colours_of_their_own() -> None:
    pairs = palette(33)
    assert len({light for light, _ in pairs}) == len({dark for _, dark in pairs}) == 30
    assert pairs[:10] == list(zip(LIGHT, DARK, strict=True))
    assert pairs[30:] == pairs[:3]
