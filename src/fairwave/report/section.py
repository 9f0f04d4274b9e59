"""One run's part of the page: what happened, figures, tables, scenario, privacy."""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING
from urllib.parse import quote

from fairwave.metrics.track_state import TrackState
from fairwave.report.cheating_section import cheating_section
from fairwave.report.device_losses import device_losses_section
from fairwave.report.energy_sheet import energy_section
from fairwave.report.federation_section import federation_section
from fairwave.report.figure_data import Panel
from fairwave.report.first_screen import first_screen
from fairwave.report.heat_tables import holdings_html
from fairwave.report.interactive_figures import panel_html
from fairwave.report.late_section import late_section
from fairwave.report.learning_sheet import learning_sheet
from fairwave.report.literal_section import literal_section
from fairwave.report.paper_section import paper_section
from fairwave.report.paper_setting import is_beside_paper
from fairwave.report.privacy_section import privacy_section
from fairwave.report.rare_data_section import rare_data_section
from fairwave.report.run_summary import RunSummary, summarise
from fairwave.report.sheet_files import FOLDER
from fairwave.report.static_figures import FIGURES
from fairwave.report.tables import Piece, Sheet, pieces_html

if TYPE_CHECKING:
    import xarray as xr

    from fairwave.report.privacy_account import RunAccount

ZOOM = "Drag to zoom, double-click to reset, click a name to hide it."
_SHOWN_OTHERWISE = ("scenario", "format", "rounds")


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
    states: Sequence[TrackState] = ()
    """How far every track is; left out, that is read off the results."""

    def summary(self) -> RunSummary:
        """The run in a few numbers."""
        return summarise(self.results, self.privacy, self.states)


@dataclasses.dataclass(frozen=True)
class Part:
    """A part of a run's section, with an entry in the list of contents."""

    key: str
    title: str
    pieces: Sequence[Piece]


def parts(run: RunReport, number: int, folder: str = "") -> list[Part]:
    """Everything that follows the first screen, in the order of the page, for the so-manyth run of it.

    `folder` is that of the run below the folders of figures and of tables.
    """
    prefix, results = f"run-{number}-", run.results
    about = [(name, str(value)) for name, value in results.attrs.items() if name not in _SHOWN_OTHERWISE]
    scenario: list[Piece] = [
        Sheet("origin", "How it was made", "", ("", ""), about),
        f"<details><summary>Scenario</summary><pre>{html.escape(run.scenario_toml)}</pre></details>",
    ]
    beside = paper_section(results) if is_beside_paper(results) else []
    found = (
        Part("figures", "Figures", _figures(run, prefix, folder)),
        Part("tables", "Tables", _tables(results)),
        Part("paper", "Beside the paper", beside),
        Part("scenario", "Scenario", scenario),
        Part("privacy", "Privacy", privacy_section(run.privacy, results)),
    )
    return [dataclasses.replace(part, key=f"{prefix}{part.key}") for part in found if part.pieces]


def opening(run: RunReport) -> str:
    """The run's first screen."""
    warnings = rare_data_section(run.results)
    return first_screen(run.summary(), run.results.attrs, run.notes) + warnings


def section(found: Iterable[Part], folder: str = "") -> str:
    """Parts as HTML, tables with links to their files."""
    files = "/".join(filter(None, (FOLDER, quote(folder))))
    return "".join(
        f'<h2 id="{part.key}">{html.escape(part.title)}</h2>{pieces_html(part.pieces, files)}' for part in found
    )


def sheets_of(found: Iterable[Part]) -> list[Sheet]:
    """All tables of some parts."""
    return [piece for part in found for piece in part.pieces if isinstance(piece, Sheet)]


def figures_html(panels: Iterable[Panel], prefix: str, folder: str) -> str:
    """Figures side by side where there is room, each with links to its files."""
    return f'<div class="figures">{"".join(_figure(panel, prefix, folder) for panel in panels)}</div>'


def _figures(run: RunReport, prefix: str, folder: str) -> list[Piece]:
    pieces: list[Piece] = [f'<p class="caption">{ZOOM}</p>', figures_html(run.panels, prefix, folder)]
    if run.results.sizes["class"] > 1:  # in a federation, only the devices know their classes
        pieces.append(f"<h3>Who holds what</h3>{holdings_html(run.results)}")
    return pieces


def _figure(panel: Panel, prefix: str, folder: str) -> str:
    place = "/".join(filter(None, (FIGURES, quote(folder), quote(panel.key))))
    links = " ".join(
        f'<a href="{html.escape(place)}.{ending}" download>{ending.upper()}</a>' for ending in ("csv", "svg", "pdf")
    )
    return (
        f'<figure><figcaption><h3>{html.escape(panel.title)}</h3><p class="caption">{html.escape(panel.caption)}</p>'
        f'</figcaption>{panel_html(panel, prefix)}<p class="files">{links}</p></figure>'
    )


def _tables(results: xr.Dataset) -> list[Piece]:
    literal = literal_section(results)
    return [
        *([literal] if literal else []),
        learning_sheet(results),
        *device_losses_section(results),
        *energy_section(results),
        *cheating_section(results),
        *late_section(results),
        *federation_section(results),
    ]
