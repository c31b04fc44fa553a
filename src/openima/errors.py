"""Errors a user can act on: each says what is wrong, where, what was expected, and the remedy."""

from __future__ import annotations


class OpenimaError(Exception):
    """Base of every error that openima raises on purpose; its message is one line."""

    def __init__(
        self,
        what: str,
        *,
        where: str | None = None,
        expected: str | None = None,
        got: str | None = None,
        remedy: str | None = None,
    ) -> None:
        """Compose the line `where: what. Expected …. Got …. Remedy: ….` from the parts given."""
        sentences = [f"{where}: {what}" if where else what]
        if expected:
            sentences.append(f"Expected {expected}")
        if got:
            sentences.append(f"Got {got}")
        if remedy:
            sentences.append(f"Remedy: {remedy}")
        super().__init__(" ".join(" ".join(map(_ended, sentences)).split()))


def _ended(sentence: str) -> str:
    """End a sentence with one full stop, unless a question or an ellipsis ends it."""
    sentence = sentence.rstrip()
    return sentence if sentence.endswith(("?", "...")) else f"{sentence.rstrip('. ')}."


class InputError(OpenimaError, ValueError):
    """The data or an option that the user passed cannot be used."""


class MissingFileError(OpenimaError, FileNotFoundError):
    """A file that is needed is not there."""


class DownloadError(OpenimaError, OSError):
    """A data set is not on disk and could not be downloaded."""


class MissingPackageError(OpenimaError, ImportError):
    """An optional package is needed for this call and is not installed."""
