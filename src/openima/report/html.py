"""One page that shows a run: a single file that needs no network."""

from __future__ import annotations

import html
import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

from openima.files import complete_file
from openima.report.payload import make_payload
from openima.report.reading import read_run

_SCRIPTS = (
    *("dom", "glyphs", "spacing", "scatter", "map", "toggles", "table"),
    *("charts", "confusion", "main"),
)


def write_report(directory: str | Path) -> Path:
    """Make `report.html` in a folder that a run was written to, from its other files.

    An older page is replaced at once; a reader sees the old or the new, no mixture. The same
    files give the same bytes.
    """
    directory = Path(directory)
    page = render(make_payload(read_run(directory)))
    path = directory / "report.html"
    with complete_file(path) as partial:
        partial.write_text(page, encoding="utf-8")
    return path


def render(payload: dict[str, Any]) -> str:
    """Put a payload into the page.

    Ids and names are the user's: they go in as JSON without any `<`, and the scripts only ever
    set them as text, so none can end the script or become markup.
    """
    data = json.dumps(payload, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        data = data.replace(character, f"\\u{ord(character):04x}")
    parts = {
        "title": html.escape(str(payload["run"]["graph"]["name"])),
        "style": _part("page.css"),
        "script": "\n".join(_part(f"{name}.js") for name in _SCRIPTS),
        "data": data,
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda mark: parts[mark[1]], _part("page.html"))


def _part(name: str) -> str:
    return (files("openima.report") / "page" / name).read_text(encoding="utf-8")
