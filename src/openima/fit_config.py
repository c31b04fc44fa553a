"""What a fit is asked for: on the command line, and in the file `config.toml` that repeats it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from inspect import signature
from pathlib import Path
from types import UnionType
from typing import Any

from openima.config import read_toml, to_toml
from openima.errors import InputError
from openima.estimator import OpenWorldClassifier
from openima.graph.readers import read_graph

_KINDS: dict[str, type | UnionType] = {
    "a text": str,
    "a whole number": int,
    "a number": int | float,
    "true or false": bool,
    "a table": dict,
    "a text or a list": str | list,
}
_OF_FIELDS = {
    **{"graph": "a text", "method": "a text", "n_novel": "a whole number"},
    **{"seed": "a whole number", "val_share": "a number", "hide_classes": "true or false"},
    **{"read": "a table", "settings": "a table"},
}
_OF_READING = {
    **{name: "a text" for name in signature(read_graph).parameters if name != "data"},
    **{"directed": "true or false", "k": "a whole number"},
    **{"features": "a text or a list", "words": "a table"},
}


@dataclass(frozen=True)
class FitConfig:
    """The graph and how to read it, the parameters of the classifier, the settings of the method.

    `graph` is a path, from where the command is run, or the name of a data set.
    """

    graph: str | None = None
    method: str = "openima"
    n_novel: int | None = None
    seed: int = 0
    val_share: float = 0.2
    hide_classes: bool = False
    read: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_file(cls, path: str | Path) -> FitConfig:
        """Read a TOML file; a key that is not known is an error that lists those that are."""
        values = read_toml(path)
        _check(values, _OF_FIELDS, str(path))
        _check(values.get("read", {}), _OF_READING, f"{path}, [read]")
        return cls(**values)

    def to_toml(self) -> str:
        """Write it as `from_file` reads it."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return to_toml({name: value for name, value in values.items() if value is not None})

    def changed(
        self, *, read: Mapping[str, Any], settings: Mapping[str, Any], **own: Any
    ) -> FitConfig:
        """Replace what is given, and keep what is None.

        Another graph does not keep the edges, and another method not the settings. A seed among
        the settings is the seed.
        """
        own = {name: value for name, value in own.items() if value is not None}
        other_graph, other_method = "graph" in own, own.get("method", self.method) != self.method
        kept = {k: v for k, v in self.read.items() if not (other_graph and k == "edges")}
        found = {**({} if other_method else self.settings), **settings}
        if "seed" in found:
            own = {"seed": found.pop("seed"), **own}
        given = {name: value for name, value in read.items() if value is not None}
        return replace(self, read={**kept, **given}, settings=found, **own)

    def classifier(self, *, checkpoint: Path, progress: bool) -> OpenWorldClassifier:
        """Make the classifier that is to be fitted."""
        return OpenWorldClassifier(
            self.method,
            n_novel=self.n_novel,
            seed=self.seed,
            val_share=self.val_share,
            hide_classes=self.hide_classes,
            settings=self.settings,
            device=self.settings.get("device", "auto"),
            checkpoint=checkpoint,
            progress=progress,
        )


def _check(values: Mapping[str, Any], known: Mapping[str, str], where: str) -> None:
    """Refuse keys that are not known, and values of another kind."""
    for name, value in values.items():
        if name not in known:
            raise InputError(
                f"unknown key {name!r}", where=where, expected=f"one of {', '.join(known)}"
            )
        kind = _KINDS[known[name]]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise InputError(
                f"{name} has a value of another kind",
                where=where,
                expected=known[name],
                got=repr(value),
            )
