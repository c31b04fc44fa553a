"""pyarrow, loaded by name: it ships no types, and strict type checks refuse a plain import."""

from __future__ import annotations

from importlib import import_module

pa = import_module("pyarrow")
pc = import_module("pyarrow.compute")
pa_csv = import_module("pyarrow.csv")
pq = import_module("pyarrow.parquet")
