"""The code blocks of README and docs/ run, page by page, in a folder with the example files.

What a fence says is how it is tested:

- `python` runs; the blocks of a page go on from each other.
- `sh` runs line by line if it calls openima. Lines that set up a machine do not: CI itself begins
  with them. `openima demo` does not, as CI runs it as `make demo`.
- `toml` is read, and written to the file that its title names, if any; `csv` is the start of the
  example file that its title names.
- `text` is output, or a picture in letters.
- `console` shows commands that no test can run. Its title says why.
"""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.testing import CliRunner

from openima.cli import app

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
NOT_RUN = {"make", "pip", "openima demo"}


class Block(NamedTuple):
    """A fenced block: the first word after the fence, its title, and what is in it."""

    language: str
    title: str
    content: str
    line: int


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found = []
    for fence in FENCE.finditer(text):
        language, _, rest = fence[1].partition(" ")
        title = re.fullmatch(r'title="(.+)"', rest)
        assert title or not rest, f"{page.name}: {rest!r} is not a title"
        line = text.count("\n", 0, fence.start()) + 1
        found.append(Block(language, title[1] if title else "", fence[2], line))
    return found


@pytest.mark.filterwarnings("ignore", "error:::openima")  # of other packages is their affair
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
@pytest.mark.usefixtures("workplace")
def test_every_block_runs(page: Path) -> None:
    check(page)


def check(page: Path) -> None:
    """Run or read the blocks of a page, in order, in the folder where we are."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks_of(page):
        where = f"{page.name}, line {block.line}"
        if block.language == "python":
            # Lines are counted as in the page, so that a traceback shows where it went wrong.
            exec(compile("\n" * block.line + block.content, str(page), "exec"), namespace)
        elif block.language == "sh":
            for command in commands(block.content):
                run(command, where)
        elif block.language == "toml":
            tomllib.loads(block.content)
            if block.title:
                Path(block.title).write_text(block.content, encoding="utf-8")
        elif block.language == "csv":
            assert Path(block.title).read_text().startswith(block.content), where
        elif block.language == "console":
            assert block.title, f"{where}: say in a title why this is not run"
        else:
            assert block.language == "text", f"{where}: a fence of {block.language!r}"


def commands(block: str) -> list[str]:
    """Split a shell block into commands; a backslash at its end continues a line."""
    lines = block.replace("\\\n", " ").splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]


def run(line: str, where: str) -> None:
    """Run the commands of a line, joined by `&&`, in this process."""
    for command in line.split("&&"):
        words = shlex.split(command, comments=True)
        if words[0] in NOT_RUN or " ".join(words) in NOT_RUN:
            continue
        assert words[0] == "openima", f"{where}: {command}"
        done = CliRunner().invoke(app, words[1:])
        assert done.exit_code == 0, f"{where}: {command}\n{done.output}"


@pytest.mark.parametrize(
    "block",
    [
        "python\n1 / 0",
        "sh\nopenima methods --no-such-option",
        "sh\nrm -r folder",
        "toml\nkey = value",
        'csv title="nodes.csv"\nid,name',
        "console\nopenima study run studies/overall.toml",
        "python nonsense\n1",
        "\nopenima methods",
    ],
)
def test_a_block_that_is_wrong_fails(block: str, workplace: Path) -> None:
    page = workplace / "page.md"
    page.write_text(f"Text.\n\n```{block}\n```\n")
    with pytest.raises((AssertionError, ZeroDivisionError, tomllib.TOMLDecodeError)):
        check(page)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_code_hides_outside_of_fences(page: Path) -> None:
    """Indented blocks are formulas: nobody would run them."""
    outside = FENCE.sub("", page.read_text(encoding="utf-8"))
    assert not re.findall(r"^    (?:openima|python|pip|import|from) .*", outside, re.MULTILINE)
    assert "```" not in outside
