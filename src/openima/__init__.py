"""openima: open-world semi-supervised node classification.

The public names are imported when they are first asked for, so that `openima --help` need not
wait for torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

import openima.train as _folder  # see below
from openima import threads as threads
from openima.version import __version__

if TYPE_CHECKING:
    from openima.errors import InputError, OpenimaError
    from openima.estimator import OpenWorldClassifier
    from openima.graph.datasets import dataset_names, load_dataset
    from openima.graph.graph import Graph
    from openima.graph.readers import read_graph
    from openima.graph.synthetic import synthetic
    from openima.graph.task import PAPER_SEEDS, LabelledGraph, Task, open_world_split
    from openima.methods import Recipe, get_recipe, recipes
    from openima.train.trainer import TrainResult, train

_HOMES = {
    "openima.errors": ("InputError", "OpenimaError"),
    "openima.estimator": ("OpenWorldClassifier",),
    "openima.graph.datasets": ("dataset_names", "load_dataset"),
    "openima.graph.graph": ("Graph",),
    "openima.graph.readers": ("read_graph",),
    "openima.graph.synthetic": ("synthetic",),
    "openima.graph.task": ("PAPER_SEEDS", "LabelledGraph", "Task", "open_world_split"),
    "openima.methods": ("Recipe", "get_recipe", "recipes"),
    "openima.train.trainer": ("TrainResult", "train"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "PAPER_SEEDS",
    "Graph",
    "InputError",
    "LabelledGraph",
    "OpenWorldClassifier",
    "OpenimaError",
    "Recipe",
    "Task",
    "TrainResult",
    "__version__",
    "dataset_names",
    "get_recipe",
    "load_dataset",
    "open_world_split",
    "read_graph",
    "recipes",
    "synthetic",
    "train",
]

# `openima.train` is the function. The folder of that name took its place when it was imported
# above; that happens once, so it will not do so again.
del train, _folder


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'openima' has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
