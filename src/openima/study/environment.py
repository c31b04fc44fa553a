"""Where rows come from: machine, versions, commit, and how much memory a trial took."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from functools import cache
from importlib import import_module
from pathlib import Path

import torch

from openima.study.trial import canonical

_PACKAGES = ("torch", "numpy", "scipy", "sklearn", "pandas")


@cache
def versions() -> str:
    """Name the versions of Python and of the packages that results may depend on."""
    found = {name: str(import_module(name).__version__) for name in ("openima", *_PACKAGES)}
    return canonical({"python": platform.python_version()} | found)


@cache
def machine(device: str) -> str:
    """Describe the machine without saying which one it is."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    parts = [_processor(), f"{cores} cores"]
    if device.startswith("cuda"):
        parts.append(torch.cuda.get_device_name(torch.device(device)))
    return ", ".join(parts)


@cache
def commit() -> str:
    """Return the git commit of the source, with a plus if files differ from it; "" without git."""
    folder = Path(__file__).resolve().parent
    found = _git(folder, "rev-parse", "--short=12", "HEAD")
    return f"{found}+" if found and _git(folder, "status", "--porcelain", "--", ".") else found


def forget_peak_memory(device: torch.device) -> None:
    """Let the peaks of memory start from what is in use now."""
    if device.type == "cuda":
        torch.empty(0, device=device)  # before the first use of a GPU it has no peaks
        torch.cuda.reset_peak_memory_stats(device)
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:  # not Linux: peaks are those of the process
        return


def peak_memory_mb(device: torch.device) -> dict[str, float]:
    """Return the peaks of memory in MB, of the process and of its GPU (0 without)."""
    on_gpu = torch.cuda.max_memory_allocated(device) if device.type == "cuda" else 0
    return {"peak_memory_mb": _peak_bytes() / 1e6, "peak_gpu_memory_mb": on_gpu / 1e6}


def _peak_bytes() -> int:
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return _peak_bytes_of_process()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(found[1]) * 1024 if found else 0


def _peak_bytes_of_process() -> int:
    if sys.platform == "win32":
        return 0
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _processor() -> str:
    try:
        found = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    except OSError:
        found = None
    return found[1] if found else platform.processor() or platform.machine()


def _git(folder: Path, *arguments: str) -> str:
    try:
        command = ["git", "-C", str(folder), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""
