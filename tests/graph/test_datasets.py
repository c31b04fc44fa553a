from __future__ import annotations

import gzip
import hashlib
import json
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from openima.errors import DownloadError, InputError
from openima.graph import datasets
from openima.graph.datasets import (
    DATASETS,
    data_root,
    dataset_names,
    fetch,
    find_dataset,
    load_dataset,
)

ON_DISK = ("citeseer", "photo", "computers", "cs", "physics")


def test_the_names() -> None:
    assert dataset_names() == (*ON_DISK, "ogbn-arxiv", "ogbn-products", "digits")


@pytest.mark.parametrize("name", ["Citeseer", " citeseer ", "CITESEER"])
def test_capitals_do_not_matter(name: str) -> None:
    assert find_dataset(name) is DATASETS["citeseer"]


def test_underscores_do_not_matter() -> None:
    assert find_dataset("ogbn_arxiv") is DATASETS["ogbn-arxiv"]


@pytest.mark.parametrize(
    ("name", "close"), [("photos", "photo"), ("cite-seer", "citeseer"), ("arxiv", "ogbn-arxiv")]
)
def test_an_unknown_name_gets_the_closest_one_and_the_list(name: str, close: str) -> None:
    with pytest.raises(InputError) as caught:
        load_dataset(name)
    assert f"called '{name}'" in str(caught.value)
    assert f"did you mean '{close}'?" in str(caught.value)
    assert ", ".join(dataset_names()) in str(caught.value)


def test_a_name_like_no_other_gets_the_list() -> None:
    with pytest.raises(InputError, match="read_graph reads files of yours"):
        load_dataset("xyz")


def test_ogbn_takes_500_nodes_a_class() -> None:
    assert {d.name: d.per_class for d in DATASETS.values() if d.per_class != 50} == {
        "ogbn-arxiv": 500,
        "ogbn-products": 500,
    }


def test_the_root_is_argument_then_variable_then_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("OPENIMA_DATA", str(tmp_path / "variable"))
    assert data_root(tmp_path / "argument") == tmp_path / "argument"
    assert data_root() == tmp_path / "variable"
    monkeypatch.setenv("OPENIMA_DATA", "")
    assert data_root() == tmp_path / "cache" / "openima"
    monkeypatch.delenv("OPENIMA_DATA")
    assert data_root() == tmp_path / "cache" / "openima"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert data_root() == tmp_path / "home" / ".cache" / "openima"
    assert data_root("~/graphs") == tmp_path / "home" / "graphs"


def test_load_dataset_looks_in_the_root_it_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is read from the variable's folder, unless an argument names another."""
    raw = tmp_path / "variable" / "Photo" / "raw"
    raw.mkdir(parents=True)
    eye = sp.csr_array(np.eye(2, dtype=np.float32))
    parts = {
        f"{prefix}_{part}": getattr(eye, part)
        for prefix in ("adj", "attr")
        for part in ("data", "indices", "indptr", "shape")
    }
    np.savez(raw / "amazon_electronics_photo.npz", **parts, labels=np.array([0, 1]))
    monkeypatch.setenv("OPENIMA_DATA", str(tmp_path / "variable"))
    assert load_dataset("photo").graph.n_nodes == 2
    nowhere = replace(DATASETS["photo"], url=(tmp_path / "nowhere").as_uri())
    monkeypatch.setitem(datasets.DATASETS, "photo", nowhere)
    with pytest.raises(DownloadError, match="argument/Photo/raw"):
        load_dataset("photo", tmp_path / "argument")


def test_missing_files_are_fetched_and_checked(tmp_path: Path) -> None:
    source, folder = tmp_path / "site", tmp_path / "root" / "Small"
    source.mkdir()
    for name in ("here", "there"):
        (source / name).write_text(name)
    checksum = hashlib.sha256(b"there").hexdigest()
    files = {"here": "00", "there": checksum}
    small = replace(DATASETS["photo"], files=files, url=source.as_uri())
    (folder / "raw").mkdir(parents=True)
    (folder / "raw" / "here").write_text("put here by hand, and left alone")
    fetch(small, folder)
    assert (folder / "raw" / "here").read_text() == "put here by hand, and left alone"
    assert (folder / "raw" / "there").read_text() == "there"
    wrong = replace(small, files={"here": None, "there": "00"})
    (folder / "raw" / "there").unlink()
    with pytest.raises(DownloadError, match="checksum 00"):
        fetch(wrong, folder)
    assert not (folder / "raw" / "there").exists()


@pytest.mark.parametrize(
    ("name", "folder", "url"),
    [
        ("citeseer", "CiteSeer/raw", "kimiyoung/planetoid/raw/master/data/ind.citeseer.x"),
        ("physics", "Physics/raw", "shchur/gnn-benchmark/raw/master/data/npz/ms_academic_phy.npz"),
        ("ogbn-products", "ogbn_products", "ogb/data/nodeproppred/products.zip"),
    ],
)
def test_no_network_and_no_file_names_file_folder_and_address(
    name: str, folder: str, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(*_args: object, **_options: object) -> None:
        raise OSError("network is unreachable")

    monkeypatch.setattr("urllib.request.urlopen", unreachable)
    with pytest.raises(DownloadError) as caught:
        load_dataset(name, tmp_path)
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / folder}: ")
    assert url in message
    assert "network is unreachable" in message
    assert "by other means" in message
    assert not [p for p in tmp_path.rglob("*") if p.is_file()]


