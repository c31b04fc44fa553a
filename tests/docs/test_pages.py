"""What the pages of docs/ promise to list, they list completely."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

import openima
from openima import OpenWorldClassifier, recipes, synthetic
from openima.cli import app
from openima.report.outputs import write_outputs

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def code_words(text: str) -> set[str]:
    """Return the names in code spans and blocks: `a.fit(data, y=None)` holds a, fit, data and y."""
    code = re.findall(r"```.*?```|`[^`]+`", text, re.DOTALL)
    whole = {word for part in code for word in re.findall(r"[\w.-]+", part)}
    return whole | {name for word in whole for name in word.split(".")}


@pytest.fixture(scope="module")
def fitted() -> OpenWorldClassifier:
    graph = synthetic(120, 4, n_features=8, feature_noise=0.3, seed=0)
    settings = {"hidden": 8, "heads": 1, "clustering": {"kind": "kmeans", "n_init": 1}}
    made = OpenWorldClassifier(epochs=2, settings=settings, progress=False)
    return made.fit(graph.open_world_task(seed=0, per_class=5))


def test_every_page_is_in_the_navigation_once() -> None:
    listed = re.findall(r"^ +- .*: (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(str(p.relative_to(DOCS)) for p in DOCS.rglob("*.md"))


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_links_lead_to_files(name: str) -> None:
    """Those of the pages in docs/ are checked by mkdocs, which does not see these two."""
    links = re.findall(r"\]\(([^)#:]+)\)", (ROOT / name).read_text(encoding="utf-8"))
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_python_page_has_every_public_name() -> None:
    named = code_words(page("python.md"))
    assert set(openima.__all__) <= named


def test_the_python_page_has_every_parameter_of_every_public_function() -> None:
    named = code_words(page("python.md"))
    functions = [getattr(openima, name) for name in openima.__all__]
    functions += vars(OpenWorldClassifier).values()
    for function in filter(inspect.isfunction, functions):
        if not function.__name__.startswith("_"):
            missing = set(inspect.signature(function).parameters) - named - {"self"}
            assert not missing, function.__qualname__
    assert set(OpenWorldClassifier().get_params()) <= named


def test_the_python_page_has_everything_that_a_classifier_has(fitted: OpenWorldClassifier) -> None:
    named = code_words(page("python.md"))
    learned = {name for name in vars(fitted) if name.endswith("_")}
    own = {name for name in vars(OpenWorldClassifier) if name[0] != "_"}
    of_sklearn = {name for name in own if re.fullmatch("set_.*_request", name)}
    assert learned | own - of_sklearn <= named


def test_the_outputs_page_says_what_confidence_is_not() -> None:
    text = " ".join(page("outputs.md").split())
    assert "Neither confidence nor novelty is a probability of being right." in text
    assert "not calibrated" in text


def test_the_outputs_page_has_every_column(fitted: OpenWorldClassifier) -> None:
    named = code_words(page("outputs.md"))
    history = {str(name) for name in fitted.history_ if not str(name).endswith("_min")}
    losses = {column for column in history if column.startswith("loss_")}
    assert {*fitted.classes_table_, *fitted.predictions(), *history} - losses <= named
    assert losses
    assert "loss_..." in page("outputs.md")


def test_the_outputs_page_has_every_file(fitted: OpenWorldClassifier, tmp_path: Path) -> None:
    write_outputs(fitted, tmp_path / "out")
    named = code_words(page("outputs.md"))
    for path in (tmp_path / "out").iterdir():
        assert path.name in named or (path.suffix == ".parquet" and path.stem + ".csv" in named)


def test_the_command_line_page_has_every_command_and_option() -> None:
    named = code_words(page("command-line.md"))
    leaves = dict(_leaves("openima", typer.main.get_command(app)))
    assert {"openima fit", "openima study run"} <= set(leaves)
    for name, command in leaves.items():
        assert name.split()[-1] in named, name
        for option in command.params:
            spelled = {o for o in (*option.opts, *option.secondary_opts) if o[:5] != "--no-"}
            assert option.param_type_name == "argument" or spelled <= named, f"{name} {spelled}"


def _leaves(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    """Go through the commands below a group; a group without any is a command."""
    below = getattr(command, "commands", {})
    if not below:
        yield name, command
    for part, inner in below.items():
        yield from _leaves(f"{name} {part}", inner)


def test_the_pages_of_methods_have_every_recipe_and_every_setting_of_its_own() -> None:
    pages = [code_words(path.read_text()) for path in (DOCS / "methods").glob("*.md")]
    for name, recipe in recipes().items():
        named = set().union(*(words for words in pages if name in words))
        assert {name, *recipe.config.__dataclass_fields__} <= named, name
