from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from openima.errors import InputError
from openima.study.plan import Study
from openima.study.store import Results
from openima.study.trial import Trial, canonical

MakeStudy = Callable[..., Study]
MakeRows = Callable[..., pd.DataFrame]


@pytest.fixture
def study(make_study: MakeStudy) -> Study:
    return make_study('methods = ["openima", "infonce"]\nseeds = 2')


def test_rows_come_back_in_the_order_of_the_trials(
    study: Study, make_rows: MakeRows, tmp_path: Path
) -> None:
    results = Results(tmp_path / "results")
    assert len(results.load(study.trials)) == 0
    for trial in reversed(study.trials[:3]):
        results.write(trial.id, make_rows(trial, sc=[0.1, 0.2, 0.3]))
    found = results.load(study.trials)
    assert found["position"].tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert found["epoch"].tolist() == [1, 2, 3] * 3
    assert found["trial"].unique().tolist() == [trial.id for trial in study.trials[:3]]
    assert found["current"].all()
    assert results.finished() == {trial.id for trial in study.trials[:3]}
    assert len(results.load(study.trials[1:2])) == 3


def test_rows_are_there_whole_or_not_at_all(
    study: Study, make_rows: MakeRows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results, trial = Results(tmp_path), study.trials[0]
    write = pq.write_table

    def fails_after_writing(*arguments: object, **options: object) -> None:
        write(*arguments, **options)
        assert not results.file_of(trial.id).exists()
        raise OSError("the disk is full")

    monkeypatch.setattr(pq, "write_table", fails_after_writing)
    with pytest.raises(InputError, match=rf"{trial.id}.parquet: this cannot be .*the disk is full"):
        results.write(trial.id, make_rows(trial))
    assert list(results.trials.iterdir()) == []
    monkeypatch.undo()
    results.write(trial.id, make_rows(trial))
    assert [path.name for path in results.trials.iterdir()] == [f"{trial.id}.parquet"]


def test_a_pack_holds_all_rows_and_makes_trial_files_needless(
    study: Study, make_rows: MakeRows, tmp_path: Path
) -> None:
    results = Results(tmp_path)
    with pytest.raises(InputError, match="no rows to pack"):
        results.pack("small", results.load(study.trials))
    for trial in study.trials:
        loss = {"loss_ce": [1.0, 2.0]} if trial.method == "openima" else {}
        results.write(trial.id, make_rows(trial, **loss))
    before = results.load(study.trials)
    path = results.pack("small", before)
    assert path == tmp_path / "small.parquet"
    pd.testing.assert_frame_equal(results.load(study.trials), before)  # each row still once
    for trial in study.trials:
        results.file_of(trial.id).unlink()
    pd.testing.assert_frame_equal(results.load(study.trials), before)
    assert results.finished() == {trial.id for trial in study.trials}
    results.pack("small", results.load(study.trials))
    pd.testing.assert_frame_equal(results.load(study.trials), before)


def test_rows_of_other_code_are_told_apart(
    study: Study, make_rows: MakeRows, tmp_path: Path
) -> None:
    results, trial = Results(tmp_path), study.trials[0]
    results.write(trial.id, make_rows(trial))
    results.write("old", make_rows(trial).assign(trial="old", code="0"))
    found = results.load(study.trials)
    assert sorted(zip(found["code"], found["current"], strict=True)) == sorted(
        [("0", False)] * 2 + [(trial.code, True)] * 2
    )
    assert found["position"].tolist() == [0] * 4


def test_rows_with_other_settings_are_not_rows_of_the_study(
    study: Study, make_rows: MakeRows, tmp_path: Path
) -> None:
    results, trial = Results(tmp_path), study.trials[0]
    other = Trial(trial.dataset, trial.method, trial.seed, {**trial.changes, "eta": 3.0})
    results.write(other.id, make_rows(other))
    assert len(results.load(study.trials)) == 0
    before = {name: value for name, value in trial.settings.items() if name != "pseudo_share"}
    results.write("old", make_rows(trial).assign(trial="old", settings=canonical(before)))
    assert len(results.load(study.trials)) == 2
    assert len(results.load([other])) == 2


def test_files_that_hold_no_rows_are_named(
    study: Study, make_rows: MakeRows, tmp_path: Path
) -> None:
    results, trial = Results(tmp_path), study.trials[0]
    results.write(trial.id, make_rows(trial))
    whole = results.file_of(trial.id).read_bytes()
    pack = results.pack("small", results.load(study.trials))
    for path in (pack, results.file_of(trial.id)):
        for content in (b"", b"PAR1", whole[:-50], whole[:20] + whole[40:]):
            path.write_bytes(content)
            with pytest.raises(
                InputError, match=rf"{path.name}: this is no readable file of rows.*delete it to"
            ):
                results.load(study.trials)
        path.unlink()
    make_rows(trial).drop(columns="trial").to_parquet(pack)
    with pytest.raises(InputError, match=r"small.parquet: this is no readable file of rows"):
        results.finished()


def test_a_file_in_place_of_the_folder_is_refused(
    study: Study, make_rows: MakeRows, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"file: results are kept in a folder.*--results DIR"):
        Results(tmp_path / "file")
    beneath, trial = Results(tmp_path / "file" / "results"), study.trials[0]
    with pytest.raises(InputError, match=rf"{trial.id}.parquet: this cannot be written"):
        beneath.write(trial.id, make_rows(trial))
    with pytest.raises(InputError, match=rf"{trial.id}.error: this cannot be written"):
        beneath.fail(trial.id, "why")


def test_errors_are_kept_until_cleared(study: Study, tmp_path: Path) -> None:
    results, trial = Results(tmp_path), study.trials[0]
    assert results.error(trial.id) is None
    results.fail(trial.id, "why")
    (results.running / f"{trial.id}.0.lock").touch()
    (results.running / f"{trial.id}.cpu.safetensors").touch()
    assert results.error(trial.id) == "why"
    results.clear(trial.id)
    assert [path.name for path in results.running.iterdir()] == [f"{trial.id}.0.lock"]
    results.fail(trial.id, "why")
    results.forgive(trial.id)
    assert results.error(trial.id) is None