@pytest.mark.parametrize(("short", "links"), [("arxiv", 4), ("products", 3)])
def test_ogb_archives_become_graphs(
    short: str, links: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the links 0-1, 1-0, 1-2 and 2-2 two are one where the graph is undirected."""
    tables = {
        "num-node-list": "3\n",
        "num-edge-list": "4\n",
        "edge": "0,1\n1,0\n1,2\n2,2\n",
        "node-feat": "0.5\n1\n2\n",
        "node-label": "0\n1\n1\n",
    }
    with zipfile.ZipFile(tmp_path / f"{short}.zip", "w") as archive:
        for table, text in tables.items():
            archive.writestr(f"{short}/raw/{table}.csv.gz", gzip.compress(text.encode()))
    name = f"ogbn-{short}"
    local = replace(DATASETS[name], url=(tmp_path / f"{short}.zip").as_uri())
    monkeypatch.setitem(datasets.DATASETS, name, local)
    made = load_dataset(name, tmp_path / "root")
    assert made.graph.name == name
    assert made.graph.directed == (short == "arxiv")
    assert made.graph.n_links == links
    assert (tmp_path / "root" / f"ogbn_{short}" / "raw" / "edge.csv.gz").is_file()
    (tmp_path / f"{short}.zip").unlink()
    assert load_dataset(name, tmp_path / "root").labels.tolist() == [0, 1, 1]


def test_digits_need_neither_files_nor_network(tmp_path: Path) -> None:
    made = load_dataset("digits", tmp_path / "nothing")
    graph = made.graph
    assert (graph.name, graph.n_nodes, graph.n_features) == ("digits", 1_797, 64)
    assert isinstance(graph.features, np.ndarray)
    assert graph.features.dtype == np.float32
    assert (graph.features.min(), graph.features.max()) == (0, 1)
    assert graph.feature_names is not None
    assert graph.feature_names[[0, 9, 63]].tolist() == ["pixel_0_0", "pixel_1_1", "pixel_7_7"]
    assert made.class_names == tuple("0123456789")
    assert not graph.directed
    assert graph.n_self_loops == 0
    assert graph.in_degrees.min() >= datasets.DIGITS_NEIGHBOURS
    assert graph.n_links == 12_340
    assert not (tmp_path / "nothing").exists()


@pytest.mark.parametrize("name", ON_DISK)
def test_the_real_graphs_have_the_published_counts(name: str, data_root: Path) -> None:
    """Links count once for both directions; self-loops are among them (124 and 1, see below)."""
    made = load_dataset(name, data_root)
    published = DATASETS[name].published
    assert published is not None
    assert made.graph.n_nodes == published.nodes
    assert made.graph.n_links == published.links
    assert made.graph.n_features == published.features
    assert made.n_classes == published.classes
    assert np.unique(made.labels).tolist() == list(range(published.classes))
    assert made.graph.name == name
    assert made.graph.is_sparse
    assert made.graph.weights is None
    assert not made.graph.directed
    # Photo's 119,082 are 119,081 pairs and one loop; Citeseer's 4,676 are 4,552 and 124.
    loops = {"citeseer": 124, "photo": 1}
    assert made.graph.n_self_loops == loops.get(name, 0)


@pytest.mark.parametrize("name", ["photo", "computers", "cs", "physics"])
def test_features_are_as_stored(name: str, data_root: Path) -> None:
    dataset = DATASETS[name]
    (file,) = dataset.files
    features = load_dataset(name, data_root).graph.features
    assert isinstance(features, sp.csr_array)
    with np.load(data_root / dataset.folder / "raw" / file) as stored:
        parts = (stored["attr_data"], stored["attr_indices"], stored["attr_indptr"])
        raw = sp.csr_array(parts, shape=features.shape)
    assert abs(features - raw).max() == 0
    assert features.nnz == raw.nnz


@pytest.mark.parametrize("name", ON_DISK)
def test_checksums_are_those_of_the_real_files(name: str, data_root: Path) -> None:
    dataset = DATASETS[name]
    for file, checksum in dataset.files.items():
        content = (data_root / dataset.folder / "raw" / file).read_bytes()
        assert hashlib.sha256(content).hexdigest() == checksum, file


MEASURE = """
import json, sys, time
from pathlib import Path
from openima.graph.datasets import load_dataset

def memory(key):
    status = Path("/proc/self/status").read_text()
    return int(status.split(key + ":")[1].split()[0]) * 1024

load_dataset("citeseer", sys.argv[1])  # what is imported late is imported now
before, start = memory("VmRSS"), time.process_time()
graph = load_dataset("physics", sys.argv[1]).graph
seconds = time.process_time() - start
print(json.dumps([seconds, memory("VmHWM") - before, graph.is_sparse]))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc, so Linux alone")
def test_physics_loads_fast_and_stays_sparse(data_root: Path) -> None:
    """Less than 2 s and 300 MB; its features alone would take 1.16 GB if dense."""
    command = [sys.executable, "-c", MEASURE, str(data_root)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, extra, is_sparse = json.loads(done.stdout)
    assert is_sparse
    assert seconds < 2
    assert extra < 300e6
