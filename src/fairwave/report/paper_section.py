"""The paper beside a run: headlines, ways of averaging, statements, axes and values, as tables and sentences."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from fairwave.metrics.published import (
    ENERGY_SPREAD,
    ENERGY_STD,
    GAP_AVERAGING,
    LOSS_STD,
    MEAN_ENERGY,
    MEAN_LOSS,
    PAPER_ROUNDS,
    SHOWN_ROUNDS,
    SPREAD_AVERAGING,
    STATED,
)
from fairwave.report.averaging import PROPOSED, energy_spreads, in_words, last_shown_round, loss_gaps, loss_spreads
from fairwave.report.headline_notes import headline_notes
from fairwave.report.headlines import Headline, benchmarks, headlines, missed, subject, verdict
from fairwave.report.paper_curves import axes_sheet, values_sheet
from fairwave.report.paper_statements import statements_sheet
from fairwave.report.statistics import labelled
from fairwave.report.style import with_interval
from fairwave.report.tables import Piece, Sheet

if TYPE_CHECKING:
    import xarray as xr


def paper_section(results: xr.Dataset) -> list[Piece]:
    """The headlines, whether any benchmark gives them, and all other tables that compare a run with the paper."""
    found = headlines(results)
    if not found:
        return []
    sentences = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in verdict(found))
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in headline_notes(results))
    first, *others = paper_sheets(results)
    brief = results.sizes["round"] < SHOWN_ROUNDS
    said = f"The paper trained for {PAPER_ROUNDS} rounds: a shorter run need not agree with it. " if brief else ""
    seeds = "This is one seed: another may give other numbers." if results.sizes["seed"] == 1 else ""
    opening = f"<p>{said}{seeds}</p>" if brief or seeds else ""
    why = f"<details><summary>Why they may differ</summary><ul>{notes}</ul></details>"
    return [opening, first, f"<ul>{sentences}</ul>{why}", *others]


def paper_sheets(results: xr.Dataset) -> list[Sheet]:
    """All tables that compare a run with the paper, headlines first."""
    found = headlines(results)
    sheets = [_headline_sheet(results, found), _spread_sheet(results)]
    if benchmarks(results):
        sheets.insert(1, _gap_sheet(results))
    if benchmarks(results) and results.sizes["device"] > 1:  # else there are no curves along path loss
        sheets.append(statements_sheet(results))
    return [*sheets, axes_sheet(results), values_sheet(results, found)]


def _headline_sheet(results: xr.Dataset, found: list[Headline]) -> Sheet:
    compared = (ENERGY_STD, MEAN_ENERGY, MEAN_LOSS)
    alone = next(each for each in found if each.base is None)
    rows = [
        ("the paper", *(stated.printed for stated in (*compared, LOSS_STD)), ""),
        (labelled(results, PROPOSED), "", "", "", alone.text(), "" if alone.agreeing else subject(LOSS_STD)),
    ]
    for base in benchmarks(results):
        texts = {each.stated: each.text() for each in found if each.base == base}
        own = with_interval(loss_spreads(results, base)["mean"])
        missing = ", ".join(subject(each.stated) for each in missed(found, base))
        rows.append((labelled(results, base), *(texts[stated] for stated in compared), own, missing))
    allowed = ", ".join(f"{stated.factor:g} for the {subject(stated)}" for stated in STATED)
    caption = (
        "Each change compares the proposed scheme with the benchmark of the row: mean and interval over seeds. "
        f"Energies are averaged over all rounds, losses over the first {last_shown_round(results)}. A headline is "
        "missed if no way of averaging comes within a factor of the paper's value. The factors are our choice: "
        f"{allowed}."
    )
    heads = ("", *(subject(stated) for stated in (*compared, LOSS_STD)), "missed")
    return Sheet("headlines", "Headlines: the proposed scheme", caption, heads, rows)


def _gap_sheet(results: xr.Dataset) -> Sheet:
    rows: list[tuple[str, ...]] = [("the paper", MEAN_LOSS.printed, "", "", ENERGY_STD.printed, "")]
    for base in benchmarks(results):
        ways = (*loss_gaps(results, base).values(), *energy_spreads(results, base).values())
        rows.append((labelled(results, base), *(with_interval(way, 2, unit=" %") for way in ways)))
    heads = (
        "against",
        *(f"loss: {in_words(how, results)}" for how in GAP_AVERAGING),
        *(f"energy: {in_words(how, results)}" for how in ENERGY_SPREAD),
    )
    caption = (
        "The paper does not say how it averaged. The table compares loss and std of energy of the proposed scheme with "
        "those of each benchmark, in every way that makes sense."
    )
    return Sheet("gaps", "Loss gap and energy spread, in each way of averaging", caption, heads, rows)


def _spread_sheet(results: xr.Dataset) -> Sheet:
    rows: list[tuple[str, ...]] = [("the paper", LOSS_STD.printed, "", "")]
    for name in map(str, results["scheme"].values):
        rows.append((labelled(results, name), *map(with_interval, loss_spreads(results, name).values())))
    last = last_shown_round(results)
    heads = ("", *(in_words(how, results) for how in SPREAD_AVERAGING))
    caption = f"The table shows the std of the training loss across devices, in the first {last} rounds."
    return Sheet("spreads", "Loss spread, in each way of averaging", caption, heads, rows)
