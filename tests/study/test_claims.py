import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

import pytest

from openima.errors import InputError
from openima.study.claims import Claim, Holder, is_claimed, remove_void, take


def ended_process() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def claim_of(folder: Path, holder: Holder, name: str = "t.0.lock", age: float = 0.0) -> Path:
    path = folder / name
    path.write_text(json.dumps(asdict(holder)))
    os.utime(path, (time.time() - age,) * 2)
    return path


def test_a_trial_is_claimed_once(tmp_path: Path) -> None:
    claim = take(tmp_path, "t")
    assert claim is not None
    with claim:
        assert take(tmp_path, "t") is None
        assert is_claimed(tmp_path, "t")
        other = take(tmp_path, "u")
        assert other is not None
        with other:
            pass
    assert not is_claimed(tmp_path, "t")
    assert list(tmp_path.iterdir()) == []
    assert take(tmp_path, "t") is not None


def test_the_claim_of_an_ended_process_is_taken_over(tmp_path: Path) -> None:
    claim_of(tmp_path, Holder(Holder.me().host, ended_process()))
    assert not is_claimed(tmp_path, "t")
    claim = take(tmp_path, "t")
    assert claim is not None
    with claim:
        assert take(tmp_path, "t") is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("age", "alive"), [(0.0, True), (90.0, True), (200.0, False)])
def test_of_another_machine_only_silence_counts(tmp_path: Path, age: float, alive: bool) -> None:
    claim_of(tmp_path, Holder("elsewhere", ended_process()), age=age)
    assert is_claimed(tmp_path, "t") == alive
    assert (take(tmp_path, "t") is None) == alive


def test_a_claim_that_is_being_written_is_one(tmp_path: Path) -> None:
    (tmp_path / "t.0.lock").write_text("")
    assert take(tmp_path, "t") is None
    os.utime(tmp_path / "t.0.lock", (0, 0))
    assert take(tmp_path, "t") is not None


def test_only_one_of_many_takes_over(tmp_path: Path) -> None:
    dead = Holder(Holder.me().host, ended_process())
    for number in range(20):
        folder = tmp_path / str(number)
        folder.mkdir()
        claim_of(folder, dead)
        with ThreadPoolExecutor(8) as pool:
            claims = list(pool.map(lambda _, of=folder: take(of, "t"), range(8)))
        assert sum(claim is not None for claim in claims) == 1


def test_whoever_works_shows_life(tmp_path: Path) -> None:
    claim = take(tmp_path, "t")
    assert claim is not None
    os.utime(claim.path, (0, 0))
    with Claim(claim.path, "t", beat=0.01):
        deadline = time.monotonic() + 10
        while claim.path.stat().st_mtime == 0 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert claim.path.stat().st_mtime > 0


def test_a_claim_removed_by_hand_does_no_harm(tmp_path: Path) -> None:
    claim = take(tmp_path, "t")
    assert claim is not None
    with Claim(claim.path, "t", beat=0.01):
        claim.path.unlink()
        time.sleep(0.05)


def test_whoever_wakes_late_leaves_the_claim_of_his_successor(tmp_path: Path) -> None:
    sleeper = take(tmp_path, "t", stale_after=1000)
    assert sleeper is not None
    with sleeper:
        os.utime(sleeper.path, (0, 0))
        successor = take(tmp_path, "t")
        assert successor is not None
        with successor:
            sleeper.__exit__(None, None, None)
            assert [path.name for path in tmp_path.iterdir()] == ["t.1.lock"]
            assert take(tmp_path, "t") is None
    assert list(tmp_path.iterdir()) == []


def test_void_claims_of_a_finished_trial_can_be_removed(tmp_path: Path) -> None:
    claim_of(tmp_path, Holder(Holder.me().host, ended_process()))
    living = claim_of(tmp_path, Holder("elsewhere", 1), "t.1.lock")
    other = claim_of(tmp_path, Holder(Holder.me().host, ended_process()), "u.0.lock")
    remove_void(tmp_path, "t")
    assert sorted(tmp_path.iterdir()) == [living, other]


def test_a_folder_that_cannot_be_written_to_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="file: this cannot be written"):
        take(tmp_path / "file", "t")
