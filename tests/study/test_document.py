import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd

from openima.study.document import document, write_document
from openima.study.plan import Study, read_study
from openima.study.store import Results

REPOSITORY = Path(__file__).resolve().parents[2]
LINK = re.compile(r"!\[[^\]]*\]\(([^)]+)\)")
MakeRows = Callable[..., pd.DataFrame]


def stale(docs: Path, studies: Sequence[Path], results: Results, again: Path) -> list[str]:
    """Name the files in `docs` that are missing or would be written otherwise now.

    Of a PNG it is enough that it is there: pixels of letters differ between machines.
    """
    written = write_document(studies, results, again / "results.md")
    names = [path.relative_to(again).as_posix() for path in written]
    names += LINK.findall((docs / "results.md").read_text(encoding="utf-8"))
    missing = {name for name in names if not (docs / name).is_file()}
    texts = {name for name in names if not name.endswith(".png")} - missing
    return sorted(missing | {name for name in texts if text(docs / name) != text(again / name)})


def text(path: Path) -> str | None:
    """Read a file but for what an SVG says of the program that drew it."""
    found = path.read_text(encoding="utf-8") if path.is_file() else None
    return found and re.sub(r"<metadata>.*?</metadata>", "", found, flags=re.DOTALL)


def test_the_page_of_results_and_its_figures_are_up_to_date(tmp_path: Path) -> None:
    """If this fails: `openima study document`."""
    studies = sorted((REPOSITORY / "studies").glob("*.toml"))
    assert studies
    assert stale(REPOSITORY / "docs", studies, Results(REPOSITORY / "results"), tmp_path) == []


def test_a_page_or_a_figure_that_is_not_up_to_date_is_found(
    write_study: Callable[..., Path], make_rows: MakeRows, tmp_path: Path
) -> None:
    head = 'figure = "rules"\nmetrics = ["all"]'
    path = write_study('methods = ["openima"]\nseeds = 2', head=head)
    first, second = read_study(path).trials
    results, docs = Results(tmp_path / "results"), tmp_path / "docs"
    results.write(first.id, make_rows(first))
    write_document([path], results, docs / "results.md")

    def found() -> list[str]:
        return stale(docs, [path], results, tmp_path / "again")

    assert found() == []
    for name in ("figures/small.svg", "results.md"):
        before = (docs / name).read_text(encoding="utf-8")
        (docs / name).write_text(before.replace("OpenIMA", "Another"), encoding="utf-8")
        assert found() == [name]
        (docs / name).write_text(before, encoding="utf-8")
    with (docs / "results.md").open("a", encoding="utf-8") as page:
        page.write("![Of old](figures/old.svg)\n")
    (docs / "figures" / "small.png").unlink()
    assert found() == ["figures/old.svg", "figures/small.png", "results.md"]
    write_document([path], results, docs / "results.md")
    results.write(second.id, make_rows(second, all=[0.1, 0.2]))
    assert found() == ["figures/small.svg", "results.md"]


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
