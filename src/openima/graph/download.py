"""Files from the network: whole, checked and in their place, or not there at all."""

from __future__ import annotations

import hashlib
import http.client
import shutil
import tempfile
import time
import urllib.error
import urllib.request
import uuid
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

from openima.errors import DownloadError

_TIMEOUT = 30.0  # seconds without a byte
_PATIENCE = 2.0  # seconds before a progress bar appears
_CHUNK = 1 << 18


def download(url: str, path: Path, *, sha256: str | None = None) -> None:
    """Fetch `url` to `path`. What arrives incomplete or with another checksum is not kept."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _draft(path) as draft:
            found = _fetch(url, draft, path.name)
            if sha256 is not None and found != sha256:
                raise DownloadError(
                    "the file that was downloaded is not the one expected, and was not kept",
                    where=str(path),
                    expected=f"the SHA-256 checksum {sha256}",
                    got=found,
                    remedy=f"get the file from {url} by hand and see what it is",
                )
            draft.replace(path)
    except (OSError, http.client.HTTPException, ValueError) as error:
        if isinstance(error, DownloadError):
            raise
        if isinstance(error, urllib.error.HTTPError):
            error.close()
        raise DownloadError(
            f"the file {path.name} is not there and cannot be downloaded",
            where=str(path.parent),
            got=f"{error or type(error).__name__} from {url}",
            remedy=f"get {url} by other means and put it there as {path.name}",
        ) from error


def download_archive(url: str, folder: Path, *, top: str, keep: tuple[str, ...]) -> None:
    """Fetch a zip archive and unpack it: what lies under `top/` in it goes into `folder`.

    Only files in the sub-folders `keep` are unpacked, each moved to its place when complete. A
    name that would leave the folder is refused.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as unpacked:
        archive = Path(unpacked) / f"{top}.zip"
        try:
            download(url, archive)
        except DownloadError as error:
            raise DownloadError(
                "the raw files are not there and cannot be downloaded",
                where=str(folder),
                got=f"{error.__cause__ or error} from {url}",
                remedy=f"get {url} by other means and unpack it, so that its folder {top!r} "
                f"becomes {folder.name!r} in {folder.parent}",
            ) from error
        try:
            _unpack(archive, Path(unpacked), folder, top, keep)
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError) as error:
            if isinstance(error, DownloadError):
                raise
            raise DownloadError(
                "the archive that was downloaded cannot be unpacked",
                where=str(folder),
                got=f"{error} from {url}",
                remedy="try again later, and see that the disk has room",
            ) from error


def _unpack(archive: Path, draft: Path, folder: Path, top: str, keep: tuple[str, ...]) -> None:
    with zipfile.ZipFile(archive) as files:
        wanted: list[tuple[zipfile.ZipInfo, Path]] = []
        for entry in files.infolist():
            parts = PurePosixPath(entry.filename).parts
            if ".." in parts or "\\" in entry.filename or entry.filename.startswith("/"):
                raise DownloadError(
                    "the archive that was downloaded holds an unsafe name; nothing was unpacked",
                    where=str(folder),
                    got=repr(entry.filename),
                    remedy="do not use this archive",
                )
            if not entry.is_dir() and len(parts) > 2 and parts[0] == top and parts[1] in keep:
                wanted.append((entry, Path(*parts[1:])))
        for number, (entry, place) in enumerate(wanted):
            written = draft / str(number)
            with files.open(entry) as source, written.open("wb") as target:
                shutil.copyfileobj(source, target)
            (folder / place).parent.mkdir(parents=True, exist_ok=True)
            written.replace(folder / place)


@contextmanager
def _draft(path: Path) -> Iterator[Path]:
    """Give a name for a temporary file beside `path`; the file is gone at the end unless moved."""
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        yield draft
    finally:
        draft.unlink(missing_ok=True)


def _fetch(url: str, draft: Path, name: str) -> str:
    """Copy what is at `url` to `draft` and return its SHA-256 checksum."""
    digest = hashlib.sha256()
    received = 0
    with (
        urllib.request.urlopen(url, timeout=_TIMEOUT) as answer,
        draft.open("wb") as file,
        _progress(name, answer) as progress,
    ):
        length = answer.headers.get("Content-Length")
        while chunk := answer.read(_CHUNK):
            file.write(chunk)
            digest.update(chunk)
            received += len(chunk)
            progress(received)
    if length is not None and received != int(length):
        raise OSError(f"only {received:,} of {int(length):,} bytes")
    return digest.hexdigest()


class _Bar:
    """Shows a progress bar on standard error, once a download turns out to take a while."""

    def __init__(self, name: str, total: int | None) -> None:
        self._bar = Progress(
            "{task.description}",
            BarColumn(),
            DownloadColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self._task = self._bar.add_task(name, total=total)
        self._visible_from = time.monotonic() + _PATIENCE

    def __call__(self, received: int) -> None:
        self._bar.update(self._task, completed=received)
        if not self._bar.live.is_started and time.monotonic() >= self._visible_from:
            self._bar.start()

    def stop(self) -> None:
        if self._bar.live.is_started:
            self._bar.stop()


@contextmanager
def _progress(name: str, answer: Any) -> Iterator[_Bar]:
    length = answer.headers.get("Content-Length", "")
    bar = _Bar(name, int(length) if length.isdigit() else None)
    try:
        yield bar
    finally:
        bar.stop()
