"""The built site in a browser: pages are whole, fit a phone and load nothing from elsewhere; search finds all keys."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from docs.site.scenario_keys import tables
from playwright.sync_api import Page

from tests.end_to_end.chromium import chromium

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
SITE = ROOT / "build" / "site"
PHONE, DESK = (390, 844), (1400, 900)
AMONG_FIRST = 4
"""A key counts as found if its own entry is among the first results: several laws may have a key of the same name."""


@pytest.fixture(scope="module")
def site() -> Path:
    """The site, built anew; a warning, a broken link or a page that reads badly fails the build."""
    done = subprocess.run(
        [sys.executable, "-m", "docs.site"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return SITE


@pytest.fixture
def tab() -> Iterator[Page]:
    with chromium() as browser:
        yield browser.new_page(viewport={"width": DESK[0], "height": DESK[1]})


def colour(tab: Page) -> list[int]:
    """The background of a page, as red, green and blue."""
    drawn = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    return [int(part) for part in drawn.removeprefix("rgb(").removesuffix(")").split(",")[:3]]


def test_every_page_is_whole_on_a_phone_and_a_desk_and_asks_nobody_else(site, tab):
    asked, faults = [], []
    tab.on("request", lambda request: asked.append(request.url))
    tab.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    tab.on("pageerror", lambda error: faults.append(str(error)))
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 40
    for width, height in (PHONE, DESK):
        tab.set_viewport_size({"width": width, "height": height})
        for page in pages:
            tab.goto(page.as_uri())
            where = f"{page.relative_to(site)} at {width} px"
            assert tab.evaluate("document.documentElement.scrollWidth") <= width, f"{where} scrolls sideways"
            broken = "[...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src)"
            assert tab.evaluate(broken) == [], where
            assert tab.locator("h1").first.inner_text().strip(), where
    assert {url for url in asked if not url.startswith(("file:", "data:", "blob:"))} == set()
    assert faults == []


@pytest.mark.parametrize(("scheme", "is_dark"), [("light", False), ("dark", True)])
def test_pages_follow_the_system_to_light_and_dark(scheme, is_dark, site, tab):
    tab.emulate_media(color_scheme=scheme)
    tab.goto((site / "index.html").as_uri())
    tab.wait_for_function(f"document.body.dataset.mdColorScheme === '{'slate' if is_dark else 'default'}'")
    assert (sum(colour(tab)) < 3 * 100) is is_dark


def test_a_diagram_is_drawn_by_the_copy_in_the_site(site, tab):
    tab.goto((site / "architecture.html").as_uri())
    assert "flowchart" in (ROOT / "docs" / "architecture.md").read_text("utf-8")
    tab.wait_for_function("document.querySelector('div.mermaid')?.offsetHeight > 300")  # its source was a <pre>


def test_search_finds_every_scenario_key(site, tab):
    named = [(f"{table.prefix}{key.name}", table.law) for table in tables() for key in table.keys]
    assert len(named) > 100
    tab.goto((site / "index.html").as_uri())
    tab.wait_for_load_state("networkidle")
    tab.keyboard.press("/")
    asked = tab.locator("dialog[aria-label=Search] input[role=combobox]")
    asked.wait_for(timeout=20_000)
    assert [(key, law) for key, law in named if not found(tab, key, f"{key} ({law})" if law else key)] == []


def found(tab: Page, key: str, heading: str) -> bool:
    """Whether the entry in the reference with that heading is among the first results for a key."""
    tab.locator("dialog[aria-label=Search] input[role=combobox]").fill(key)
    titles = "dialog[aria-label=Search] a[role=option]"
    for _ in range(40):
        results = tab.locator(titles).all_inner_texts()[:AMONG_FIRST]
        if any(text.splitlines()[0].strip() == heading for text in results if text):
            return True
        tab.wait_for_timeout(50)
    return False
