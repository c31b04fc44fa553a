"""The page in a real browser: what it shows is compared with the files it was made of."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

from openima.metrics import open_world_accuracy
from openima.report.confusion import compare
from openima.report.html import render, write_report
from openima.report.payload import make_payload
from openima.report.reading import read_run

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

Writer = Callable[..., Path]
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
FLAGS += ["--disable-component-update", "--disable-sync"]
STILL = {"reduced_motion": "reduce"}
DESKTOP, PHONE = {"width": 1360, "height": 900}, {"width": 390, "height": 844}


DRAWN = """new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => {
  const map = document.getElementById("map");
  const context = new OffscreenCanvas(map.width, map.height).getContext("2d");
  context.drawImage(map, 0, 0);
  const { data } = context.getImageData(0, 0, map.width, map.height);
  done(data.filter((value, i) => i % 4 === 3 && value > 0).length);
})))"""
"""How many pixels of the map are not empty."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip(f"there is no browser: none of {', '.join(NAMES)} is installed")
    sandbox = hasattr(os, "geteuid") and os.geteuid() != 0  # Chromium has none for root
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path, args=FLAGS, chromium_sandbox=sandbox
        )
        yield browser
        browser.close()


@contextmanager
def opened(browser: Browser, path: Path, **options: Any) -> Iterator[Page]:
    """Open a page offline; it must fetch nothing else and keep the console empty."""
    context = browser.new_context(**{"viewport": DESKTOP, "offline": True, **STILL, **options})
    context.set_default_timeout(10_000)
    page = context.new_page()
    said: list[str] = []
    fetched: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("dialog", lambda dialog: said.append(dialog.message))
    page.on("request", lambda request: fetched.append(request.url))
    page.goto(path.as_uri())
    page.wait_for_function("window.openima")
    yield page
    page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50)))")
    assert said == []
    assert [url for url in fetched if not url.startswith("data:")] == [path.as_uri()]
    context.close()


@pytest.fixture(scope="module")
def directory(run_in: Writer) -> Path:
    out = run_in(n=80, images=True)
    write_report(out)
    return out


@pytest.fixture
def page(browser: Browser, directory: Path) -> Iterator[Page]:
    with opened(browser, directory / "report.html") as page:
        yield page


def hover(page: Page, node: str) -> None:
    page.locator("#map").scroll_into_view_if_needed()
    page.mouse.move(0, 0)
    page.mouse.move(*page.evaluate("(id) => openima.at(id)", node))


def told(page: Page) -> list[str]:
    """Read the tooltip: id, class, confidence, novelty."""
    return [page.inner_text(f"#tip .{part}") for part in ("who", "class", "confidence", "novelty")]


def column(page: Page, key: str) -> list[str]:
    if key == "class":
        return page.locator("#classes tbody th").all_inner_texts()
    return page.locator(f"#classes tbody [data-key={key}]").all_inner_texts()


def toggle(page: Page, name: str) -> Locator:
    return page.locator(".toggle", has=page.get_by_text(name, exact=True))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_fits_the_screen_without_a_word_in_the_console(
    browser: Browser, directory: Path, viewport: dict[str, int], scheme: str
) -> None:
    path = directory / "report.html"
    with opened(browser, path, viewport=viewport, color_scheme=scheme) as page:
        assert page.evaluate("document.documentElement.scrollWidth") == viewport["width"]
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, paper[4:-1].split(", "))) < 200) == (scheme == "dark")
        assert page.inner_text("h1") == "2 known classes, 2 discovered"
        assert "All 80 nodes" in page.inner_text("#map-note")
        page.emulate_media(color_scheme="light" if scheme == "dark" else "dark")


def test_a_point_tells_what_the_predictions_say(page: Page, directory: Path) -> None:
    predictions = pd.read_parquet(directory / "predictions.parquet")
    nodes = pd.read_parquet(directory / "nodes.parquet")
    assert page.is_hidden("#tip")
    for label in predictions["label"].unique():
        row = predictions[predictions["label"] == label].iloc[1]
        hover(page, row["id"])
        shown = [row["id"], label, f"{row['confidence']:.3f}", f"{row['novelty']:.3f}"]
        assert told(page) == shown
        assert ("discovered" in page.inner_text("#tip")) == row["is_novel"]
        truth = nodes["truth"][row.name]
        assert (f"true class: {truth}" in page.inner_text("#tip")) == pd.notna(truth)
        assert page.locator("#tip canvas").count() == 1
    page.mouse.move(2, 2)
    assert page.is_hidden("#tip")


def test_a_click_keeps_a_node_until_escape(page: Page) -> None:
    hover(page, "node 7")
    page.mouse.down()
    page.mouse.up()
    page.mouse.move(2, 2)
    assert told(page)[0] == "node 7"
    page.keyboard.press("Escape")
    assert page.is_hidden("#tip")


def test_a_tap_shows_a_node(browser: Browser, directory: Path) -> None:
    path = directory / "report.html"
    with opened(browser, path, viewport=PHONE, has_touch=True, is_mobile=True) as page:
        page.locator("#map").scroll_into_view_if_needed()
        page.touchscreen.tap(*page.evaluate("openima.at('node 7')"))
        assert told(page)[0] == "node 7"


