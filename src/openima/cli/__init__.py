"""The command line: parse, call, print. One file a command; `app.py` puts them together."""

from openima.cli.app import app

__all__ = ["app"]
