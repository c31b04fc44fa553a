import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from openima.errors import InputError, MissingPackageError
from openima.study import figures
from openima.study.figures import draw
from openima.study.plan import Study
from openima.study.tables import summarise

MakeStudy = Callable[..., Study]
MakeRows = Callable[..., pd.DataFrame]
SENSITIVITY = 'figure = "sensitivity"\nmetrics = ["all"]\nrows = ["dataset", "eta", "pseudo_share"]'


def summary(study: Study, make_rows: MakeRows) -> pd.DataFrame:
    parts = [
        make_rows(trial, all=[0.1, (place + 1) / 100]).assign(position=place)
        for place, trial in enumerate(study.trials)
    ]
    return summarise(study, pd.concat(parts))


@pytest.fixture
def sensitivity(make_study: MakeStudy) -> Study:
    return make_study(
        'datasets = ["photo"]\nmethods = ["openima"]\nseeds = 1\ngrid = { eta = [20, 1, 10] }',
        'datasets = ["photo"]\nmethods = ["openima"]\nseeds = 1\ngrid = { pseudo_share = [0.5] }',
        head=SENSITIVITY,
    )


def test_each_panel_varies_one_setting_around_the_papers(
    sensitivity: Study, make_rows: MakeRows
) -> None:
    figure = figures._sensitivity(sensitivity, summary(sensitivity, make_rows))
    eta, rho = figure.axes
    # The trials, in order: eta 20, 1 and 10 (the paper's, with share 0.75), then share 0.5.
    points = [np.asarray(panel.lines[0].get_data()).T.tolist() for panel in (eta, rho)]
    assert points[0] == [[1, 2.0], [10, 3.0], [20, 1.0]]
    assert points[1] == [[0.5, 4.0], [0.75, 3.0]]
    assert (eta.get_xlabel(), rho.get_xlabel()) == ("eta", "rho")


def test_rules_are_bars(make_study: MakeStudy, make_rows: MakeRows) -> None:
    study = make_study(
        'methods = ["openima", "infonce"]\nseeds = 1',
        head='figure = "rules"\nrules = ["sc", "last"]\naverage = "dataset"\nmetrics = ["all"]',
    )
    figure: Figure = figures._rules(study, summary(study, make_rows))
    bars = [patch for patch in figure.axes[0].patches if isinstance(patch, Rectangle)]
    heights = [bar.get_height() for bar in bars]
    assert heights == [1.0, 2.0, 1.0, 2.0]
    legend = figure.axes[0].get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["SC", "last epoch"]


def test_each_data_set_has_panels_of_its_own(make_study: MakeStudy, make_rows: MakeRows) -> None:
    study = make_study(
        'datasets = ["cs", "photo"]\nmethods = ["openima", "infonce"]\nseeds = 1',
        'datasets = ["photo"]\nmethods = ["infonce-supcon"]\nseeds = 1',
        head='figure = "rules"\nrules = ["sc", "last"]\nmetrics = ["all", "separation"]',
    )
    table = summarise(
        study,
        pd.concat(
            make_rows(trial, all=[0.1, (place + 1) / 100], separation=1.5).assign(position=place)
            for place, trial in enumerate(study.trials)
        ),
    )
    panels = figures._rules(study, table).axes
    bars = [[p.get_height() for p in axes.patches if isinstance(p, Rectangle)] for axes in panels]
    # The trials, in order: openima and infonce on cs, the same on photo, infonce-supcon on photo.
    assert bars == [[1, 2] * 2, [1.5] * 4, [3, 4, 5] * 2, [1.5] * 6]
    assert [axes.get_title() for axes in panels] == ["cs", "cs", "photo", "photo"]
    assert [axes.get_ylabel() for axes in panels] == ["All (%)", "separation"] * 2
    ticks = [text.get_text() for text in panels[2].get_xticklabels()]
    assert ticks == ["OpenIMA", "InfoNCE", "InfoNCE+SupCon"]


@pytest.mark.parametrize(
    ("head", "block"),
    [
        ('figure = "rules"\nrows = ["dataset", "method", "eta"]', 'methods = ["openima"]'),
        ('figure = "rules"\nrows = ["dataset"]', 'methods = ["openima"]'),
        ('figure = "sensitivity"', 'methods = ["openima"]'),
        ('figure = "sensitivity"\nrows = ["eta"]', 'methods = ["openima"]'),
        (
            'figure = "sensitivity"\nrows = ["dataset", "method", "eta"]',
            'methods = ["openima", "openima-no-logit"]',
        ),
    ],
)
def test_a_figure_that_cannot_tell_the_lines_apart_is_refused(
    make_study: MakeStudy, make_rows: MakeRows, tmp_path: Path, head: str, block: str
) -> None:
    study = make_study(block, head=head)
    with pytest.raises(InputError, match="does not fit the table"):
        draw(study, summary(study, make_rows), tmp_path)


def test_a_figure_that_cannot_be_written_is_told(
    sensitivity: Study, make_rows: MakeRows, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="file: this cannot be written"):
        draw(sensitivity, summary(sensitivity, make_rows), tmp_path / "file")


def test_a_figure_is_a_png_and_an_svg_and_the_same_each_time(
    sensitivity: Study, make_rows: MakeRows, tmp_path: Path
) -> None:
    table = summary(sensitivity, make_rows)
    first = draw(sensitivity, table, tmp_path / "one")
    second = draw(sensitivity, table, tmp_path / "two")
    assert [path.name for path in first] == ["small.png", "small.svg"]
    for one, two in zip(first, second, strict=True):
        assert one.read_bytes() == two.read_bytes()
    assert first[0].read_bytes().startswith(b"\x89PNG")


def test_what_cannot_be_drawn_is_refused(
    make_study: MakeStudy,
    sensitivity: Study,
    make_rows: MakeRows,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain = make_study()
    with pytest.raises(InputError, match="this study has no figure"):
        draw(plain, summary(plain, make_rows), tmp_path)
    table = summary(sensitivity, make_rows)
    with pytest.raises(InputError, match="no rows to draw"):
        draw(sensitivity, table.assign(all=float("nan")), tmp_path)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingPackageError, match="figures need matplotlib"):
        draw(sensitivity, table, tmp_path)