def test_the_table_is_that_of_the_file_and_sorts(page: Page, directory: Path) -> None:
    classes = pd.read_parquet(directory / "classes.parquet")
    assert column(page, "class") == classes["class"].tolist()
    assert column(page, "size") == classes["size"].astype(str).tolist()
    assert column(page, "given") == classes["n_known"].astype(str).tolist()
    assert column(page, "cohesion") == [f"{value:.3f}" for value in classes["cohesion"]]
    assert column(page, "nearest") == classes["nearest_known"].fillna("").tolist()
    first = page.locator("#classes tbody tr").first
    assert first.locator("[data-key=features] .chip").all_inner_texts() == ["wings", "legs"]
    exemplars = first.locator("[data-key=exemplars] button")
    names = [button.get_attribute("aria-label") for button in exemplars.all()]
    assert names == classes["exemplars"][0].tolist()

    heading = page.locator("#classes thead th", has_text="separation")
    button = heading.locator("button")
    button.click()
    falling = classes.sort_values("separation", ascending=False)["class"].tolist()
    assert column(page, "class") == falling
    assert heading.get_attribute("aria-sort") == "descending"
    button.focus()
    page.keyboard.press("Enter")
    assert column(page, "class") == falling[::-1]
    assert heading.get_attribute("aria-sort") == "ascending"
    page.locator("#classes thead button", has_text="nearest known").click()
    assert column(page, "nearest") == ["alpha", "alpha", "", ""]  # what is not there comes last
    assert heading.get_attribute("aria-sort") == "none"


def test_a_class_can_be_switched_off(page: Page, directory: Path) -> None:
    predictions = pd.read_parquet(directory / "predictions.parquet")
    node = predictions["id"][predictions["label"] == "beta"].iloc[0]
    assert toggle(page, "beta").locator(".size").inner_text() == str(
        (predictions["label"] == "beta").sum()
    )
    toggle(page, "beta").click()
    assert toggle(page, "beta").get_attribute("aria-pressed") == "false"
    hover(page, node)
    assert page.is_hidden("#tip") or told(page)[1] != "beta"
    toggle(page, "beta").focus()
    page.keyboard.press("Space")
    assert toggle(page, "beta").get_attribute("aria-pressed") == "true"
    hover(page, node)
    assert told(page)[:2] == [node, "beta"]
    page.locator(".group").last.get_by_text("all or none").click()
    pressed = page.locator(".toggle[aria-pressed=true] .name").all_inner_texts()
    assert pressed == ["alpha", "beta"]


def test_switching_a_class_off_takes_its_points_away(page: Page) -> None:
    def drawn() -> int:
        page.mouse.move(2, 2)
        page.evaluate("document.activeElement.blur()")
        count: int = page.evaluate(DRAWN)
        return count

    page.uncheck("#pictures")
    counts = [drawn()]
    for name in ("alpha", "beta", "novel_1", "novel_2"):
        toggle(page, name).click()
        counts.append(drawn())
    assert sorted(counts, reverse=True) == counts
    assert len(set(counts)) == 5
    assert counts[-1] == 0


def test_finds_a_node_by_its_id(page: Page) -> None:
    page.fill("#find-id", "node 33")
    page.keyboard.press("Enter")
    assert told(page)[0] == "node 33"
    page.fill("#find-id", "nobody")
    page.keyboard.press("Enter")
    assert "No node" in page.inner_text("#find-status")
    assert told(page)[0] == "node 33"


def test_a_typical_node_is_shown_on_the_map_though_its_class_is_off(page: Page) -> None:
    toggle(page, "novel_2").click()
    button = page.locator("#classes tbody tr").last.locator("[data-key=exemplars] button").first
    button.click()
    assert told(page)[:2] == [button.get_attribute("aria-label"), "novel_2"]
    assert toggle(page, "novel_2").get_attribute("aria-pressed") == "true"


def test_the_map_is_read_with_keys_alone(page: Page) -> None:
    page.focus("#map")
    page.keyboard.press("ArrowRight")
    first = told(page)[0]
    before = page.evaluate("(id) => openima.at(id)", first)
    page.keyboard.press("ArrowRight")
    second = told(page)[0]
    after = page.evaluate("(id) => openima.at(id)", second)
    assert second != first
    assert after[0] > before[0]
    page.keyboard.press("+")
    zoomed = [page.evaluate("(id) => openima.at(id)", node) for node in (first, second)]
    assert zoomed[1][0] - zoomed[0][0] > 1.3 * (after[0] - before[0])
    page.keyboard.press("Escape")
    assert page.is_hidden("#tip")


def test_everything_can_be_reached_with_tab(page: Page) -> None:
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.className"))
    assert {"colour", "pictures", "find-id", "map", "zoom-in", "toggle", "picture"} <= reached


