import csv
import io
from collections.abc import Callable

import pandas as pd
import pytest
from rich.console import Console

from openima.study.plan import Study
from openima.study.render import frame_to_terminal, lay_out, render, to_terminal
from openima.study.tables import summarise

MakeStudy = Callable[..., Study]
MakeRows = Callable[..., pd.DataFrame]
PAPER = '[[paper]]\nmethod = "openima"\nall = 61.0\n'


@pytest.fixture
def made(make_study: MakeStudy, make_rows: MakeRows) -> tuple[Study, pd.DataFrame]:
    study = make_study(
        'methods = ["openima", "infonce-supcon"]\nseeds = 2',
        head='metrics = ["all", "separation"]',
        tail=PAPER,
    )
    parts = [
        make_rows(trial, all=[0.5, 0.5 + place / 100], separation=[1.0, 1.25]).assign(
            position=place
        )
        for place, trial in enumerate(study.trials[:3])
    ]
    return study, summarise(study, pd.concat(parts))


def test_markdown(made: tuple[Study, pd.DataFrame]) -> None:
    assert render(*made, "markdown") == (
        "| data | method | All | paper | diff. | separation | seeds |\n"
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |\n"
        "| digits | OpenIMA | 51.0 ± 1.0 | 61.0 | -10.0 | 1.250 ± 0.000 | 2 |\n"
        "| digits | InfoNCE+SupCon | 51.0 | - | - | 1.250 | 1 |\n"
    )


def test_latex_escapes_what_it_must(made: tuple[Study, pd.DataFrame]) -> None:
    text = render(*made, "latex")
    assert isinstance(text, str)
    assert text.startswith("\\begin{tabular}{llrrrrr}\n\\toprule\ndata & method & All")
    assert "digits & OpenIMA & 51.0 $\\pm$ 1.0 & 61.0 & -10.0" in text
    assert text.count("\\\\") == 3


def test_csv_has_the_numbers_themselves(made: tuple[Study, pd.DataFrame]) -> None:
    text = render(*made, "csv")
    assert isinstance(text, str)
    lines = list(csv.DictReader(io.StringIO(text)))
    assert (lines[0]["method"], lines[0]["all"], lines[0]["all_paper"]) == ("openima", "51", "61")
    assert lines[1]["all_se"] == ""


def test_the_terminal_shows_all_cells(made: tuple[Study, pd.DataFrame]) -> None:
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(to_terminal(lay_out(*made)))
    console.print(frame_to_terminal("t", pd.DataFrame({"name": ["x"], "value": [0.12345]})))
    text = console.export_text()
    for cell in ("OpenIMA", "51.0 ± 1.0", "-10.0", "InfoNCE+SupCon", "0.123"):
        assert cell in text
