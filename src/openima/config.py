"""Settings as plain values: what a TOML file, a study's rows and a saved model write down."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from openima.errors import InputError, MissingFileError
from openima.methods.base import Recipe
from openima.predict.clustering import CLUSTERINGS
from openima.train.batching import BATCHINGS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

NONE = "none"
"""Stands for None, which TOML does not have."""

_NAMED: dict[str, Mapping[str, type[Any]]] = {"clustering": CLUSTERINGS, "batching": BATCHINGS}
"""Settings that are objects: their classes by name, which `kind` tells."""


def read_toml(path: str | Path) -> dict[str, Any]:
    """Read a TOML file."""
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise MissingFileError(
            "there is no such file", where=str(path), remedy="check the path"
        ) from None
    except IsADirectoryError:
        raise InputError(
            "this is a folder", where=str(path), remedy="pass the file in it, such as config.toml"
        ) from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(
            "the file cannot be read as TOML",
            where=str(path),
            got=str(error),
            remedy="correct that line; texts need quotes, tables a [name]",
        ) from None


def toml_value(text: str) -> Any:
    """Read one value as TOML has it; what TOML does not know is a text."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def to_toml(values: Mapping[str, Any]) -> str:
    """Write plain values as TOML: first those at the top, then a table for each mapping."""
    lines = [f"{_key(k)} = {_value(v)}" for k, v in values.items() if not isinstance(v, Mapping)]
    for name, table in values.items():
        if isinstance(table, Mapping):
            lines += ["", f"[{_key(name)}]"]
            lines += [f"{_key(key)} = {_value(value)}" for key, value in table.items()]
    return "\n".join(lines) + "\n"


def plain_settings(recipe: Recipe) -> dict[str, Any]:
    """List every setting of a recipe as numbers, texts, lists and dictionaries."""
    return {
        field.name: _plain(field.name, getattr(part, field.name))
        for part in recipe.parts.values()
        for field in fields(part)
    }


def with_plain_settings(recipe: Recipe, values: Mapping[str, Any]) -> Recipe:
    """Change the settings of a recipe to plain values, as `plain_settings` lists them."""
    known = plain_settings(recipe)
    changes = {}
    for name, value in values.items():
        if name in known:
            _refuse_other_kind(name, value, known[name])
        number = isinstance(known.get(name), float) and isinstance(value, int)
        changes[name] = float(value) if number else _made(name, value)
    return recipe.with_settings(**changes)


def _plain(name: str, value: Any) -> Any:
    if value is None:
        return NONE
    if is_dataclass(value):
        kinds = {kind: made for made, kind in _NAMED[name].items()}
        settings = {f.name: _plain(f.name, getattr(value, f.name)) for f in fields(value)}
        return {"kind": kinds[type(value)], **settings}
    return [_plain(name, item) for item in value] if isinstance(value, tuple) else value


def _made(name: str, value: Any) -> Any:
    if name in _NAMED:
        return _made_object(name, value)
    if isinstance(value, list):
        return tuple(_made(name, item) for item in value)
    return None if value == NONE else value


def _made_object(name: str, value: Any) -> Any:
    kinds = _NAMED[name]
    settings = dict(value) if isinstance(value, Mapping) else {"kind": value}
    kind = settings.pop("kind", None)
    if kind not in kinds:
        raise InputError(
            f"unknown kind of {name}",
            expected=f"kind is one of {', '.join(kinds)}",
            got=repr(kind),
        )
    known = [field.name for field in fields(kinds[kind])]
    unknown = sorted(set(settings) - set(known))
    if unknown:
        raise InputError(
            f"the {name} {kind!r} has no setting {unknown[0]!r}",
            expected=f"one of {', '.join(known)}" if known else "none",
        )
    return kinds[kind](**{key: _made(key, item) for key, item in settings.items()})


def _refuse_other_kind(name: str, value: Any, example: Any) -> None:
    """Refuse a text where a number is known, and the like; NONE and settings by kind pass."""
    if name in _NAMED or NONE in (value, example):
        return
    if isinstance(example, float) and not isinstance(value, bool):
        fits = isinstance(value, int | float)
    else:
        fits = type(value) is type(example)
    if not fits:
        raise InputError(
            f"the setting {name} has a value of another kind",
            expected=f"something like {example!r}",
            got=repr(value),
        )


def _key(name: str) -> str:
    plain = name.replace("_", "").replace("-", "")
    return name if plain.isalnum() and plain.isascii() else _text(name)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + " }"
    return "[" + ", ".join(_value(item) for item in value) + "]"


def _text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    shown = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in escaped)
    return f'"{shown}"'