def test_histograms_count_the_predictions(page: Page, directory: Path) -> None:
    predictions = pd.read_parquet(directory / "predictions.parquet")
    page.wait_for_selector("#histograms rect")
    for i, score in enumerate(("confidence", "novelty")):
        figure = page.locator("#histograms figure").nth(i)
        for kind, rows in (("known", ~predictions["is_novel"]), ("discovered", None)):
            chosen = predictions[score][predictions["is_novel"] if rows is None else rows]
            bars = figure.locator(f"rect.{kind}").all()
            counts = [int(bar.get_attribute("data-count") or -1) for bar in bars]
            assert counts == np.histogram(chosen, 25, (0, 1))[0].tolist()


def test_the_matrix_and_the_accuracies_are_those_of_the_files(page: Page, directory: Path) -> None:
    files = read_run(directory)
    test = (files.nodes["part"] == "test") & files.nodes["truth"].notna()
    truth, label = files.nodes["truth"][test], files.predictions["label"][test]
    rows = page.locator("#confusion tbody tr:has(th)")
    heads = page.locator("#confusion thead th").all_inner_texts()
    for row in rows.all():
        name = row.locator("th").inner_text()
        cells = row.locator("td:not(.gap):not(.recall)").all_inner_texts()
        counts = [int(((truth == name) & (label == head)).sum()) for head in heads]
        assert [int(cell) for cell in cells] == counts
    names = ["alpha", "beta", "hidden 0", "hidden 1"]
    ids = {name: i for i, name in enumerate([*names, "novel_1", "novel_2"])}
    accuracy = open_world_accuracy(label.map(ids).replace({4: 2, 5: 3}), truth.map(ids), n_seen=2)
    shown = page.locator("#accuracy dd:not(.note)").all_inner_texts()
    assert shown == [f"{100 * value:.1f}%" for value in vars(accuracy).values()]


def test_the_curves_and_the_table_of_epochs_show_the_history(page: Page, directory: Path) -> None:
    history = pd.read_parquet(directory / "history.parquet")
    page.wait_for_selector("#curves path")
    titles = page.locator("#curves h3").all_inner_texts()
    assert titles == [
        "Silhouette and validation",
        "Accuracy on hidden labels",
        "Imbalance and separation",
        "Loss",
    ]
    assert f"epoch {history['epoch'][2]}" in page.locator("#curves .legend").first.inner_text()
    page.locator("summary", has_text="Every epoch").click()
    assert page.locator("#epochs tbody tr").count() == len(history)
    chosen = page.locator("#epochs .chosen td").all_inner_texts()
    assert chosen[0] == "3"
    assert float(chosen[1]) == pytest.approx(history["sc"][2], rel=5e-3)


def test_colours_by_score_and_by_mistake_change_the_map(page: Page) -> None:
    def picture() -> bytes:
        page.mouse.move(2, 2)
        page.evaluate("new Promise((done) => setTimeout(done, 80))")
        return page.locator("#map").screenshot()

    seen = {picture()}
    for choice in ("confidence", "novelty", "wrong"):
        page.select_option("#colour", choice)
        seen.add(picture())
    page.uncheck("#pictures")
    seen.add(picture())
    assert len(seen) == 5


def test_names_that_look_like_markup_are_shown_as_they_are(
    browser: Browser, run_in: Writer
) -> None:
    script = "<script>alert(1)</script>"
    image = '"><img src=x onerror=alert(2)>'
    ids = [f"</script>{image} {i}" for i in range(24)]
    out = run_in(n=24, known=(script, image), ids=ids, features=(script, "{{data}}"))
    with opened(browser, write_report(out)) as page:
        assert column(page, "class")[:2] == [script, image]
        assert page.locator("#toggles .name").all_inner_texts()[:2] == [script, image]
        hover(page, ids[0])
        assert told(page)[0] == ids[0]
        chips = page.locator("#classes tbody tr").first.locator("[data-key=features] .chip")
        assert chips.all_inner_texts() == [script, "{{data}}"]
        assert page.locator("img").count() == 0


@pytest.mark.parametrize(
    "options",
    [
        {"truth": False},
        {"novel": ()},
        {"known": ("only",), "novel": ("novel_1",)},
        {"n": 1, "known": ("alpha",), "novel": (), "epochs": 1},
        {"n": 3, "epochs": 1},
        {"n": 150, "known": [f"class {i}" for i in range(30)], "ids": range(150)},
    ],
    ids=["no truth", "nothing novel", "one and one", "one node", "empty classes", "many classes"],
)
def test_odd_runs_have_a_page_too(
    browser: Browser, run_in: Writer, options: dict[str, Any]
) -> None:
    out = run_in(**options)
    classes = pd.read_parquet(out / "classes.parquet")
    with opened(browser, write_report(out)) as page:
        assert column(page, "class") == classes["class"].tolist()
        assert page.is_visible("#truth") == (compare(read_run(out)) is not None)
        page.wait_for_selector("#curves path", state="attached")


def test_a_sample_says_so(browser: Browser, run_in: Writer, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(render(make_payload(read_run(run_in(n=400)), limit=100)), encoding="utf-8")
    with opened(browser, path) as page:
        note = page.inner_text("#map-note")
        assert note.startswith("A sample of ")
        assert "of 400 nodes" in note
        assert "400" in page.inner_text("#scores-note")
