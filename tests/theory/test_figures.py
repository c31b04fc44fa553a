from __future__ import annotations

from pathlib import Path

import numpy as np

from openima.theory import TwoGaussians, accuracies
from openima.theory.figures import ALPHAS, GAMMAS, draw, save_figure


def test_the_curves_are_the_accuracies() -> None:
    over_alpha, fixed_alpha, fixed_distance = draw().axes
    curves = [line for line in over_alpha.lines if not str(line.get_label()).startswith("_")]
    assert len(curves) == len(GAMMAS)
    for gamma, line in zip(GAMMAS, curves, strict=True):
        alpha, novel = (np.asarray(values) for values in line.get_data())
        np.testing.assert_array_equal(novel, accuracies(TwoGaussians.from_rates(gamma, alpha))[1])
    for axes in (fixed_alpha, fixed_distance):
        assert len(axes.lines) == len(ALPHAS)
    np.testing.assert_allclose(  # both readings begin at equal widths, where they agree
        [float(np.asarray(line.get_ydata())[-1]) for line in fixed_alpha.lines],
        [float(np.asarray(line.get_ydata())[-1]) for line in fixed_distance.lines],
    )


def test_files_are_the_same_bytes_every_time(tmp_path: Path) -> None:
    first, second = (save_figure(tmp_path / name) for name in ("one", "two"))
    assert [path.name for path in first] == ["theorem1.png", "theorem1.svg"]
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()
    assert first[0].read_bytes().startswith(b"\x89PNG")
