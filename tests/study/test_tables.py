from collections.abc import Callable
from math import isnan, sqrt
from statistics import mean, stdev

import pandas as pd
import pytest

from openima.errors import InputError
from openima.study.plan import MEAN, Study
from openima.study.tables import one_version, summarise

MakeStudy = Callable[..., Study]
MakeRows = Callable[..., pd.DataFrame]

PAPER = """
[[paper]]
method = "openima"
dataset = "digits"
all = 61.0
"""


def rows_of(study: Study, make_rows: MakeRows, **columns: object) -> pd.DataFrame:
    parts = [
        make_rows(trial, **{k: v(i) if callable(v) else v for k, v in columns.items()}).assign(
            position=i
        )
        for i, trial in enumerate(study.trials)
    ]
    return pd.concat(parts, ignore_index=True)


def test_mean_and_standard_error_over_seeds_and_the_difference_to_the_paper(
    make_study: MakeStudy, make_rows: MakeRows
) -> None:
    study = make_study('methods = ["openima", "infonce"]\nseeds = 3', tail=PAPER)
    rows = rows_of(study, make_rows, all=lambda i: [0.1, 0.5 + 0.01 * i])
    table = summarise(study, rows)
    assert table["method"].tolist() == ["openima", "infonce"]
    for line, first in zip(table.to_dict("records"), (0, 1), strict=True):
        values = [50.0 + i for i in range(first, 6, 2)]  # the second epoch has the higher SC
        assert line["seeds"] == 3
        assert line["all"] == pytest.approx(mean(values))
        assert line["all_se"] == pytest.approx(stdev(values) / sqrt(3))
    openima, infonce = table.to_dict("records")
    assert openima["all_paper"] == 61.0
    assert openima["all_difference"] == pytest.approx(52.0 - 61.0)
    assert isnan(infonce["all_paper"])
    assert isnan(infonce["all_difference"])


def test_one_row_is_chosen_of_all_configurations_of_a_seed(
    make_study: MakeStudy, make_rows: MakeRows
) -> None:
    study = make_study('methods = ["openima"]\nseeds = 1\ngrid = { eta = [1, 2, 5] }')
    rows = rows_of(study, make_rows, sc=lambda i: [0.3 * (i == 1), 0.1], all=lambda i: [i / 10] * 2)
    table = summarise(study, rows)
    assert table["all"].tolist() == [10.0]
    assert isnan(table["all_se"][0])  # of one seed nothing is known
    by_eta = Study("x", "x", "x", study.trials, rows=("dataset", "eta"))
    found = summarise(by_eta, rows)
    assert list(zip(found["eta"], found["all"], strict=True)) == [(1, 0.0), (2, 10.0), (5, 20.0)]


def test_every_rule_has_a_line(make_study: MakeStudy, make_rows: MakeRows) -> None:
    study = make_study(
        'methods = ["openima"]\nseeds = 1', head='rules = ["sc", "acc"]\nmetrics = ["all"]'
    )
    rows = rows_of(study, make_rows, sc=[0.9, 0.1], val_acc=[0.1, 0.9], all=[0.2, 0.4])
    table = summarise(study, rows)
    assert list(zip(table["rule"], table["all"], strict=True)) == [("sc", 20.0), ("acc", 40.0)]


def test_lines_without_rows_are_there(make_study: MakeStudy, make_rows: MakeRows) -> None:
    study = make_study('methods = ["openima", "infonce"]\nseeds = 1', tail=PAPER)
    empty = rows_of(study, make_rows).iloc[:0]
    for rows in (empty, pd.DataFrame(columns=empty.columns)):
        table = summarise(study, rows)
        assert table["seeds"].tolist() == [0, 0]
        assert table["all"].isna().all()
        assert table["all_paper"][0] == 61.0


