from __future__ import annotations

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from openima.errors import MissingFileError
from openima.report.html import write_report

Writer = Callable[..., Path]
HOSTILE = ("</script><script>hacked()</script>", "<!--", "{{style}}", "\u2028", "a & b")


class Tags(HTMLParser):
    """Collects the tags of a page, and what would be fetched from elsewhere."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href")]


def payload_of(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="payload">(.*?)</script>', page, re.S)
    assert found is not None
    payload: dict[str, Any] = json.loads(found[1])
    return payload


def test_is_one_file_that_needs_no_other(run_in: Writer) -> None:
    directory = run_in(images=True)
    before = set(directory.iterdir())
    path = write_report(directory)
    assert path == directory / "report.html"
    assert set(directory.iterdir()) - before == {path}
    page = path.read_text(encoding="utf-8")
    assert all(link.startswith("data:") for link in Tags(page).links)
    assert not re.search(r"@import|url\(|fetch\(|XMLHttpRequest|import\(", page)
    assert "{{" not in page


def test_the_same_files_give_the_same_bytes_and_an_old_page_is_replaced(run_in: Writer) -> None:
    directory = run_in()
    (directory / "report.html").write_text("old")
    first = write_report(str(directory)).read_bytes()
    assert first.startswith(b"<!doctype html>")
    assert write_report(directory).read_bytes() == first


def test_names_of_the_user_never_become_markup(run_in: Writer) -> None:
    plain = Tags(write_report(run_in(n=20)).read_text(encoding="utf-8"))
    ids = [f"{HOSTILE[i % len(HOSTILE)]} {i}" for i in range(20)]
    directory = run_in(n=20, known=HOSTILE[:2], ids=ids, features=HOSTILE)
    run = json.loads((directory / "run.json").read_text())
    run["graph"]["name"] = "".join(HOSTILE)
    (directory / "run.json").write_text(json.dumps(run))
    page = write_report(directory).read_text(encoding="utf-8")
    assert Tags(page).tags == plain.tags
    payload = payload_of(page)
    assert payload["points"]["id"] == ids
    assert page.count("<style>") == 1


def test_a_folder_without_a_run_is_left_alone(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError):
        write_report(tmp_path)
    assert list(tmp_path.iterdir()) == []
