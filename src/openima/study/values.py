"""Values of a study file: which keys there are, and what kind of value each must have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from openima.errors import InputError


@dataclass(frozen=True)
class Kind:
    """What a value must be, in words, as it is written (KEY stands for its key), and as a test."""

    said: str
    written: str
    fits: Callable[[Any], bool]


def _are_names(value: Any) -> bool:
    are_texts = isinstance(value, list) and all(isinstance(name, str) for name in value)
    return are_texts and 0 < len(value) == len(set(value))


PLAIN = Kind("a text or a number", 'KEY = "…"', lambda v: isinstance(v, str | int | float))
TEXT = Kind("a text", 'KEY = "…"', lambda value: isinstance(value, str))
WHOLE = Kind("a whole number", "KEY = 1", lambda value: type(value) is int)
NUMBER = Kind("a number", "KEY = 61.5", lambda value: type(value) in (int, float))
NAMES = Kind("a list of different names", 'KEY = ["…", "…"]', _are_names)
VALUES = Kind("a list of values", "KEY = [1, 2]", lambda v: isinstance(v, list) and bool(v))
SETTINGS = Kind("a table", "KEY = { epochs = 20 }", lambda value: isinstance(value, dict))
TABLES = Kind(
    "a list of tables",
    "[[KEY]] above each",
    lambda value: isinstance(value, list) and all(isinstance(item, dict) for item in value),
)


def refuse_mistakes(values: Mapping[str, Any], kinds: Mapping[str, Kind], part: str = "") -> None:
    """Refuse keys that are not among `kinds`, and values of another kind than is said there.

    `part` says which part of the file they are from.
    """
    inside = f" in {part}" if part else ""
    for key, value in values.items():
        refuse_unknown("key", key, kinds, inside)
        kind = kinds[key]
        if not kind.fits(value):
            raise InputError(
                f"{key!r}{inside} is {kind.said}",
                expected=kind.written.replace("KEY", key),
                got=repr(value),
            )


def refuse_unknown(what: str, name: str, known: Iterable[str], inside: str = "") -> None:
    """Refuse a name that is none of those known."""
    names = list(known)
    if name not in names:
        close = get_close_matches(name, names, n=1)
        raise InputError(
            f"unknown {what} {name!r}{inside}",
            expected=f"one of {', '.join(names)}",
            remedy=f"did you mean {close[0]!r}?" if close else None,
        )
