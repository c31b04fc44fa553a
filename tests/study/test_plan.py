from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from openima.errors import InputError
from openima.graph.task import PAPER_SEEDS
from openima.study.plan import Study, narrowed, read_study, searched
from openima.study.tables import summarise

STUDIES = sorted(Path(__file__).resolve().parents[2].glob("studies/*.toml"))
MakeStudy = Callable[..., Study]


def test_trials_are_all_combinations_the_first_seed_first(make_study: MakeStudy) -> None:
    study = make_study(
        'methods = ["openima"]\nseeds = 2\ngrid = { eta = [1, 2], pseudo_share = [0.5] }',
        'methods = ["infonce", "openima"]\nseeds = 3',
    )
    found = [(t.seed, t.method, t.changes.get("eta")) for t in study.trials]
    first, second, third = PAPER_SEEDS[:3]
    assert found == [
        (first, "openima", 1),
        (first, "openima", 2),
        (first, "infonce", None),
        (first, "openima", None),
        (second, "openima", 1),
        (second, "openima", 2),
        (second, "infonce", None),
        (second, "openima", None),
        (third, "infonce", None),
        (third, "openima", None),
    ]


def test_a_trial_of_two_blocks_is_one(make_study: MakeStudy) -> None:
    blocks = ('methods = ["openima"]\nseeds = 1\ngrid = { eta = [1, 5] }',) * 2
    assert len(make_study(*blocks).trials) == 2


@pytest.mark.parametrize(
    ("block", "head", "message"),
    [
        ('methods = ["openima"]\ncolour = 1', "", "unknown key 'colour'"),
        ('methods = ["openima"]', "colour = 1", "unknown key 'colour'"),
        ('methods = ["opnima"]', "", "did you mean 'openima'"),
        ('methods = ["openima"]\ndatasets = ["foto"]', "", "no data set called 'foto'"),
        ('methods = ["openima"]\nseeds = 11', "", "Expected 1 to 10. Got 11"),
        ('methods = ["openima"]\nseeds = "all"', "", "Expected 1 to 10"),
        ('methods = ["openima"]\ngrid = { etta = [1] }', "", "no setting 'etta'"),
        ("seeds = 2", "", "trials need 'methods'"),
        ('methods = ["openima"]', 'rules = ["best"]', "no rule 'best'"),
    ],
)
def test_mistakes_are_refused(make_study: MakeStudy, block: str, head: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_study(block, head=head)


def test_a_study_without_trials_or_title_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text('title = "x"\nabout = "y"\n')
    with pytest.raises(InputError, match=r"study\.toml: a study needs 'trials'"):
        read_study(path)


def test_a_study_can_be_narrowed(make_study: MakeStudy) -> None:
    study = make_study('methods = ["openima", "infonce"]\nseeds = 3\ngrid = { epochs = [1, 2] }')
    assert len(narrowed(study)) == 12
    assert len(narrowed(study, seeds=1)) == 4
    assert {t.method for t in narrowed(study, ["dataset=digits,method=infonce"])} == {"infonce"}
    assert len(narrowed(study, ["method=infonce", "method=openima"])) == 12
    assert len(narrowed(study, ["epochs=2", f"seed={PAPER_SEEDS[1]}"])) == 2
    with pytest.raises(InputError, match="no trial has method=orca"):
        narrowed(study, ["method=orca"])
    with pytest.raises(InputError, match="no trial has colour=red"):
        narrowed(study, ["colour=red"])
    with pytest.raises(InputError, match="name=value"):
        narrowed(study, ["photo"])


def test_what_is_searched_is_what_differs(make_study: MakeStudy) -> None:
    study = make_study('methods = ["openima"]\nseeds = 2\ngrid = { eta = [1.0, 2.5] }')
    assert searched(study) == ["eta 1", "eta 2.5"] * 2


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_every_number_of_the_paper_has_a_place_in_its_table(path: Path) -> None:
    study = read_study(path)
    assert len({trial.id for trial in study.trials}) == len(study.trials)
    empty = pd.DataFrame(columns=["dataset", "method", "seed", "position", "trial", "epoch"])
    summary = summarise(study, empty)
    shown = {round(v, 6) for m in study.metrics for v in summary[f"{m}_paper"].dropna()}
    named = {
        round(value, 6) for entry in study.paper for m, value in entry.items() if m in study.metrics
    }
    assert named <= shown
    for entry in study.paper:
        assert set(entry) <= {*study.rows, *study.metrics, "rule"}


def test_the_papers_openima_is_in_the_overall_study() -> None:
    study = read_study(next(path for path in STUDIES if path.stem == "overall"))
    found = {e["dataset"]: e["all"] for e in study.paper if e["method"] == "openima"}
    expected = {"citeseer": 68.1, "photo": 83.6, "computers": 67.8, "cs": 77.1, "physics": 78.0}
    assert {name: found[name] for name in expected} == expected
