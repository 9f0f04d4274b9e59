"""What a search says: the file, the page, the table and the documentation, on made-up members."""

from __future__ import annotations

import html
import importlib.util
import io
import itertools
import re
from pathlib import Path
from types import ModuleType

import pytest
from rich.console import Console

from fairwave.errors import ArgumentError, OutputError
from fairwave.metrics.paper_distance import FIGURES, NUMBERS, Member
from fairwave.report.search_file import read_search, write_search
from fairwave.report.search_page import write_search_page
from fairwave.report.search_table import search_table
from fairwave.report.search_words import (
    AVERAGING,
    TRAINING,
    UNKNOWNS,
    answer,
    best_member,
    best_of_each_training,
    best_with,
    misses_in_words,
    ours_in_words,
    paper_in_words,
    published_in_words,
)
from fairwave.studies.benchmark_search import Training
from fairwave.studies.search_members import EnergyReading, LossReading, energy_readings, loss_readings, ranked

ROOT = Path(__file__).parents[3]
EXACT = {name: (stated.value,) for name, stated in NUMBERS.items()} | {
    name: (axis.low / axis.per_unit, axis.high / axis.per_unit) for name, axis in FIGURES.items()
}
POWERS = {"max_power": 1.9, "amplifier_cap": 1.2, "priced": 0.9}
"""Terms of the std of loss, by the benchmark's power; the others are 0."""


def made_up(powers: dict[str, float]) -> list[Member]:
    """Half of the trainings and some averages; 'of_means' adds a miss on figure 2 of 5 terms."""
    found = []
    for benchmark, noise, spread, rounds in itertools.product(
        powers, ("draw_each", "overwrite"), ("of_means", "mean_of_rounds"), ("50", "200")
    ):
        size = powers[benchmark] + (0.05 if noise == "overwrite" else 0.0)
        ours = EXACT | {"loss_std": (0.103 * 1.2**size,)}
        if spread == "of_means":
            ours["figure_2"] = (0.2, 0.375 + 5 * 0.02 * 0.2)
        values = (benchmark, noise, "on", "paper", rounds, spread, "200", "last_round", "mean")
        found.append(Member(dict(zip(UNKNOWNS, values, strict=True)), ours, {"energy rises": True, "flat": False}))
    return ranked(found)


@pytest.fixture
def ranking() -> list[Member]:
    return made_up(POWERS)


def test_the_words_know_every_reading():
    assert tuple(TRAINING) == Training._fields
    assert tuple(AVERAGING) == EnergyReading._fields + LossReading._fields
    for reading in (*energy_readings(200), *loss_readings(200)):
        for name, value in reading._asdict().items():
            assert str(value).isdecimal() or value in UNKNOWNS[name].values


def test_the_file_keeps_all(ranking, tmp_path):
    path = tmp_path / "search.csv"
    write_search(ranking, path)
    assert read_search(path) == ranking
    head, first, *rest = path.read_text("utf-8").splitlines()
    assert len(rest) == len(ranking) - 1
    row = dict(zip(head.split(","), first.split(","), strict=True))
    assert row["rank"] == "1" and row["fits"] == "1" and row["misses"] == "0" and row["holds: energy rises"] == "1"
    assert float(row["distance"]) == pytest.approx(0.9 / 10**0.5) and float(row["term: loss_std"]) == pytest.approx(0.9)
    assert float(row["figure_2_high"]) == pytest.approx(0.375)


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "cannot be read"), ("rank,distance\n1,2\n", "is no file of a search"), ("", "has no members")],
)
def test_what_is_no_search_is_refused(tmp_path, content, said):
    path = tmp_path / "search.csv"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ArgumentError, match=f"{said}.*'fairwave reproduce --search'"):
        read_search(path)


def test_a_file_that_cannot_be_written(ranking, tmp_path):
    with pytest.raises(OutputError, match="choose a writable folder"):
        write_search(ranking, tmp_path / "gone" / "search.csv")


def test_the_answer_says_whether_any_fits(ranking):
    said = answer(ranking, len(ranking))
    assert said.startswith("4 of 24 members fit everything") and "distance 0.28" in said and "(priced)" in said
    only = [member for member in ranking if not member.fits]
    said = answer(only, 20)
    assert said.startswith("None of 20 members fits everything") and "misses loss std (1.2)" in said
    assert "(amplifier_cap); true model kept, a draw per device" in said


