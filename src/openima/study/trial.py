"""A trial: one method with one configuration on one split of one data set."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from openima.config import plain_settings, with_plain_settings
from openima.graph.datasets import find_dataset
from openima.methods import Recipe, get_recipe
from openima.study.version import code_version

NO_SETTINGS = ("seed", "device")
"""A trial names its seed itself, and may run anywhere."""


@dataclass(frozen=True, eq=False)
class Trial:
    """What is to be run. `changes` are settings other than the paper's for the data set."""

    dataset: str
    method: str
    seed: int
    changes: Mapping[str, Any] = field(default_factory=dict)

    def __reduce__(self) -> tuple[type[Trial], tuple[str, str, int, dict[str, Any]]]:
        """Hand over to another process what was asked for; it derives the rest itself."""
        return Trial, (self.dataset, self.method, self.seed, dict(self.changes))

    @cached_property
    def recipe(self) -> Recipe:
        """The recipe with all settings of the trial."""
        recipe = get_recipe(self.method).for_dataset(self.dataset)
        return with_plain_settings(recipe, dict(self.changes)).with_settings(seed=self.seed)

    @property
    def per_class(self) -> int:
        """How many training nodes each known class has."""
        return find_dataset(self.dataset).per_class

    @cached_property
    def settings(self) -> dict[str, Any]:
        """All settings by name, as plain values, defaults too."""
        settings = plain_settings(self.recipe)
        return {name: _plain(of) for name, of in settings.items() if name not in NO_SETTINGS}

    @cached_property
    def code(self) -> str:
        """The version of the code that this trial would run."""
        return code_version(self.recipe)

    @cached_property
    def id(self) -> str:
        """A name made of the trial's content, code included: equal only for equal trials."""
        content = {
            "dataset": self.dataset,
            "method": self.method,
            "seed": self.seed,
            "per_class": self.per_class,
            "settings": self.settings,
            "code": self.code,
        }
        return hashlib.sha256(canonical(content).encode()).hexdigest()[:20]

    @cached_property
    def training(self) -> str:
        """What decides on the training: trials in which it is equal differ in how they predict."""
        recipe = self.recipe
        parts = (
            recipe.objective,
            recipe.build_encoder,
            recipe.config,
            recipe.train,
            recipe.encoder,
        )
        return repr((self.dataset, self.seed, self.per_class, *parts))

    def __str__(self) -> str:
        """Name the trial to a reader."""
        changes = [f"{name} {value}" for name, value in self.changes.items()]
        return "  ".join([self.dataset, self.method, *changes, f"seed {self.seed}"])

    def wants(self, settings: Mapping[str, Any]) -> bool:
        """Say whether rows with these settings are rows of this trial, maybe of older code.

        A setting that older code did not have yet says nothing, unless the trial changes it.
        """
        common = self.settings.keys() & settings.keys()
        return all(self.settings[name] == settings[name] for name in common) and all(
            name in settings for name in self.changes
        )


def canonical(value: Any) -> str:
    """Write plain values as text, the same text for equal values."""
    return json.dumps(_plain(value), sort_keys=True, separators=(",", ":"))


def _plain(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value
