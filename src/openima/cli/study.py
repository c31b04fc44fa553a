"""`openima study`: run the experiments of a study file, and read tables and figures from rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from openima.cli.printing import show
from openima.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from openima.study.plan import Study

study_app = typer.Typer(no_args_is_help=True)

StudyFile = Annotated[Path, typer.Argument(metavar="STUDY", help="A study file (TOML).")]
ResultsFolder = Annotated[
    Path, typer.Option("--results", help="The folder of rows; others may work on it too.")
]
Only = Annotated[
    list[str] | None,
    typer.Option(help="Which trials: dataset=photo,method=openima; also settings and seeds."),
]
Seeds = Annotated[int | None, typer.Option(min=1, help="Only the first so many seeds.")]
AllVersions = Annotated[
    bool, typer.Option(help="Use rows of several versions of the code together.")
]
Weight = Annotated[float, typer.Option(help="The weight of SC in SC&ACC.")]

Format = Literal["terminal", "markdown", "csv", "latex"]

RESULTS = Path("results")


@study_app.callback()
def study() -> None:
    """Run the experiments of a study file, and read tables and figures from their rows."""


@study_app.command()
def run(
    study: StudyFile,
    results: ResultsFolder = RESULTS,
    only: Only = None,
    seeds: Seeds = None,
    jobs: Annotated[int, typer.Option(min=1, help="Processes that share the work.")] = 1,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads of each process.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    data: Annotated[Path | None, typer.Option(help="The folder of the data sets.")] = None,
    save_every: Annotated[float, typer.Option(help="Seconds between checkpoints.")] = 60.0,
    time_limit: Annotated[
        float | None, typer.Option(min=0, help="Seconds after which no further trial is begun.")
    ] = None,
) -> None:
    """Run the trials of a study that have no rows yet; a killed run goes on where it was."""
    from openima.study.plan import narrowed, read_study
    from openima.study.runner import run_study
    from openima.study.worker import Options

    found = read_study(study)
    options = Options(
        results=str(results),
        data=None if data is None else str(data),
        device=device,
        threads=threads,
        save_every=save_every,
        time_limit=time_limit,
    )
    outcome = run_study(found.title, narrowed(found, only or (), seeds), options, jobs)
    typer.echo(str(outcome))
    if outcome.failed or outcome.died:
        raise typer.Exit(1)


@study_app.command()
def status(study: StudyFile, results: ResultsFolder = RESULTS) -> None:
    """Say how far a study has come, and what has failed."""
    from openima.study.plan import read_study
    from openima.study.render import frame_to_terminal
    from openima.study.status import progress_of
    from openima.study.store import Results
    from openima.study.tables import one_version

    found, folder = read_study(study), Results(results)
    table = progress_of(found.trials, folder)
    show(frame_to_terminal(found.title, table))
    for note in one_version(folder.load(found.trials))[1]:
        typer.echo(note)
    for trial in found.trials:
        if error := folder.error(trial.id):
            typer.echo(f"{trial}: {error.strip().splitlines()[-1]}")


@study_app.command()
def table(
    study: StudyFile,
    results: ResultsFolder = RESULTS,
    format: Annotated[Format, typer.Option(help="How to print it.")] = "terminal",
    all_versions: AllVersions = False,
    weight: Weight = 0.5,
) -> None:
    """Print a study's table: mean ± standard error, the paper's number, the difference, seeds."""
    from openima.study.plan import read_study
    from openima.study.render import render
    from openima.study.tables import summarise

    found = read_study(study)
    rows = _rows(found, study, results, all_versions)
    text = render(found, summarise(found, rows, weight), format)
    if isinstance(text, str):
        typer.echo(text, nl=False)
    else:
        show(text)


@study_app.command()
def select(
    study: StudyFile,
    results: ResultsFolder = RESULTS,
    rule: Annotated[
        str, typer.Option(help="One of sc_and_acc, sc, acc, last, oracle.")
    ] = "sc_and_acc",
    weight: Weight = 0.5,
    all_versions: AllVersions = False,
) -> None:
    """Print which epoch of which configuration is chosen, for each line of the table and seed."""
    from openima.study.plan import read_study, searched
    from openima.study.render import frame_to_terminal
    from openima.study.select import RULES, chosen_rows, refuse_rule
    from openima.study.tables import with_settings

    refuse_rule(rule)
    found = read_study(study)
    rows = with_settings(found, _rows(found, study, results, all_versions))
    keys = list(dict.fromkeys([*found.rows, "dataset", "method", "seed"]))
    chosen = chosen_rows(rows, keys, rule, weight)
    configurations = searched(found)
    columns = [*keys, "configuration", "epoch", "sc", "val_acc", "all", "seen", "novel"]
    shown = chosen.assign(configuration=[configurations[p] for p in chosen["position"]])
    show(frame_to_terminal(f"{found.title}: {RULES[rule]}", shown[columns]))


@study_app.command()
def figure(
    study: StudyFile,
    results: ResultsFolder = RESULTS,
    out: Annotated[Path, typer.Option(help="The folder to draw into.")] = Path("docs/figures"),
    all_versions: AllVersions = False,
) -> None:
    """Draw a study's figure as PNG and SVG."""
    from openima.study.figures import draw, refuse_figure
    from openima.study.plan import read_study
    from openima.study.tables import summarise

    found = read_study(study)
    refuse_figure(found)
    rows = _rows(found, study, results, all_versions)
    for path in draw(found, summarise(found, rows), out):
        typer.echo(path)


@study_app.command()
def pack(
    study: StudyFile,
    results: ResultsFolder = RESULTS,
    used: Annotated[
        bool, typer.Option("--used", help="Only rows of the version that tables use.")
    ] = False,
) -> None:
    """Put all rows of a study into one small file, to be committed."""
    from openima.study.plan import read_study
    from openima.study.store import Results

    found, folder = read_study(study), Results(results)
    rows = _rows(found, study, results) if used else folder.load(found.trials)
    _refuse_no_rows(rows, study, results)
    typer.echo(folder.pack(found.name, rows))


@study_app.command()
def document(
    studies: Annotated[Path, typer.Argument(help="The folder of study files.")] = Path("studies"),
    results: ResultsFolder = RESULTS,
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("docs/results.md"),
) -> None:
    """Write the page of all results, and the figures beside it."""
    from openima.study.document import write_document
    from openima.study.store import Results

    files = sorted(studies.glob("*.toml"))
    if not files:
        raise InputError(
            "there are no study files",
            where=str(studies),
            expected="a folder with studies, *.toml",
            remedy="name that folder",
        )
    for path in write_document(files, Results(results), out):
        typer.echo(path)


def _rows(study: Study, file: Path, results: Path, all_versions: bool = False) -> pd.DataFrame:
    """Load the rows of one version of the code, and say on standard error what else there is."""
    from openima.study.store import Results
    from openima.study.tables import one_version

    rows, notes = one_version(Results(results).load(study.trials), mix=all_versions)
    _refuse_no_rows(rows, file, results)
    for note in notes:
        typer.echo(note, err=True)
    return rows


def _refuse_no_rows(rows: pd.DataFrame, file: Path, results: Path) -> None:
    if not len(rows):
        raise InputError(
            "the study has no rows yet",
            where=str(file),
            got=f"none in the folder {results}",
            remedy=f"make them, openima study run {file} --results {results}, or name the folder "
            "that has them: --results DIR",
        )
