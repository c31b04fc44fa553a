"""`docs/results.md`, written from the study files and the rows of their trials alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from openima.files import writing
from openima.study.figures import draw
from openima.study.plan import Study, read_study
from openima.study.render import lay_out, to_markdown
from openima.study.store import Results
from openima.study.tables import one_version, summarise

_HEAD = """# Results

<!-- Written by `openima study document`; change studies/*.toml or the rows, not this file. -->

The paper's experiments, run by this project: mean ± standard error over seeds, in percent where
the paper has percent, with the paper's number and the difference to it. A dash means that there is
no number: not in the paper, not known to us, or not run yet. For each seed one row, an epoch of one
configuration, is chosen from all of them without looking at hidden labels, by SC&ACC unless a
table says otherwise. `openima study table studies/NAME.toml` prints each table from the rows in
`results/`; `openima study run studies/NAME.toml` makes the rows that are missing.
"""


def document(studies: Sequence[Study], results: Results, figures: str = "figures") -> str:
    """Write the page: a section for each study, with its table, figure, notes and origin.

    Studies come as their `place` says. `figures` is the folder of figures as the page sees it.
    """
    in_order = sorted(studies, key=lambda study: (study.place, study.name))
    sections = [_HEAD, *(_section(study, results, figures) for study in in_order)]
    return "\n".join(sections)


def write_document(paths: Sequence[Path], results: Results, out: Path) -> list[Path]:
    """Write the page of these study files to `out`, and their figures beside it."""
    studies = [read_study(path) for path in paths]
    page = document(studies, results)
    with writing(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(page, encoding="utf-8")
    written = [out]
    for study in studies:
        rows, _ = one_version(results.load(study.trials))
        if study.figure and len(rows):
            written += draw(study, summarise(study, rows), out.parent / "figures")
    return written


def _section(study: Study, results: Results, figures: str) -> str:
    rows, remarks = one_version(results.load(study.trials))
    parts = [f"## {study.title}\n", f"{study.about}\n"]
    if len(rows):
        parts.append(to_markdown(lay_out(study, summarise(study, rows))))
        if study.figure:
            parts.append(f"![{study.title}]({figures}/{study.name}.svg)\n")
    else:
        parts.append("No rows yet.\n")
    if study.notes:
        parts.append(f"{study.notes}\n")
    if len(rows):
        parts.append("\n".join(_origin(study, rows, remarks)) + "\n")
    return "\n".join(parts)


def _origin(study: Study, rows: pd.DataFrame, remarks: Sequence[str]) -> list[str]:
    """Say how many trials there are, of which code, and on what they ran."""
    once = rows.drop_duplicates("trial")
    hours = rows["seconds"].sum() / 3600
    lines = [f"- Trials: {len(once)} of {len(study.trials)}, {hours:.1f} hours of work."]
    for machine, part in once.groupby("machine"):
        versions = [json.loads(text) for text in sorted(part["versions"].unique())]
        said = "; ".join(", ".join(f"{k} {v}" for k, v in of.items()) for of in versions)
        lines.append(f"- Machine: {machine} ({len(part)} trials; {said}).")
    codes = ", ".join(f"{code} ({n})" for code, n in sorted(once["code"].value_counts().items()))
    lines.append(f"- Versions of the code, and trials of each: {codes}.")
    return lines + [f"- {remark}." for remark in remarks]
