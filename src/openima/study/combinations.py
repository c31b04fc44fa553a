"""The trials of a study file: combinations of data sets, methods, settings and seeds."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from openima.errors import InputError
from openima.graph.datasets import find_dataset
from openima.graph.task import PAPER_SEEDS
from openima.methods import get_recipe
from openima.study.trial import NO_SETTINGS, Trial
from openima.study.values import NAMES, SETTINGS, VALUES, Kind, refuse_mistakes

_KINDS: Mapping[str, Kind] = {
    **dict.fromkeys(("methods", "datasets"), NAMES),
    **dict.fromkeys(("settings", "grid"), SETTINGS),
    "seeds": Kind(
        "how many of the paper's seeds to take",
        f"1 to {len(PAPER_SEEDS)}",
        lambda value: type(value) is int and 1 <= value <= len(PAPER_SEEDS),
    ),
}


def combinations(blocks: Sequence[Mapping[str, Any]]) -> tuple[Trial, ...]:
    """Return the trials of all blocks `[[trials]]`, each trial once.

    The first seed of all blocks comes first, so that every table fills evenly.
    """
    by_seed = itertools.zip_longest(*(_block(block) for block in blocks), fillvalue=[])
    trials = itertools.chain.from_iterable(itertools.chain.from_iterable(by_seed))
    return tuple({trial.id: trial for trial in trials}.values())


def _block(block: Mapping[str, Any]) -> list[list[Trial]]:
    """Return the trials of a block by seed: every data set, method and point of the grid."""
    refuse_mistakes(block, _KINDS, "[[trials]]")
    for name in ("methods", "datasets"):
        if name not in block:
            raise InputError(f"trials need {name!r}", expected="a list of names")
    settings, grid = (block.get(name, {}) for name in ("settings", "grid"))
    refuse_mistakes(grid, dict.fromkeys(grid, VALUES), "grid")
    for name in NO_SETTINGS:
        if name in settings or name in grid:
            raise InputError(
                f"{name!r} is not set in a study file",
                remedy="`seeds` says how many seeds there are, --device where trials run",
            )
    datasets = [find_dataset(name).name for name in block["datasets"]]
    methods = [get_recipe(name).name for name in block["methods"]]
    points = [settings | point for point in _grid(grid)]
    return [
        [
            Trial(dataset, method, seed, point)
            for dataset, method, point in itertools.product(datasets, methods, points)
        ]
        for seed in PAPER_SEEDS[: block.get("seeds")]
    ]


def _grid(axes: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    for values in itertools.product(*axes.values()):
        yield dict(zip(axes, values, strict=True))
