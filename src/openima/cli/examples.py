"""Examples at the end of a command's help."""

from __future__ import annotations

_FIT = """
openima fit nodes.csv edges.csv --labels field --novel 5 --out out
openima fit nodes.csv edges.csv --text abstract --unknown none --novel 3
openima fit cells.h5ad --labels cell_type --features X_pca --novel 4
openima fit citeseer --method simgcd --set hidden=64 --epochs 30
openima fit --config out/config.toml --seed 1 --out again
"""
_PREDICT = """
openima predict out new_nodes.csv new_edges.csv > classes.csv
openima predict out new_nodes.csv new_edges.csv --out classes.parquet
"""
_CODES = "Exit codes: 0 done, 1 failed, 2 bad usage or input, 130 interrupted."


def _epilog(examples: str) -> str:
    """Make a paragraph of each line, which the terminal leaves alone."""
    return "\n\n".join(["Examples:", *examples.strip().splitlines(), _CODES])


EXAMPLES = {
    "fit": _epilog(_FIT),
    "predict": _epilog(_PREDICT),
    "report": _epilog("openima report out"),
    "demo": _epilog("openima demo --out digits"),
}
"""The end of a command's help, by the name of the command."""
