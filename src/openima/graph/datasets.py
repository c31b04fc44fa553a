"""The named data sets: where each one's raw files lie, where they come from, and who reads them.

To add one, add a record to `DATASETS`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from openima.errors import InputError
from openima.graph import ogb
from openima.graph.download import download, download_archive
from openima.graph.graph import Graph
from openima.graph.neighbours import knn_edges
from openima.graph.planetoid import read_planetoid
from openima.graph.readers.npz import read_npz
from openima.graph.task import LabelledGraph

DIGITS_NEIGHBOURS = 10
"""How many nearest images each image of `digits` is linked to (a link holds both ways)."""

_NPZ = "https://github.com/shchur/gnn-benchmark/raw/master/data/npz"
_PLANETOID = "https://github.com/kimiyoung/planetoid/raw/master/data"
_OGB = "https://snap.stanford.edu/ogb/data/nodeproppred"


@dataclass(frozen=True)
class Counts:
    """How large a graph is, as published."""

    nodes: int
    links: int
    features: int
    classes: int


@dataclass(frozen=True)
class Dataset:
    """One named data set.

    Its raw files lie at `root / folder / "raw" / file`, as in PyTorch Geometric; `files` gives
    the SHA-256 checksum of each, where known. `url` is where they are: each file under its own
    name, or, if `archive` names the top folder inside it, all in one zip file. `read` gets the
    path of the folder. `per_class` is how many nodes of each known class are for training, and
    as many for validation. `published` holds its counts in the paper, self-loops among the links;
    those of `digits` are its own. `images` makes a picture of each node, (N, height, width) of 0
    to 255, where nodes are pictures.
    """

    name: str
    read: Callable[[Path], LabelledGraph]
    published: Counts
    folder: str = ""
    files: Mapping[str, str | None] = field(default_factory=dict)
    url: str = ""
    archive: str | None = None
    per_class: int = 50
    images: Callable[[], NDArray[np.uint8]] | None = None


def load_dataset(name: str, root: str | Path | None = None) -> LabelledGraph:
    """Load a data set by name; raw files that are not under `root` are downloaded to there.

    `root` is the argument, else the environment variable OPENIMA_DATA, else `openima` in the
    user's cache folder. `dataset_names()` lists the names.
    """
    dataset = find_dataset(name)
    folder = data_root(root) / dataset.folder
    fetch(dataset, folder)
    loaded = dataset.read(folder)
    return replace(loaded, graph=replace(loaded.graph, name=dataset.name))


def dataset_names() -> tuple[str, ...]:
    """Return the names that `load_dataset` knows."""
    return tuple(DATASETS)


def is_dataset(name: object) -> bool:
    """Tell whether this is a name that `load_dataset` knows."""
    return isinstance(name, str) and _key(name) in DATASETS


def find_dataset(name: str) -> Dataset:
    """Return the record of a data set; capitals and underscores in the name do not matter."""
    key = _key(name)
    if key not in DATASETS:
        close = get_close_matches(key, DATASETS, n=1)
        raise InputError(
            f"there is no data set called {name!r}",
            expected="one of " + ", ".join(DATASETS),
            remedy=f"did you mean {close[0]!r}?" if close else "read_graph reads files of yours",
        )
    return DATASETS[key]


def _key(name: str) -> str:
    return name.strip().lower().replace("_", "-")


def data_root(root: str | Path | None = None) -> Path:
    """Return the folder of all raw files: the argument, else OPENIMA_DATA, else a cache folder."""
    chosen = root or os.environ.get("OPENIMA_DATA")
    if chosen:
        return Path(chosen).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "openima"


def missing_files(dataset: Dataset, folder: Path) -> list[str]:
    """Name the raw files that are not in `folder / "raw"`."""
    return [file for file in dataset.files if not (folder / "raw" / file).is_file()]


def fetch(dataset: Dataset, folder: Path) -> None:
    """Download the raw files that are not there."""
    missing = missing_files(dataset, folder)
    if missing and dataset.archive:
        download_archive(dataset.url, folder, top=dataset.archive, keep=("raw", "mapping"))
        return
    for file in missing:
        download(f"{dataset.url}/{file}", folder / "raw" / file, sha256=dataset.files[file])


def _read_digits(_folder: Path) -> LabelledGraph:
    """Link each of scikit-learn's 1,797 digit images to its nearest ones, by their pixels.

    The images come with scikit-learn, so that this data set needs neither files nor network.
    """
    digits = load_digits()
    pixels = (digits.data / 16).astype(np.float32)
    source, target = knn_edges(pixels, DIGITS_NEIGHBOURS)
    graph = Graph.from_edges(
        source,
        target,
        pixels,
        directed=False,
        feature_names=np.array([f"pixel_{r}_{c}" for r in range(8) for c in range(8)]),
    )
    return LabelledGraph(graph, digits.target.astype(np.int64), tuple("0123456789"))


def _digit_images() -> NDArray[np.uint8]:
    """Return the images of the digits, (1797, 8, 8)."""
    shades: NDArray[np.uint8] = np.rint(load_digits().images * (255 / 16)).astype(np.uint8)
    return shades


def _npz(name: str, folder: str, file: str, sha256: str, published: Counts) -> Dataset:
    def read(path: Path) -> LabelledGraph:
        return read_npz(path / "raw" / file)

    return Dataset(name, read, published, folder, {file: sha256}, _NPZ)


def _ogb(short: str, *, directed: bool, published: Counts) -> Dataset:
    name, folder = f"ogbn-{short}", f"ogbn_{short}"

    def read(path: Path) -> LabelledGraph:
        return ogb.read_ogb(path, directed=directed, name=name)

    files = dict.fromkeys(ogb.FILES)
    url = f"{_OGB}/{short}.zip"
    return Dataset(name, read, published, folder, files, url, archive=short, per_class=500)


_CITESEER_FILES = {
    "ind.citeseer.x": "d20de19150741e555de0ed037195630fc194114ebc7fd72ced62810148aa22f6",
    "ind.citeseer.tx": "539a8906a2da97628d212f2fdd668c109a8b3f0d36574b59e5d3fd5b5303da21",
    "ind.citeseer.allx": "2ac30345d95c9ec933a817ee0bdd6a5f077f8c184a20e696910192d534414668",
    "ind.citeseer.y": "8ba87e515d8e3ee3cf52f6d2c5b86aa73f11ecad825a808455209ec26cd54924",
    "ind.citeseer.ty": "55e5bd1ba1e733a04598753ad1a8d57957f4b8f89e74519f41f4f4938767e4ce",
    "ind.citeseer.ally": "f704b2d986dde6c2669934de1f3ae5696a6cf9455c0f6b2646a2d135ea0a1c95",
    "ind.citeseer.graph": "d79a4ef9d3e7169aee8946145f6b7306e35bc79bffad26346cfb94e10e9912a7",
    "ind.citeseer.test.index": "2af990671580b6b2df5d158d1038f8292e30c9cd821b5453f399659b25b723d4",
}

DATASETS: Mapping[str, Dataset] = {
    dataset.name: dataset
    for dataset in (
        Dataset(
            "citeseer",
            lambda path: read_planetoid(path / "raw"),
            Counts(3_327, 4_676, 3_703, 6),
            "CiteSeer",
            _CITESEER_FILES,
            _PLANETOID,
        ),
        _npz(
            "photo",
            "Photo",
            "amazon_electronics_photo.npz",
            "2b8d158fa1483bca508de5025cf31c17cf15e63600e294c547e6dc87f3189fe0",
            Counts(7_650, 119_082, 745, 8),
        ),
        _npz(
            "computers",
            "Computers",
            "amazon_electronics_computers.npz",
            "e3a78127c122ce4a6a1bd6effb2112ec2b0ad1f795f5bd98bee206772777ca5e",
            Counts(13_752, 245_861, 767, 10),
        ),
        _npz(
            "cs",
            "CS",
            "ms_academic_cs.npz",
            "2106494b01fb0a746716029e61de6cd2119ed15a5f23aec068cd60da7a4ef8f9",
            Counts(18_333, 81_894, 6_805, 15),
        ),
        _npz(
            "physics",
            "Physics",
            "ms_academic_phy.npz",
            "e65b5c66c2fbf21f7682640a9c3e18f330df68b683794f52247b67c982d2f68a",
            Counts(34_493, 247_962, 8_415, 5),
        ),
        _ogb("arxiv", directed=True, published=Counts(169_343, 1_166_243, 128, 40)),
        _ogb("products", directed=False, published=Counts(2_449_029, 61_859_140, 100, 47)),
        Dataset("digits", _read_digits, Counts(1_797, 12_340, 64, 10), images=_digit_images),
    )
}
"""Every named data set, in the order in which the paper has them; `digits` is an extra."""
