"""openima: open-world semi-supervised node classification."""

from openima import allocator as allocator
from openima.errors import InputError, OpenimaError
from openima.estimator import OpenWorldClassifier
from openima.graph.datasets import dataset_names, load_dataset
from openima.graph.graph import Graph
from openima.graph.readers import read_graph
from openima.graph.synthetic import synthetic
from openima.graph.task import PAPER_SEEDS, LabelledGraph, Task, open_world_split
from openima.methods import Recipe, get_recipe, recipes
from openima.train.trainer import TrainResult, train
from openima.version import __version__

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