def test_a_member_that_fits_is_told_though_another_is_nearer():
    at = {name: (stated.value * stated.factor,) for name, stated in NUMBERS.items()}
    readings = made_up(POWERS)[0].readings
    nearer = Member(readings | {"benchmark": "max_power"}, EXACT | {"loss_std": (0.103 * 1.2**1.5,)}, {})
    fitting = Member(readings, EXACT | {name: (0.999 * value,) for name, (value,) in at.items()}, {})
    assert nearer.distance < fitting.distance and fitting.fits
    assert best_member([nearer, fitting]) is fitting and best_member([nearer]) is nearer
    said = answer([nearer, fitting], 2)
    assert said.startswith("1 of 2 members fits everything") and "(priced)" in said


def test_unknowns_that_are_not_told_apart_are_named(ranking):
    """Without those that fit, the nearest has a term of 1.2: overwriting makes it 1.25, and rounds change nothing."""
    none_fits = [member for member in ranking if not member.fits]
    told = answer(none_fits, len(none_fits)).partition("come as near, within 0.05: ")[2]
    assert told == "noise of the access point, rounds that energies are averaged over."
    assert "come as near" not in answer(none_fits[:1], 1)


def test_what_matters(ranking):
    assert {value: best.terms["loss_std"] for value, best in best_with(ranking, "benchmark").items()} == pytest.approx(
        POWERS
    )
    assert list(best_with(ranking, "energy_rounds")) == ["50", "200"]
    assert best_with(ranking, "energy_spread")["of_means"].misses == ["figure_2"]
    best = best_of_each_training(ranking)
    assert len(best) == 6 and best[0] is ranking[0] and all(m.readings["energy_spread"] != "of_means" for m in best)


def test_values_are_told_as_the_paper_prints_them(ranking):
    last = ranking[-1]
    assert misses_in_words(last) == "loss std (1.9), figure 2 (5.0)" and misses_in_words(ranking[0]) == "nothing"
    assert ours_in_words("mean_energy", last) == "-12.17 %" == paper_in_words("mean_energy")
    assert ours_in_words("loss_std", last) == f"{0.103 * 1.2**1.95:.3f}"
    assert ours_in_words("figure_2", last) == "200 to 395 mJ" and paper_in_words("figure_2") == "175 to 375 mJ"
    assert published_in_words("figure_4a") == "figure 4a: local iterations"
    assert published_in_words("figure_4b") == "figure 4b: uplink rate"


def test_the_page(ranking, tmp_path):
    page = write_search_page(ranking, "about <this>", tmp_path).read_text(encoding="utf-8")
    own = re.sub(r"<script>.*?</script>", "", page, count=1, flags=re.DOTALL)  # plotly itself names its home page
    assert not re.search(r"""src=["']|url\(""", own)
    links = {link for link in re.findall(r'href="([^"]*)"', own) if not link.startswith("#")}
    assert links and all((tmp_path / link).is_file() for link in links)  # what was written beside it, and nothing else
    assert html.escape(answer(ranking, 24)) in own and "about &lt;this&gt;" in own
    assert "root mean square" in own and "175 to 375 mJ" in own and "no evidence" in own
    assert own.index("Answer") < own.index("beside the paper") < own.index("What matters")
    for unknown in TRAINING:
        assert (tmp_path / "figures" / f"distances-{unknown}.pdf").exists()


def test_the_table(ranking):
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(search_table(ranking))
    text = console.export_text()
    assert "priced, draw_each" in text and "loss std (1.2)" in text and "1 of 2" in text
    assert text.index("priced, draw_each") < text.index("max_power, draw_each")


@pytest.fixture
def docs() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_search", ROOT / "docs" / "search.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_documentation_is_filled_from_the_rows_it_shows(ranking, docs, tmp_path):
    whole, rows = tmp_path / "whole.csv", tmp_path / "rows.csv"
    write_search(ranking, whole)
    rows.write_text(docs.excerpt(whole, len(ranking)), "utf-8")
    kept = read_search(rows)
    assert len(kept) < len(ranking) and kept[0] == ranking[0] and [m for m in kept if m.fits] == ranking[:4]
    page = (ROOT / "docs" / "search.md").read_text("utf-8")
    filled = docs.written(page, rows, 24)
    assert docs.written(filled, rows, 24) == filled != docs.written(filled, tmp_path / "none.csv", 24)
    assert answer(ranking, 24) in filled
    assert "| std of training loss across devices | 0.103 | 0.121 | 0.90 |" in filled
    assert "| power of the benchmark | full power (max_power) | 0.60 | loss std (1.9) |" in filled
    assert "| 0.28 | a price per iteration (priced); true model kept, a draw per device; noise on updates;" in filled
    with pytest.raises(SystemExit, match="has 24 members of 3888"):
        docs.excerpt(whole, 3888)
