from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
needs_proc = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="this system has no /proc"
)


@pytest.fixture(scope="module")
def benchmark() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(REPOSITORY))
        yield import_module("benchmarks.silhouette")


def run(cpu: float, wall: float, peak: float) -> dict[str, float]:
    return {"cpu_s": cpu, "wall_s": wall, "peak_mb": peak, "value": 0.5}


def test_times_are_the_least_and_memory_the_highest(benchmark: Any) -> None:
    assert benchmark.best([run(3, 9, 700), run(4, 8, 600)]) == run(3, 8, 700)


@pytest.mark.parametrize(
    ("found", "holds"),
    [
        (run(5.0, 60.0, 1000.0), [True, True]),
        (run(5.1, 1.0, 10.0), [False, True]),
        (run(1.0, 1.0, 1001.0), [True, False]),
    ],
)
def test_figures_are_held_to_their_bounds(
    benchmark: Any, found: dict[str, float], holds: list[bool]
) -> None:
    assert [held for *_, held in benchmark.verdicts(found)] == holds


@needs_proc
def test_both_contenders_find_the_same(benchmark: Any, tmp_path: Path) -> None:
    data = tmp_path / "data.npz"
    benchmark.save_blobs(data, nodes=1500, width=8, clusters=3)
    ours, peer = (benchmark.measure(contender, str(data)) for contender in benchmark.CONTENDERS)
    assert ours["value"] == pytest.approx(peer["value"], abs=1e-5)
    assert 0 < ours["cpu_s"] < 60


@pytest.mark.parametrize(("cpu_s", "status", "verdict"), [(4.5, 0, "yes"), (5.5, 1, "NO")])
def test_the_script_ends_with_its_verdict(
    benchmark: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    cpu_s: float,
    status: int,
    verdict: str,
) -> None:
    monkeypatch.setattr(sys, "argv", ["silhouette.py", "--nodes", "20"])
    monkeypatch.setattr(benchmark, "in_fresh_process", lambda *_: run(cpu_s, 6.0, 700.0))
    assert benchmark.main() == status
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].split() == ["openima", f"{cpu_s:.2f}", "6.00", "700", "0.50000000"]
    assert lines[4:] == [f"cpu_s: {cpu_s:.2f} <= 5: {verdict}", "peak_mb: 700.00 <= 1000: yes"]
