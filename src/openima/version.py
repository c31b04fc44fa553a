"""The version of openima, which saved models and outputs name."""

__version__ = "0.1.0"
