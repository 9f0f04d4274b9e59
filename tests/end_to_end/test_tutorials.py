"""The tutorials run, print what they printed before, have a figure and an exercise, and their pages load nothing."""

from __future__ import annotations

import functools
import importlib.util
import math
import re
from pathlib import Path
from types import ModuleType

import pytest

from tests.end_to_end.chromium import chromium

ROOT = Path(__file__).parents[2]
EXPECTED = Path(__file__).parent / "tutorials"
NUMBER = re.compile(r"([-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?)")
TOLERANCE = 0.02
"""Relative; processors differ in the last bits, which training carries into the third digit."""


def _pages() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tutorial_pages", ROOT / "docs" / "tutorial_pages.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PAGES = _pages()
NOTEBOOKS = PAGES.NOTEBOOKS
cells_of = functools.cache(lambda name: PAGES.executed(PAGES.FOLDER / f"{name}.py"))
"""Every notebook is run once for all tests of this file."""


def same_output(said: str, expected: str) -> bool:
    """Whether the words are the same and the numbers agree within the tolerance."""
    ours, theirs = (NUMBER.split(" ".join(text.split())) for text in (said, expected))
    if ours[::2] != theirs[::2]:
        return False
    numbers = zip(ours[1::2], theirs[1::2], strict=True)
    return all(_close(one.replace(",", ""), two.replace(",", "")) for one, two in numbers)


def _close(one: str, two: str) -> bool:
    """Whether numbers agree within the tolerance; those with decimals may also differ by one in the last place."""
    decimals = re.fullmatch(r"[-+]?\d+\.(\d+)", two)
    unit = 1.01 * 10.0 ** -len(decimals[1]) if decimals else 0.0
    return math.isclose(float(one), float(two), rel_tol=TOLERANCE, abs_tol=unit)


@pytest.mark.parametrize(
    ("said", "same"),
    [
        ("mean 250.4 mJ, 3 devices", True),
        ("mean  251.0 mJ,\n3 devices", True),
        ("mean 280.4 mJ, 3 devices", False),
        ("mean -250.4 mJ, 3 devices", False),
        ("mean 250.4 mJ, 4 devices", False),
        ("mean 250.4 J, 3 devices", False),
        ("mean 250.4 mJ", False),
    ],
)
def test_outputs_are_compared_by_words_and_numbers(said, same):
    assert same_output(said, "mean 250.4 mJ, 3 devices\n") is same


@pytest.mark.parametrize(("said", "same"), [("-0.2 %", True), ("+0.0 %", True), ("+0.1 %", False), ("-0.3 %", False)])
def test_small_numbers_may_be_rounded_differently(said, same):
    assert same_output(said, "-0.1 %") is same


def test_every_notebook_is_listed():
    assert sorted(NOTEBOOKS) == sorted(path.stem for path in PAGES.FOLDER.glob("*.py"))
    assert sorted(NOTEBOOKS) == sorted(path.stem for path in EXPECTED.glob("*.txt"))
    linked = re.findall(r"\(tutorials/(\w+)\.py\)", (ROOT / "docs" / "tutorials.md").read_text("utf-8"))
    assert list(NOTEBOOKS) == linked


def test_a_figure_without_a_caption_is_refused():
    drawn = {"cell_type": "code", "metadata": {}, "outputs": [{"output_type": "display_data"}]}
    drawn["outputs"][0]["data"] = {"image/png": "aGVsbG8="}
    assert PAGES.figures([{**drawn, "source": ["# Figure: a line\n", "plot()"]}]) == [("a line", "aGVsbG8=")]
    with pytest.raises(ValueError, match="without a caption"):
        PAGES.figures([{**drawn, "source": ["plot()"]}])


@pytest.mark.slow
def test_a_cell_that_fails_is_noticed(tmp_path):
    notebook = tmp_path / "broken.py"
    notebook.write_text("import marimo\n\napp = marimo.App()\n\n\n@app.cell\ndef _():\n    1 / 0\n    return\n")
    with pytest.raises(RuntimeError, match=r"broken\.py: a cell failed"):
        PAGES.executed(notebook)


@pytest.mark.slow
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_prints_what_it_printed(name):
    said, expected = PAGES.printed(cells_of(name)), (EXPECTED / f"{name}.txt").read_text("utf-8")
    assert len(expected.splitlines()) >= 2
    assert same_output(said, expected), f"printed:\n{said}\nexpected:\n{expected}"


@pytest.mark.slow
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_has_a_figure_and_ends_with_an_exercise(name):
    cells = cells_of(name)
    assert PAGES.figures(cells)
    last = cells[-1]
    assert last["cell_type"] == "markdown" and PAGES.source_of(last).startswith("## Exercise")
    assert "**Hint.**" in PAGES.source_of(last)


@pytest.mark.slow
def test_pages_load_nothing_from_elsewhere(tmp_path):
    asked, faults, sizes = [], [], {}
    for name in NOTEBOOKS:
        (tmp_path / f"{name}.html").write_text(PAGES.page(cells_of(name), name), "utf-8")
    titles = {name: PAGES.title_of(cells_of(name)) for name in NOTEBOOKS}
    (tmp_path / "index.html").write_text(PAGES.contents(titles), "utf-8")
    with chromium() as browser:
        tab = browser.new_page(viewport={"width": 390, "height": 844})
        tab.on("request", lambda request: asked.append(request.url))
        tab.on("console", lambda message: faults.append(message.text))
        tab.on("pageerror", lambda error: faults.append(str(error)))
        tab.goto((tmp_path / "index.html").as_uri())
        for name in NOTEBOOKS:
            tab.click(f'a[href="{name}.html"]')
            assert tab.locator("h1").inner_text() == titles[name]
            assert tab.evaluate("[...document.images].every(image => image.complete && image.naturalWidth > 100)")
            sizes[name] = tab.evaluate("document.documentElement.scrollWidth")
            tab.go_back()
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == [] and faults == []
    assert {name: width for name, width in sizes.items() if width > 390} == {}, "wider than a phone"
