from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread

import pytest

from openima.errors import DownloadError
from openima.graph import download as module
from openima.graph.download import download, download_archive

CONTENT = bytes(range(256)) * 4_096  # 1 MiB


class Server:
    """Answers on 127.0.0.1 with the pages of a test.

    `/short` promises more than it sends, and `/silent` says nothing until the test is over.
    """

    def __init__(self) -> None:
        over = self.over = Event()
        pages = self.pages = {"/whole": CONTENT, "/short": CONTENT}

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path == "/silent":
                    over.wait()
                    return
                if self.path not in pages:
                    self.send_error(404)
                    return
                self.send_response(200)
                extra = 1_000 if self.path == "/short" else 0
                self.send_header("Content-Length", str(len(pages[self.path]) + extra))
                self.end_headers()
                self.wfile.write(pages[self.path])

            def log_message(self, format: str, *args: object) -> None:
                """Keep quiet."""

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    running = Server()
    thread = Thread(target=running.http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield running
    running.over.set()
    running.http.shutdown()
    running.http.server_close()
    thread.join()


def zipped(files: dict[str, bytes]) -> bytes:
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return memory.getvalue()


def everything_in(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def test_a_file_arrives_whole_and_alone(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "Photo" / "raw" / "photo.npz"
    download(f"{server.url}/whole", path, sha256=hashlib.sha256(CONTENT).hexdigest())
    assert path.read_bytes() == CONTENT
    assert everything_in(tmp_path) == ["Photo/raw/photo.npz"]


def test_a_truncated_download_leaves_nothing(server: Server, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match=r"only 1,048,576 of 1,049,576 bytes"):
        download(f"{server.url}/short", tmp_path / "photo.npz")
    assert everything_in(tmp_path) == []


def test_a_truncated_download_leaves_what_was_there(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "photo.npz"
    path.write_bytes(b"older")
    with pytest.raises(DownloadError):
        download(f"{server.url}/short", path)
    assert path.read_bytes() == b"older"


def test_another_checksum_is_not_kept(server: Server, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match=r"photo\.npz: .*SHA-256 checksum 00.*by hand"):
        download(f"{server.url}/whole", tmp_path / "photo.npz", sha256="00" * 32)
    assert everything_in(tmp_path) == []


def test_without_a_network_the_error_names_file_folder_and_address(tmp_path: Path) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as closed:
        url = f"http://127.0.0.1:{closed.server_port}/photo.npz"
    with pytest.raises(DownloadError) as caught:
        download(url, tmp_path / "raw" / "photo.npz")
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 'raw'}: the file photo.npz is not there")
    assert f"get {url} by other means and put it there as photo.npz" in message
    assert "\n" not in message
    assert everything_in(tmp_path) == []


def test_a_file_that_the_server_does_not_have(server: Server, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="404"):
        download(f"{server.url}/gone", tmp_path / "gone")
    assert everything_in(tmp_path) == []


def test_a_folder_that_cannot_be_made(server: Server, tmp_path: Path) -> None:
    (tmp_path / "raw").write_text("a file")
    with pytest.raises(DownloadError, match="photo"):
        download(f"{server.url}/whole", tmp_path / "raw" / "photo.npz")


def test_a_silent_server_is_given_up(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_TIMEOUT", 0.1)
    with pytest.raises(DownloadError, match="timed out"):
        download(f"{server.url}/silent", tmp_path / "photo.npz")
    assert everything_in(tmp_path) == []


def test_only_a_long_download_shows_a_bar(
    server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    download(f"{server.url}/whole", tmp_path / "short.npz")
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(module, "_PATIENCE", 0.0)
    download(f"{server.url}/whole", tmp_path / "long.npz")
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "long.npz" in shown.err
    assert "1.0/1.0 MB" in shown.err


def test_an_archive_is_unpacked_into_the_layout(server: Server, tmp_path: Path) -> None:
    server.pages["/arxiv.zip"] = zipped(
        {
            "arxiv/raw/edge.csv.gz": b"edges",
            "arxiv/mapping/labels.csv.gz": b"labels",
            "arxiv/split/time/train.csv.gz": b"not needed",
            "arxiv/README": b"not needed",
            "other/raw/edge.csv.gz": b"not ours",
        }
    )
    folder = tmp_path / "ogbn_arxiv"
    download_archive(f"{server.url}/arxiv.zip", folder, top="arxiv", keep=("raw", "mapping"))
    assert everything_in(folder) == ["mapping/labels.csv.gz", "raw/edge.csv.gz"]
    assert (folder / "raw" / "edge.csv.gz").read_bytes() == b"edges"
    assert sorted(p.name for p in folder.iterdir()) == ["mapping", "raw"]


@pytest.mark.parametrize(
    "name", ["arxiv/raw/../../../escaped", "../escaped", "/escaped", "arxiv/raw\\..\\..\\escaped"]
)
def test_a_name_that_leaves_the_folder_is_refused(
    server: Server, tmp_path: Path, name: str
) -> None:
    server.pages["/bad.zip"] = zipped({"arxiv/raw/edge.csv.gz": b"edges", name: b"escaped"})
    folder = tmp_path / "root" / "ogbn_arxiv"
    with pytest.raises(DownloadError, match="unsafe name; nothing was unpacked"):
        download_archive(f"{server.url}/bad.zip", folder, top="arxiv", keep=("raw",))
    assert everything_in(tmp_path) == []


@pytest.mark.parametrize("damage", ["no zip", "flipped"])
def test_a_damaged_archive_leaves_nothing(server: Server, tmp_path: Path, damage: str) -> None:
    good = zipped({"arxiv/raw/edge.csv.gz": b"edges"})
    server.pages["/a.zip"] = CONTENT if damage == "no zip" else good.replace(b"edges", b"edgeS", 1)
    with pytest.raises(DownloadError, match="cannot be unpacked"):
        download_archive(f"{server.url}/a.zip", tmp_path / "a", top="arxiv", keep=("raw",))
    assert everything_in(tmp_path) == []


def test_an_archive_out_of_reach_says_where_to_unpack_it(server: Server, tmp_path: Path) -> None:
    folder = tmp_path / "ogbn_arxiv"
    with pytest.raises(DownloadError) as caught:
        download_archive(f"{server.url}/gone.zip", folder, top="arxiv", keep=("raw",))
    message = str(caught.value)
    assert message.startswith(f"{folder}: the raw files are not there")
    assert "404" in message
    assert f"its folder 'arxiv' becomes 'ogbn_arxiv' in {tmp_path}" in message
    assert everything_in(tmp_path) == []
