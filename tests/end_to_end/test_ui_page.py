"""The live page in a real browser: runs grow, break and go under its eyes, and no request leaves the machine."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from fairwave.runs.database import FILE
from tests.builders import SOFTMAX_MNIST, as_options
from tests.end_to_end.chromium import chromium
from tests.end_to_end.test_ui_command import serving
from tests.unit.ui.stored_runs import MAX_POWER, PROPOSED, a_run, an_order, being_written, write_rounds

pytestmark = pytest.mark.slow

DATA = Path(__file__).parents[1] / "data"
WIDE, PHONE = {"width": 1400, "height": 900}, {"width": 390, "height": 844}
PATIENCE_MS = 20_000
KNOWN = "Applying inline style violates"
"""Plotly's whole script would add rules for maps, which the page has none of; the policy keeps it from doing so."""
Open = Callable[..., Page]

expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


@contextlib.contextmanager
def dashboard(browser: Browser, folder: Path, *tolerated: str) -> Iterator[Open]:
    """Opens pages of a dashboard, and at the end looks at all that they asked for and complained of."""
    with serving(folder, "--port", "0") as (_, port, token):
        place, asked, complaints, contexts = f"http://127.0.0.1:{port}/", [], [], []

        def opened(where: str = "", **options) -> Page:
            context = browser.new_context(**{"viewport": WIDE, "color_scheme": "light"} | options)
            contexts.append(context)
            context.on("request", lambda request: asked.append(request.url))
            context.on("weberror", lambda error: complaints.append(str(error.error)))
            context.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
            page = context.new_page()
            page.set_default_timeout(PATIENCE_MS)
            page.goto(f"{place}?token={token}{where}")
            return page

        yield opened
        for context in contexts:
            context.close()
        assert asked and [url for url in asked if not url.startswith(place)] == []
        assert [said for said in complaints if not any(known in said for known in (KNOWN, *tolerated))] == []


POINTS = "(document.querySelector('#figure-loss .plot')?.data || []).reduce((sum, line) => sum + line.y.length, 0)"
"""Points of all curves in the figure of losses."""


def points(page: Page) -> int:
    return page.evaluate(POINTS)


def wait_for_points(page: Page, least: int) -> None:
    page.wait_for_function(f"least => {POINTS} >= least", arg=least)


