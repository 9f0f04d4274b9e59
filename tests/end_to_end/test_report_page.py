"""The report as a browser shows it."""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest

from tests.end_to_end.chromium import browser_path

BROWSER = browser_path()
QUIET = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--hide-scrollbars",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--virtual-time-budget=20000",
]
FIGURES = (
    "figure-1",
    "figure-2",
    "figure-3a",
    "figure-3b",
    "figure-4a",
    "figure-4b",
    "accuracy",
    "nominal-epsilon",
)


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("report") / "tiny"
    fairwave = [sys.executable, "-m", "fairwave"]
    tiny = [
        "--set",
        "cell.num_devices=3",
        "--set",
        "data.samples_per_device=40",
        "--set",
        "learning.batch_size=8",
        "--set",
        "compute.bits_per_iteration=802816",
        "--rounds",
        "3",
        "--seeds",
        "0,1",
    ]
    subprocess.run(
        [*fairwave, "run", "small", *tiny, "--out", str(folder)], check=True, capture_output=True, timeout=300
    )
    said = subprocess.run([*fairwave, "report", str(folder)], check=True, capture_output=True, text=True, timeout=120)
    sentence, place = said.stdout.splitlines()
    assert sentence.startswith("After 3 rounds with 2 seeds, the proposed scheme reaches") and "report: " in place
    assert place.startswith(f"report: {folder / 'report.html'}")
    page = (folder / "report.html").read_text("utf-8").replace("\u00a0", " ")  # no line ends before a unit
    assert f'<p class="verdict">{html.escape(sentence)}</p>' in page
    return folder / "report.html"


def browse(page: Path, profile: Path, *options: str) -> str:
    if BROWSER is None:
        if os.environ.get("FAIRWAVE_BROWSER") == "required":
            pytest.fail("no browser, though FAIRWAVE_BROWSER=required")
        pytest.skip("no Chromium on this machine; install it to test the page")
    command = [BROWSER, *QUIET, f"--user-data-dir={profile}", *options, page.as_uri()]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout


def test_every_figure_is_drawn(page, tmp_path):
    """Read off the page after its scripts have run: an svg for every figure, and no leftovers."""
    shown = browse(page, tmp_path, "--dump-dom", "--window-size=1200,3600")
    assert shown.count('class="main-svg"') >= 2 * len(FIGURES)
    for key in FIGURES:
        part = shown[shown.index(f'id="run-1-{key}"') :]
        assert "main-svg" in part[:200_000]
    assert len(re.findall(r'class="[^"]*scatterlayer', shown)) == len(FIGURES)
    own = re.sub(r"<script.*?</script>", "", shown, flags=re.DOTALL)
    assert "modebar-btn" not in own  # no toolbar, and so no button that leads elsewhere
    widths = {int(float(width)) for width in re.findall(r'class="main-svg"[^>]*? width="([\d.]+)"', shown)}
    assert len(widths) == 1 and max(widths) < 600  # two columns, and no figure wider than its own
    assert "$title" not in shown and "nan" not in own.lower().split()


def test_the_page_looks_like_a_report(page, tmp_path):
    """The guard: white page, dark text, and the two schemes' colours where figures belong; nothing spills over."""
    picture = tmp_path / "page.png"
    browse(page, tmp_path / "profile", f"--screenshot={picture}", "--window-size=1200,3600")
    pixels = matplotlib.image.imread(picture)[:, :, :3]
    assert pixels.shape[:2] == (3600, 1200)
    assert 0.80 < np.mean(pixels.min(axis=2) > 0.95) < 0.99
    assert np.mean(pixels.max(axis=2) < 0.3) > 0.002
    for colour in ("#0072b2", "#d55e00"):
        wanted = np.array([int(colour[start : start + 2], 16) for start in (1, 3, 5)]) / 255
        close = np.abs(pixels - wanted).max(axis=2) < 0.02
        columns = np.flatnonzero(close.any(axis=0))
        assert close.sum() > 2_000
        assert columns.min() < 500 and columns.max() > 700  # figures on both sides of the page
    margin = pixels[:, -20:]
    assert (margin > 0.9).mean() > 0.99


def test_figures_can_have_the_papers_horizontal_axis(page, tmp_path):
    label = "normalised path loss of devices"
    command = [sys.executable, "-m", "fairwave", "report", str(page.parent), "--path-loss", "normalised"]
    subprocess.run([*command, "--out", str(tmp_path)], check=True, capture_output=True, timeout=120)
    for name in ("report.html", "figures/figure-2.svg"):
        plain, asked = ((folder / name).read_text(encoding="utf-8") for folder in (page.parent, tmp_path))
        assert label in asked and label not in plain


def test_a_phone_shows_the_page_without_scrolling_sideways(page, tmp_path):
    """A frame of 390 pixels around the page, since the browser's own window has a least width; light, then dark."""
    frame = tmp_path / "frame.html"
    frame.write_text(
        f'<iframe id="phone" src="{page.as_uri()}" style="width:390px;height:800px;border:0"></iframe><script>'
        "phone.onload = () => setTimeout(() => { const inside = phone.contentDocument.documentElement;"
        "document.title = `${inside.scrollWidth} of ${inside.clientWidth}`; }, 500);</script>"
    )
    for theme in ((), ("--blink-settings=preferredColorScheme=0",)):
        said = browse(frame, tmp_path / f"profile-{len(theme)}", "--allow-file-access-from-files", "--dump-dom", *theme)
        wide, room = map(int, re.search(r"<title>(\d+) of (\d+)</title>", said).groups())
        assert 300 < room <= 390 and wide <= room


def test_dark_mode(page, tmp_path):
    picture = tmp_path / "dark.png"
    dark = "--blink-settings=preferredColorScheme=0"
    browse(page, tmp_path / "profile", dark, f"--screenshot={picture}", "--window-size=1200,1600")
    pixels = matplotlib.image.imread(picture)[:, :, :3]
    assert np.mean(pixels.max(axis=2) < 0.2) > 0.7 and np.mean(pixels.min(axis=2) > 0.7) > 0.002


def test_the_check_can_fail(page, tmp_path):
    """The mutant: the same page without its library draws nothing."""
    broken = tmp_path / "broken.html"
    broken.write_text(re.sub(r"<script>.*?</script>", "", page.read_text(encoding="utf-8"), count=1, flags=re.DOTALL))
    assert "main-svg" not in browse(broken, tmp_path / "profile", "--dump-dom")
