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


M = 'methods = ["openima"]'
ROWS = "one of dataset, method"


@pytest.mark.parametrize(
    ("block", "head", "message"),
    [
        (f"{M}\ncolour = 1", "", r"unknown key 'colour' in \[\[trials\]\]. Expected one of meth"),
        (M, "colour = 1", "unknown key 'colour'. Expected one of title"),
        ('methods = ["opnima"]', "", "did you mean 'openima'"),
        ('methods = "openima"', "", r"'methods' in .* is a list of .*different names"),
        ("methods = []", "", r"Expected methods = \[.*Got \[\]"),
        (f'{M}\ndatasets = ["foto"]', "", "no data set called 'foto'"),
        (f'{M}\ndatasets = "photo"', "", r"Expected datasets = \[.*Got 'photo'"),
        (f"{M}\nseeds = 11", "", "Expected 1 to 10. Got 11"),
        (f'{M}\nseeds = "all"', "", "Expected 1 to 10"),
        (f"{M}\nseeds = true", "", "Expected 1 to 10. Got True"),
        (f"{M}\ngrid = {{ etta = [1] }}", "", "no setting 'etta'"),
        (f"{M}\ngrid = {{ eta = [] }}", "", r"'eta' in grid is a list of values.*Got \[\]"),
        (f"{M}\ngrid = {{ eta = 10.0 }}", "", r"Expected eta = \[1, 2\]. Got 10.0"),
        (f"{M}\ngrid = {{ seed = [3] }}", "", "'seed' is not set in a study file. Remedy"),
        (f'{M}\ngrid = {{ device = ["cuda"] }}', "", "'device' is not set in a study file"),
        (f"{M}\ngrid = [1]", "", r"'grid' in .* is a table.*Got \[1\]"),
        ("seeds = 2", "", "trials need 'methods'"),
        (M, 'rules = ["best"]', "no rule 'best'"),
        (M, 'metrics = ["al"]', "unknown metric 'al'.*did you mean 'all'"),
        (M, 'metrics = ["all", "all"]', "'metrics' is a list of different names"),
        (M, 'rows = "dataset"', r"'rows' is a list of .*Got 'dataset'"),
        (M, 'rows = ["datset"]', "rows: 'datset' does not tell all trials apart. Expected dataset"),
        (M, 'rows = ["dataset", "fan_outs"]', "'fan_outs' does not .* a text or a number"),
        ('methods = ["openima", "orca"]', 'rows = ["dataset"]', "several methods .* add 'method'"),
        (M, 'average = "foo"', f"unknown average 'foo'. Expected {ROWS}"),
        (M, 'figure = "foo"', "unknown figure 'foo'. Expected one of sensitivity, rules"),
        (M, 'place = "x"', "'place' is a whole number. Expected place = 1. Got 'x'"),
        (M, "paper = [1]", r"Expected \[\[paper\]\] above each"),
        (M, "[[paper]]\ndatset = 1", r"unknown key 'datset' in \[\[paper\]\].*'dataset'"),
        (M, '[[paper]]\ndataset = "digit"', 'no line of dataset "digit". Expected one of "digits"'),
        (M, '[[paper]]\nmethod = "orca"\nall = 1', 'no line of method "orca". Expected .*openima'),
        (M, "[[paper]]\ndataset = 2020-01-01", r"'dataset' in \[\[paper\]\] is a text or a num"),
        (M, '[[paper]]\nall = "61"', r"'all' in \[\[paper\]\] is a number. .*Got '61'"),
    ],
)
def test_mistakes_are_refused(
    write_study: Callable[..., Path], block: str, head: str, message: str
) -> None:
    path = write_study(block, head=head)
    with pytest.raises(InputError, match=rf"small\.toml: .*{message}") as found:
        read_study(path)
    assert "\n" not in str(found.value)


@pytest.mark.parametrize("name", ["seed", "device"])
def test_seeds_and_devices_are_no_settings(make_study: MakeStudy, name: str) -> None:
    with pytest.raises(InputError, match=f"'{name}' is not set in a study file.*--device"):
        make_study('methods = ["openima"]', small=f"{{ {name} = 3 }}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('title = "x"\ntrials = "abc"', r"'trials' is a list of tables. Expected \[\[trials\]\] a"),
        ("title = 3", "'title' is a text. Expected title = .* Got 3"),
    ],
)
def test_a_study_is_made_of_texts_and_tables(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "study.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=rf"study\.toml: {message}"):
        read_study(path)


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
