"""One run's part of the page: headlines, figures, tables, scenario."""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairwave.metrics.published import PAPER_ROUNDS, SHOWN_ROUNDS
from fairwave.metrics.uploads import uploading
from fairwave.report.cheating_section import cheating_section
from fairwave.report.device_losses import device_losses_section
from fairwave.report.federation_section import federation_section
from fairwave.report.figure_data import Panel
from fairwave.report.interactive_figures import holdings_html, panel_html
from fairwave.report.late_section import late_section
from fairwave.report.learning_sheet import learning_sheet
from fairwave.report.literal_section import literal_section
from fairwave.report.paper_section import paper_sections
from fairwave.report.privacy_section import privacy_section
from fairwave.report.rare_data_section import rare_data_section
from fairwave.report.statistics import fairness_over_seeds, rounds_reached
from fairwave.report.style import counted, with_interval
from fairwave.report.tables import sheet_html, table

if TYPE_CHECKING:
    import xarray as xr

    from fairwave.report.privacy_account import RunAccount


@dataclasses.dataclass(frozen=True)
class RunReport:
    """What the page needs of a run."""

    name: str
    results: xr.Dataset
    scenario_toml: str
    panels: list[Panel]
    privacy: RunAccount
    notes: Sequence[str] = ()
    """What a reader should know first."""


def section(run: RunReport, number: int) -> str:
    """The run's part of the page, of which it is the so-manyth."""
    prefix = f"run-{number}-"
    results = run.results
    figures = [_figure(panel.title, panel.caption, panel_html(panel, prefix)) for panel in run.panels]
    if results.sizes["class"] > 1:  # in a federation, only the devices know their classes
        held = "Samples per device and class, first seed."
        figures.append(_figure("Who holds what", held, holdings_html(results, prefix)))
    about = [(name, value) for name, value in results.attrs.items() if name not in ("scenario", "format", "rounds")]
    headlines, beside_the_paper = paper_sections(results)
    return "".join(
        (
            f"<h2>{_text(run.name)}</h2>",
            f'<p class="quiet">{_text(_size(results))}</p>',
            *(f"<p><strong>{_text(note)}</strong></p>" for note in run.notes),
            headlines,
            literal_section(results),
            f'<div class="figures">{"".join(figures)}</div>',
            beside_the_paper,
            sheet_html(learning_sheet(results)),
            device_losses_section(results),
            "<h3>Energy and fairness</h3>",
            _fairness_table(results),
            rare_data_section(results),
            cheating_section(results),
            late_section(results),
            federation_section(results),
            privacy_section(run.privacy, results),
            "<h3>How it was made</h3>",
            table(("", ""), about),
            f"<details><summary>Scenario</summary><pre>{_text(run.scenario_toml)}</pre></details>",
        )
    )


def _figure(title: str, caption: str, drawing: str) -> str:
    return f'<div><h3>{_text(title)}</h3><p class="caption">{_text(caption)}</p>{drawing}</div>'


def _text(value: object) -> str:
    return html.escape(str(value))


def _size(results: xr.Dataset) -> str:
    sizes = results.sizes
    seeds = (
        f"{sizes['seed']} seeds; intervals are 95 %, over seeds" if sizes["seed"] > 1 else "one seed, so no intervals"
    )
    schemes = ", ".join(map(str, results["scheme"].values))
    reached = rounds_reached(results)
    short = [
        f"{scheme} with seed {seed} has {int(reached.sel(scheme=scheme, seed=seed))}"
        for scheme in results["scheme"].values
        for seed in results["seed"].values
        if int(reached.sel(scheme=scheme, seed=seed)) < sizes["round"]
    ]
    uneven = f" Not all went as far: {', '.join(short)} rounds; schemes are compared over the rounds that both have."
    size = f"{counted(sizes['device'], 'device')}, {counted(sizes['round'], 'round')}, {seeds}. Schemes: {schemes}."
    brief = f" The paper trained for {PAPER_ROUNDS} rounds: a shorter run need not agree with it."
    return size + (uneven if short else "") + (brief if sizes["round"] < SHOWN_ROUNDS else "")


def _fairness_table(results: xr.Dataset) -> str:
    if not bool(results["energy_j"].where(uploading(results)).notnull().any()):
        return '<p class="caption">The devices kept their energy to themselves.</p>'
    heads = ("scheme", "mean (mJ)", "std (mJ)", "CV", "max/min", "Jain", "Gini")
    rows = []
    for name in map(str, results["scheme"].values):
        energy = fairness_over_seeds(results, name)
        rows.append(
            (
                name,
                with_interval(energy["mean"], 1, 1e3),
                with_interval(energy["std"], 2, 1e3),
                *(with_interval(energy[key], 4) for key in ("cv", "max_min", "jain", "gini")),
            )
        )
    return table(heads, rows) + _preparation(results)


def _preparation(results: xr.Dataset) -> str:
    """What devices spend before the first round, which no row above counts; nothing where they spend nothing."""
    if "preparation_energy_j" not in results.coords:
        return ""
    energy_j, time_s = (results[name].mean().item() for name in ("preparation_energy_j", "preparation_s"))
    return (
        f'<p class="caption">Before the first round every device computes the features of its samples, once: '
        f"{energy_j:.3g} J and {time_s:.3g} s in the mean, which the table does not count.</p>"
    )
