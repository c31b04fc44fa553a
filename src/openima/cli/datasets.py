"""`openima datasets`: which graphs can be asked for by name."""

from __future__ import annotations

from dataclasses import asdict

from openima.cli import options
from openima.cli.printing import Side, grid, show, show_json

_COLUMNS: dict[str, Side] = {
    **{"name": "left", "nodes": "right", "links": "right"},
    **{"features": "right", "classes": "right", "files": "left"},
}


def datasets(json: options.Json = False) -> None:
    """List the data sets by name, and whether their files are on disk or will be downloaded.

    They are kept in the folder that the environment variable OPENIMA_DATA names, else in
    ~/.cache/openima.
    """
    from openima.graph.datasets import DATASETS, data_root, missing_files

    here = {
        name: not missing_files(dataset, data_root() / dataset.folder)
        for name, dataset in DATASETS.items()
    }
    if json:
        records = [
            {"name": name, **asdict(dataset.published), "on_disk": here[name]}
            for name, dataset in DATASETS.items()
        ]
        show_json(records)
        return
    rows = [
        (
            name,
            *(f"{count:,}" for count in asdict(dataset.published).values()),
            "on disk" if here[name] else "to download",
        )
        for name, dataset in DATASETS.items()
    ]
    show(grid(_COLUMNS, rows))
