"""Which version of the code a row comes from: a hash of the files that decide on its numbers.

The files are those that the trainer and the parts of the recipe import, directly or not. So rows
of OpenIMA stay valid when another method is added, and become those of an older version when
the encoder changes. Comments, docstrings and blank lines do not count. Readers of data sets are
left out: rows hold a fingerprint of the data itself.
"""

from __future__ import annotations

import ast
import hashlib
import io
import tokenize
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

from openima.methods.base import Recipe

_ROOT = Path(__file__).resolve().parent.parent
_ALWAYS = ("openima.train.trainer",)
_WITHOUT_EFFECT = (
    "openima.errors",
    *(f"openima.train.{name}" for name in ("progress", "checkpoint", "memory", "prefetch")),
)


def code_version(recipe: Recipe) -> str:
    """Hash the code that a recipe's numbers depend on, to 12 hexadecimal digits."""
    return _version(frozenset(_ALWAYS) | _modules_of(recipe))


def result_modules(roots: frozenset[str]) -> dict[str, str]:
    """Return the code, without comments, of the given modules and all that they import."""
    found: dict[str, str] = {}
    waiting = sorted(roots)
    while waiting:
        name = waiting.pop()
        if name in found or name in _WITHOUT_EFFECT:
            continue
        source = _path(name).read_text(encoding="utf-8")
        tree = ast.parse(source)
        found[name] = _bare(source, tree)
        waiting += _imports(tree)
    return found


@cache
def _version(roots: frozenset[str]) -> str:
    digest = hashlib.sha256()
    for name, code in sorted(result_modules(roots).items()):
        digest.update(f"{name}\n{code}\n".encode())
    return digest.hexdigest()[:12]


def _modules_of(recipe: Recipe) -> frozenset[str]:
    """Name the modules that define the functions and the objects of a recipe."""
    modules: set[str] = set()

    def visit(part: Any) -> None:
        if is_dataclass(part):
            modules.add(type(part).__module__)
            for field in fields(part):
                visit(getattr(part, field.name))
        elif callable(part):
            modules.add(part.__module__)

    visit(recipe)
    return frozenset(name for name in modules if name.partition(".")[0] == "openima")


def _imports(tree: ast.Module) -> list[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            modules = {name for name in inner if _is_module(name)}
            names |= modules if len(modules) == len(inner) else modules | {node.module}
    return sorted(name for name in names if name.partition(".")[0] == "openima")


def _is_module(name: str) -> bool:
    if name.partition(".")[0] != "openima":
        return False
    path = _ROOT.joinpath(*name.split(".")[1:])
    return path.is_dir() or path.with_suffix(".py").is_file()


def _path(name: str) -> Path:
    path = _ROOT.joinpath(*name.split(".")[1:])
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _bare(source: str, tree: ast.Module) -> str:
    """Drop comments, lines that hold only a docstring, and blank lines."""
    lines = source.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            for row in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                lines[row - 1] = ""
    return "\n".join(line.rstrip() for line in lines if line.strip())
