"""`openima study`: run the experiments of a study file, and read tables and figures from rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from openima.study.plan import narrowed, read_study

study_app = typer.Typer(no_args_is_help=True, help=__doc__)

StudyFile = Annotated[Path, typer.Argument(metavar="STUDY", help="A study file (TOML).")]
ResultsFolder = Annotated[
    Path, typer.Option("--results", help="The folder of rows; others may work on it too.")
]
Only = Annotated[
    list[str] | None,
    typer.Option(help="Which trials: dataset=photo,method=openima; also settings and seeds."),
]
Seeds = Annotated[int | None, typer.Option(min=1, help="Only the first so many seeds.")]

RESULTS = Path("results")


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
        float | None, typer.Option(help="Seconds after which no further trial is begun.")
    ] = None,
) -> None:
    """Run the trials of a study that have no rows yet; a killed run goes on where it was."""
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
    if outcome.failed:
        raise typer.Exit(1)


@study_app.command()
def pack(study: StudyFile, results: ResultsFolder = RESULTS) -> None:
    """Put all rows of a study into one small file, to be committed."""
    from openima.study.store import Results

    found = read_study(study)
    typer.echo(Results(results).pack(found.name, found.trials))
