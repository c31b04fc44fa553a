"""Claims: which process works on which trial, through files alone.

The claim of a trial is a file `<trial>.<n>.lock` that only one process can create. A process that
works touches its file now and then. A claim whose process has ended, or that has not been
touched for long, is void, and whoever creates the file of the next `n` has taken it over. As no
file is removed but by the one who finished, and none that came after his, two processes cannot
both take over.
"""

from __future__ import annotations

import json
import os
import platform
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from openima.files import writing

STALE_AFTER = 120.0
"""Seconds without a sign of life after which a claim is void."""


@dataclass(frozen=True)
class Holder:
    """Who claimed a trial: a process of a machine."""

    host: str
    pid: int

    @classmethod
    def me(cls) -> Holder:
        """Return this process."""
        return cls(_host(), os.getpid())

    def has_ended(self) -> bool:
        """Whether the process is certain to have ended; of other machines nothing is certain."""
        if self.host != _host() or os.name != "posix":  # elsewhere os.kill would end it
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except OSError:  # it is there, but another user's
            return False
        return False


class Claim:
    """A claim that this process holds, and shows to be alive, while in a `with` block."""

    def __init__(self, path: Path, trial: str, beat: float) -> None:
        """Keep the file touched every `beat` seconds once entered."""
        self.path, self.trial, self._beat = path, trial, beat
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._show_life, daemon=True)

    def __enter__(self) -> Claim:
        """Begin to show life."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give the trial back: its claim and those before are removed.

        Claims after it are of those who took it over while this process was silent.
        """
        self._over.set()
        self._thread.join()
        for number, path in _claims_of(self.path.parent, self.trial).items():
            if number <= _number(self.path):
                path.unlink(missing_ok=True)

    def _show_life(self) -> None:
        while not self._over.wait(self._beat):
            with suppress(OSError):  # removed by hand: the trial can still be finished
                os.utime(self.path)


def take(folder: Path, trial: str, stale_after: float = STALE_AFTER) -> Claim | None:
    """Claim a trial; None if another process is at work on it."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    claims = _claims_of(folder, trial)
    last = max(claims, default=-1)
    if last >= 0 and is_alive(claims[last], stale_after):
        return None
    path = folder / f"{trial}.{last + 1}.lock"
    me = Holder.me()
    with writing(path):
        try:
            with path.open("x", encoding="utf-8") as file:
                json.dump({"host": me.host, "pid": me.pid}, file)
        except FileExistsError:
            return None
    return Claim(path, trial, stale_after / 4)


def remove_void(folder: Path, trial: str, stale_after: float = STALE_AFTER) -> None:
    """Remove the claims of ended processes on a trial that nobody needs to take over any more."""
    for path in _claims_of(folder, trial).values():
        if not is_alive(path, stale_after):
            path.unlink(missing_ok=True)


def is_claimed(folder: Path, trial: str, stale_after: float = STALE_AFTER) -> bool:
    """Whether a living process is at work on a trial."""
    claims = _claims_of(folder, trial)
    return bool(claims) and is_alive(claims[max(claims)], stale_after)


def is_alive(path: Path, stale_after: float) -> bool:
    """Whether the process behind a claim can be thought to be at work."""
    try:
        age = time.time() - path.stat().st_mtime
        holder = Holder(**json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:  # given back just now; the next round will see
        return True
    except (ValueError, TypeError):  # being written, or its writer was killed at it
        return age < stale_after
    return age < stale_after and not holder.has_ended()


def _claims_of(folder: Path, trial: str) -> dict[int, Path]:
    return {_number(path): path for path in folder.glob(f"{trial}.*.lock")}


def _number(path: Path) -> int:
    return int(path.name.split(".")[1])


def _host() -> str:
    """Tell machines apart, and containers that number their processes on their own."""
    parts = [platform.node()]
    for name in ("/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid"):
        path = Path(name)
        try:
            parts.append(str(path.readlink()) if path.is_symlink() else path.read_text().strip())
        except OSError:  # not Linux
            continue
    return "/".join(parts)