def test_the_mean_over_data_sets_needs_all_of_them(
    make_study: MakeStudy, make_rows: MakeRows
) -> None:
    block = 'datasets = ["cs", "photo"]\nmethods = ["openima", "infonce"]\nseeds = 2'
    paper = "".join(
        f'[[paper]]\nmethod = "openima"\ndataset = "{name}"\nall = {number}\n'
        for name, number in (("cs", 60.0), ("photo", 70.0))
    )
    study = make_study(block, head='average = "dataset"', tail=paper)
    rows = rows_of(study, make_rows, all=lambda i: [0.5 + 0.1 * (i % 3)] * 2)
    missing = (rows["dataset"] == "photo") & (rows["method"] == "infonce")
    lines = summarise(study, rows[~missing]).to_dict("records")
    table = {(line["dataset"], line["method"]): line for line in lines}
    of = table[MEAN, "openima"]
    single = [table[name, "openima"] for name in ("cs", "photo")]
    assert of["all"] == pytest.approx(mean(line["all"] for line in single))
    assert of["all_se"] == pytest.approx(sqrt(sum(line["all_se"] ** 2 for line in single)) / 2)
    assert (of["all_paper"], of["seeds"]) == (65.0, 2)
    assert isnan(table[MEAN, "infonce"]["all"])
    assert table[MEAN, "infonce"]["seeds"] == 0


def test_rows_of_one_version_are_used_and_others_mentioned(
    make_study: MakeStudy, make_rows: MakeRows
) -> None:
    study = make_study('methods = ["openima", "infonce"]\nseeds = 3')
    rows = rows_of(study, make_rows, code="new", finished="2026-02-02")
    old = rows_of(study, make_rows, code="old", all=[0.1, 0.1], finished="2026-01-01")
    both = pd.concat([rows[rows["position"] < 3], old])  # new: two of openima, one of infonce
    kept, notes = one_version(both)
    assert set(kept["code"]) == {"old"}
    assert len(kept) == 12
    assert "digits openima" in notes[0]
    assert "old (3 trials), new (2 trials); only the first is used" in notes[0]
    mixed, notes = one_version(both, mix=True)
    assert mixed.drop_duplicates("position")["code"].tolist() == ["new"] * 3 + ["old"] * 3
    assert "mixed" in notes[0]
    newest, _ = one_version(pd.concat([old, rows]))  # as many of each
    assert set(newest["code"]) == {"new"}
    alone, notes = one_version(rows)
    pd.testing.assert_frame_equal(alone, rows)
    assert notes == []


def test_trials_on_different_data_are_mentioned(make_study: MakeStudy, make_rows: MakeRows) -> None:
    study = make_study('methods = ["openima", "infonce"]\nseeds = 1')
    rows = rows_of(study, make_rows, data=lambda i: "ab"[i])
    notes = one_version(rows)[1]
    assert notes == [f"digits, seed {study.trials[0].seed}: trials ran on different data"]


def test_data_sets_alone_have_a_mean_too(make_study: MakeStudy, make_rows: MakeRows) -> None:
    study = make_study(
        'datasets = ["cs", "photo"]\nmethods = ["openima"]\nseeds = 1',
        head='rows = ["dataset"]\naverage = "dataset"\nmetrics = ["all"]',
        tail="".join(
            f'[[paper]]\ndataset = "{name}"\nall = {number}\n'
            for name, number in (("cs", 60.0), ("photo", 70.0))
        ),
    )
    table = summarise(study, rows_of(study, make_rows, all=lambda i: [0.5, 0.6 + 0.1 * i]))
    assert table["dataset"].tolist() == ["cs", "photo", MEAN]
    assert table["all"].tolist() == pytest.approx([60.0, 70.0, 65.0])
    assert table["all_paper"].tolist() == [60.0, 70.0, 65.0]


def test_a_loss_that_no_row_has_is_refused(make_study: MakeStudy, make_rows: MakeRows) -> None:
    study = make_study('methods = ["openima"]\nseeds = 1', head='metrics = ["loss_ce"]')
    table = summarise(study, rows_of(study, make_rows, loss_ce=[2.0, 1.0]))
    assert table["loss_ce"].tolist() == [1.0]
    with pytest.raises(InputError, match="small: no row has a number 'loss_ce'"):
        summarise(study, rows_of(study, make_rows))
