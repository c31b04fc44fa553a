from collections.abc import Callable
from pathlib import Path

import pandas as pd

from openima.study.document import document, write_document
from openima.study.plan import Study, read_study
from openima.study.store import Results

REPOSITORY = Path(__file__).resolve().parents[2]
MakeRows = Callable[..., pd.DataFrame]


def test_the_page_of_results_is_up_to_date() -> None:
    """If this fails: `openima study document`."""
    studies = [read_study(path) for path in sorted((REPOSITORY / "studies").glob("*.toml"))]
    page = (REPOSITORY / "docs" / "results.md").read_text(encoding="utf-8")
    assert page == document(studies, Results(REPOSITORY / "results"))


def test_a_section_has_table_figure_notes_and_origin(
    write_study: Callable[..., Path], make_rows: MakeRows, tmp_path: Path
) -> None:
    head = 'figure = "rules"\nrules = ["sc", "acc"]\nnotes = "It is so because."\nplace = 2'
    path = write_study('methods = ["openima"]\nseeds = 2', head=head)
    other = write_study('methods = ["infonce"]\nseeds = 1', name="other", head="place = 1")
    trial = read_study(path).trials[0]
    results = Results(tmp_path / "results")
    results.write(trial.id, make_rows(trial))
    written = write_document([path, other], results, tmp_path / "docs" / "page.md")
    assert [p.relative_to(tmp_path / "docs").as_posix() for p in written] == [
        "page.md",
        "figures/small.png",
        "figures/small.svg",
    ]
    page = written[0].read_text(encoding="utf-8")
    assert page.index("No rows yet.") < page.index("| digits | OpenIMA | SC | 60.0")
    for part in (
        "![Small](figures/small.svg)",
        "It is so because.",
        "- Trials: 1 of 2, 0.0 hours of work.",
        "- Machine: a machine (1 trials; python 3.12, torch 2.11).",
        f"trials of each: {trial.code} (1).",
    ):
        assert part in page


def test_the_page_does_not_depend_on_the_present_code(
    make_study: Callable[..., Study], make_rows: MakeRows, tmp_path: Path
) -> None:
    study, results = make_study('methods = ["openima"]\nseeds = 1'), Results(tmp_path)
    results.write("old", make_rows(study.trials[0]).assign(trial="old", code="0"))
    assert "trials of each: 0 (1)" in document([study], results)
