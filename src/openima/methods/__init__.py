"""All methods by name; importing a method's file registers its recipes."""

from __future__ import annotations

from difflib import get_close_matches

from openima.errors import InputError
from openima.methods import contrastive, oodgat, opencon, openima, openldn, openwgl, orca, simgcd
from openima.methods.base import Recipe, recipes

__all__ = [
    "PAPER_METHODS",
    "Recipe",
    "contrastive",
    "get_recipe",
    "oodgat",
    "opencon",
    "openima",
    "openldn",
    "openwgl",
    "orca",
    "recipes",
    "simgcd",
]


PAPER_METHODS = (
    *("oodgat", "openwgl", "orca-zm", "orca", "simgcd", "openldn", "opencon", "opencon-two-stage"),
    *("infonce", "infonce-supcon", "infonce-supcon-ce", "openima"),
)
"""The twelve methods of the paper's table, in its order; all others are parts of OpenIMA."""


def get_recipe(name: str) -> Recipe:
    """Return the recipe of that name."""
    known = recipes()
    if name not in known:
        close = get_close_matches(name, known, n=1)
        raise InputError(
            f"there is no method {name!r}",
            expected=f"one of {', '.join(sorted(known))}",
            remedy=f"did you mean {close[0]!r}?" if close else None,
        )
    return known[name]
