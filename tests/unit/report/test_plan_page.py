"""A plan as a page: what engineers ask is on it, in numbers that are worked out by hand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fairwave.report.plan_page import ANSWERS, OF_DEVICES, QUESTIONS
from tests.end_to_end.command_line import fairwave


def page_of(tmp_path: Path, capsys, monkeypatch, *options: str) -> str:
    path = tmp_path / "new" / "plan.html"
    said = fairwave(capsys, monkeypatch, "plan", "small", "--no-fading", *options, "--out", str(path))
    assert said.code == 0 and f"wrote {path}" in said.err, said.err
    page = path.read_text("utf-8")
    return page[page.rindex("</script>\n</head>") :]


def cells(page: str, heading: str) -> list[list[str]]:
    table = page.split(f"<h2>{heading}</h2>")[1].split("</table>", maxsplit=1)[0]
    return [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row) for row in table.split("<tr>")[2:]]


def test_batteries_in_days(tmp_path: Path, capsys, monkeypatch):
    page = page_of(tmp_path, capsys, monkeypatch, "--battery", "2 Wh", "--policies", "max_power")
    first, median, last = cells(page, "Battery life")
    assert (first[1], median[1], last[1]) == ("first empty", "median", "last")
    # The farthest of four devices spends 581.9 mJ a round: 7,200 J are 12,373 rounds, 515 days at 24 a day.
    assert float(first[2].replace(",", "")) == pytest.approx(7200 / 0.5819, rel=1e-3)
    assert [float(days.replace(",", "")) for days in first[3:]] == pytest.approx([515.6, 85.9, 8.6], abs=0.6)
    assert "115,200 rounds are a day" in page  # 86,400 s / 0.75 s
    assert page.count('class="drawing"') == len(OF_DEVICES) + len(QUESTIONS) * (len(ANSWERS) + 1)


def test_without_batteries_it_says_how_to_give_them(tmp_path: Path, capsys, monkeypatch):
    page = page_of(tmp_path, capsys, monkeypatch)
    assert 'add --battery "2 Wh"' in page and page.count('class="drawing"') == len(OF_DEVICES) + len(QUESTIONS) * len(
        ANSWERS
    )
    for words in ("What if there were another deadline?", "another bandwidth?", "another payload?"):
        assert words in page
    assert "deadline (s): 0.75 in this plan" in page and "payload of an upload (kbit): 875 in this plan" in page
    assert [row[0] for row in cells(page, "Energy of a round")] == ["proposed", "max_power"]
    assert not re.search(r'(src|href)="http', page)