def test_a_run_is_watched_while_a_writer_works(browser, tmp_path):
    with dashboard(browser, tmp_path / "runs") as opened:
        page = opened()
        expect(page.get_by_text("This folder does not exist yet.")).to_be_visible()
        expect(page.get_by_text("fairwave run small")).to_be_visible()
        options = [*as_options(SOFTMAX_MNIST), "--rounds", "400", "--schemes", "proposed", "--out", "runs/live"]
        command = [sys.executable, "-m", "fairwave", "run", "small", *options]
        with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as writer:
            try:
                expect(page.locator(".run .state")).to_have_text("running", timeout=90_000)
                page.get_by_role("link", name="live").click()
                wait_for_points(page, 2)
                before = points(page)
                wait_for_points(page, before + 5)
                expect(page.locator(".state").first).to_have_text("running")
                expect(page.get_by_text("left", exact=False).first).to_be_visible()
                slider = page.get_by_role("slider")
                reached = int(slider.get_attribute("max") or 0)
                page.wait_for_function("least => document.querySelector('#round').value > least", arg=reached)
                os.kill(writer.pid, signal.SIGINT)
                writer.wait(60)
                expect(page.locator(".state").first).to_have_text("interrupted")
                expect(page.get_by_text("fairwave resume")).to_be_visible()
                stopped = points(page)
            finally:
                writer.kill()
        resume = [sys.executable, "-m", "fairwave", "resume", "runs/live"]
        with subprocess.Popen(resume, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as writer:
            try:
                expect(page.locator(".state").first).to_have_text("running", timeout=60_000)
                wait_for_points(page, stopped + 3)
                writer.wait(120)
            finally:
                writer.kill()
        expect(page.locator(".state").first).to_have_text("done")
        wait_for_points(page, 400)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    made = tmp_path_factory.mktemp("ui") / "runs"
    a_run(made / "first")
    a_run(made / "second", rounds=6)
    (made / "first" / "report.html").write_text("<title>A report</title><script>document.title += ' ran'</script>")
    return made


def test_the_slider_shows_another_round(browser, folder):
    with dashboard(browser, folder) as opened:
        page = opened("#/run?run=first")
        table, picture = page.get_by_role("region", name="Table of devices"), page.locator("svg.cell")
        expect(table.get_by_role("row").nth(1)).to_contain_text("400.0")  # device 0 in round 4: 4 times 100 mJ
        slider = page.get_by_role("slider")
        slider.press("ArrowLeft")
        expect(page.locator("output")).to_have_text("3 of 4")
        expect(table.get_by_role("row").nth(1)).to_contain_text("300.0")
        expect(table.get_by_role("row").nth(2)).to_contain_text("echo")
        slider.fill("2")
        expect(table.get_by_role("row").nth(3)).to_contain_text("outage")
        expect(picture).to_have_attribute(
            "aria-label",
            "Map of the cell in round 2: 3 devices, 50 to 200 m from the "
            "access point; energy from 0.0\u202fmJ to 400.0\u202fmJ",
        )
        page.get_by_role("button", name="Loss", exact=True).first.click()
        expect(picture).to_have_attribute(
            "aria-label",
            "Map of the cell in round 2: 3 devices, 50 to 200 m from the access point; loss from 0.300 to 1.000",
        )
        page.get_by_role("button", name="Distance").click()
        page.get_by_role("button", name="Distance").click()
        expect(table.get_by_role("row").nth(1)).to_contain_text("200")
        page.get_by_label("Scheme").select_option("max_power")
        page.get_by_role("button", name="Follow the latest").click()
        expect(page.locator("output")).to_have_text("4 of 4")


def test_devices_stand_at_their_distances(browser, folder):
    with dashboard(browser, folder) as opened:
        page = opened("#/run?run=first")
        expect(page.locator("svg.cell .device")).to_have_count(3)
        far = page.evaluate(
            "[...document.querySelectorAll('svg.cell .device circle')].map(c => Math.hypot(c.getAttribute('cx') - 200,"
            " c.getAttribute('cy') - 200))"
        )
        assert [round(each / far[2], 6) for each in far] == [0.25, 0.5, 1.0]
        fills = page.evaluate(
            "[...document.querySelectorAll('svg.cell .device circle')].map(c => c.getAttribute('fill'))"
        )
        assert len(set(fills)) == 3


def test_two_runs_are_compared(browser, folder):
    with dashboard(browser, folder) as opened:
        page = opened()
        for name in ("first", "second"):
            page.get_by_label(f"Choose {name} for a comparison").check()
        page.get_by_role("link", name="Compare 2 runs").click()
        expect(page.get_by_role("heading", name="Comparing 2 runs")).to_be_visible()
        wait_for_points(page, 2 * 4 + 2 * 6)
        dashes = page.evaluate("document.querySelector('#figure-loss .plot').data.map(t => t.line.dash)")
        assert dashes == ["solid", "solid", "dash", "dash"]
        values = page.get_by_role("region", name="Table of values")
        expect(values.get_by_role("row")).to_have_count(5)
        expect(values.get_by_role("row").nth(3)).to_contain_text("0.600")
        differences = page.get_by_role("region", name="Differences").get_by_role("row")
        expect(differences).to_have_count(2)
        expect(differences.nth(1)).to_have_text("rounds46")
        page.get_by_role("button", name="first: max_power").click()
        page.wait_for_function("() => document.querySelector('#figure-loss .plot').data.length === 3")


def test_reports_and_results_can_be_had(browser, folder):
    with dashboard(browser, folder) as opened:
        page = opened("#/run?run=first")
        with page.expect_download() as download:
            page.get_by_role("link", name="Results as CSV").click()
        assert download.value.suggested_filename == "first.csv"
        assert Path(download.value.path()).read_text().count("\n") == 1 + 2 * 4 * 3
        with page.context.expect_page() as report:
            page.get_by_role("link", name="Open the report").click()
        expect(report.value).to_have_title("A report ran")
        assert report.value.evaluate("window.origin") == "null"


VIEWS = ("#/", "#/run?run=first", "#/compare?run=first&run=second")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_it_fits_and_can_be_read(browser, folder, size, scheme):
    """No view is wider than the window; text stands out from what is behind it as WCAG asks (4.5 to 1)."""
    with dashboard(browser, folder) as opened:
        page = opened(viewport=size, color_scheme=scheme)
        for view in VIEWS:
            page.evaluate("view => { location.hash = view }", view)
            expect(page.locator("h1")).to_be_visible()
            if view == "#/":
                expect(page.locator(".run")).to_have_count(2)
            else:
                wait_for_points(page, 8)
            assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
            contrasts = page.evaluate(CONTRASTS)
            assert len(contrasts) > 8 and {text: ratio for text, ratio in contrasts.items() if ratio < 4.5} == {}
            assert page.evaluate(UNNAMED) == []
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(14, 20, 28)"
        assert dark == (scheme == "dark")


UNNAMED = """[...document.querySelectorAll("main [role=img], main svg:not([aria-hidden]):not(.main-svg)")]
  .filter((picture) => !picture.getAttribute("aria-label")).map((picture) => picture.outerHTML)"""
CONTRASTS = """() => {
  const channel = (part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
  const pixel = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (css) => { pixel.clearRect(0, 0, 1, 1); pixel.fillStyle = css; pixel.fillRect(0, 0, 1, 1);
    return [...pixel.getImageData(0, 0, 1, 1).data].map((part) => part / 255); };
  const light = (rgb) => 0.2126 * channel(rgb[0]) + 0.7152 * channel(rgb[1]) + 0.0722 * channel(rgb[2]);
  const over = (top, below) => [0, 1, 2].map((part) => top[3] * top[part] + (1 - top[3]) * below[part]);
  const behind = (element) => {
    if (!element) return [1, 1, 1];
    const own = rgba(getComputedStyle(element).backgroundColor);
    return own[3] === 1 ? own.slice(0, 3) : over(own, behind(element.parentElement));
  };
  const found = {};
  for (const element of document.querySelectorAll("main *, header *")) {
    const text = [...element.childNodes].filter((node) => node.nodeType === 3).map((node) => node.data.trim()).join("");
    if (!text || element.closest("svg, .plot, [hidden]") || !element.checkVisibility()) continue;
    const [one, other] = [light(rgba(getComputedStyle(element).color)), light(behind(element))];
    found[text.slice(0, 40)] = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
  }
  return found;
}"""


def test_colours_follow_the_system_while_the_page_is_open(browser, folder):
    with dashboard(browser, folder) as opened:
        page = opened("#/run?run=first")
        wait_for_points(page, 8)
        colour = "document.querySelector('#figure-loss .plot').data[0].line.color"
        before = page.evaluate(colour)
        page.emulate_media(color_scheme="dark")
        page.wait_for_function(f"before => {colour} !== before", arg=before)


def test_figures_have_a_table(browser, folder):
    with dashboard(browser, folder) as opened:
        page = opened("#/run?run=first")
        wait_for_points(page, 8)
        figure = page.locator("#figure-tested")
        expect(figure.locator(".plot")).to_have_attribute(
            "aria-label", "Test accuracy by round: proposed 0.400 after 4 rounds; max_power 0.400 after 4 rounds"
        )
        figure.get_by_text("Values as a table").click()
        expect(figure.get_by_role("row")).to_have_count(5)
        expect(figure.get_by_role("row").nth(2)).to_have_text("20.2000.200")


def test_it_survives_whatever_happens_to_the_run(browser, tmp_path):
    """Resumed, extended, damaged, restored, removed and begun anew, all on one open page."""
    place = tmp_path / "runs" / "it"
    path, copy = a_run(place, rounds=4, stored=3) / FILE, tmp_path / "copy"
    with dashboard(browser, tmp_path / "runs", "404 (Not Found)") as opened:  # a round of a run that has just gone
        page = opened("#/run?run=it")
        state, beside = page.locator(".state").first, opened().locator(".run .state")
        wait_for_points(page, 6)
        expect(state).to_have_text("interrupted")
        with being_written(place, an_order(4)) as store:
            expect(state).to_have_text("running")
            write_rounds(store, PROPOSED, range(3, 4))
            write_rounds(store, MAX_POWER, range(3, 4))
        expect(state).to_have_text("done")
        wait_for_points(page, 8)
        with being_written(place, an_order(5, ("proposed", "max_power", "fedavg"))) as store:
            expect(state).to_have_text("running")
            expect(page.get_by_text("8 of 15 rounds")).to_be_visible()
            write_rounds(store, PROPOSED, range(4, 5))
            wait_for_points(page, 9)
        shutil.copyfile(path, copy)
        noise = bytearray(path.read_bytes())
        noise[4096:8192] = os.urandom(4096)
        path.write_bytes(noise)
        expect(state).to_have_text("damaged")
        expect(beside).to_have_text("damaged")
        expect(page.get_by_text("This run is damaged.")).to_be_visible()
        shutil.copyfile(copy, path)
        expect(state).to_have_text("interrupted")
        expect(beside).to_have_text("interrupted")
        shutil.rmtree(place)
        expect(state).to_have_text("removed")
        expect(beside).to_have_count(0)
        assert points(page) == 9
        a_run(place, rounds=2)
        expect(state).to_have_text("done")
        expect(beside).to_have_text("done")
        page.wait_for_function("() => document.querySelector('#figure-loss .plot').data.every(t => t.y.length === 2)")


def test_a_federation_that_knows_little_of_its_devices(browser, tmp_path):
    """Devices of this one kept energies and losses to themselves: there is no curve of them, and the page says so."""
    shutil.copytree(DATA / "federation-format-6" / "run", tmp_path / "runs" / "old")
    with dashboard(browser, tmp_path / "runs") as opened:
        page = opened("#/run?run=old")
        page.wait_for_function("() => document.querySelector('#figure-tested .plot')?.data?.[0].y.length === 2")
        for figure, known in (("tested", True), ("loss", False), ("energy_mj", False), ("spread_mj", False)):
            expect(page.locator(f"#figure-{figure} .plot")).to_be_visible(visible=known)
            expect(page.locator(f"#figure-{figure} .none")).to_be_visible(visible=not known)
        expect(page.locator("svg.cell .hollow")).to_have_count(3)


def test_a_name_stays_text(browser, tmp_path):
    name = "<img src=x onerror=alert(1)> & ünïcode 100%"
    a_run(tmp_path / "runs" / name)
    with dashboard(browser, tmp_path / "runs") as opened:
        page = opened()
        page.get_by_role("link", name=name).click()
        expect(page.get_by_role("heading", name=name)).to_be_visible()
        wait_for_points(page, 8)
        expect(page.get_by_role("region", name="Table of devices").get_by_role("row")).to_have_count(4)
        assert page.locator("main img").count() == 0


def test_it_says_that_the_server_is_gone_and_goes_on_when_it_is_back(browser, folder):
    context = browser.new_context()
    page = context.new_page()
    with serving(folder, "--port", "0") as (process, port, token):
        page.goto(f"http://127.0.0.1:{port}/?token={token}#/run?run=first")
        expect(page.locator("#link")).to_have_text("live")
        assert page.url == f"http://127.0.0.1:{port}/#/run?run=first"
        process.send_signal(signal.SIGINT)
        expect(page.locator("#link")).to_contain_text("not connected")
        process.wait(30)
    with serving(folder, "--port", str(port), "--token", token):
        expect(page.locator("#link")).to_have_text("live")
        expect(page.locator(".state").first).to_have_text("done")
    with serving(folder, "--port", str(port)):
        expect(page.locator("#link")).to_contain_text("open the address that fairwave ui printed")
    context.close()


def test_a_run_that_is_not_there(browser, folder):
    with dashboard(browser, folder) as opened:
        page = opened("#/run?run=nothing")
        expect(page.get_by_text("There is no such run.")).to_be_visible()
        page.evaluate("location.hash = '#/compare?run=first&run=nothing'")
        wait_for_points(page, 8)
        expect(page.get_by_text("not among the runs of this folder")).to_be_visible()
