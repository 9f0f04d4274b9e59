"""A stored run as reports, lists and comparisons need it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairwave.report.figure_data import PathLossAxis
    from fairwave.report.section import RunReport
    from fairwave.runs.store import RunStore


def read_report(name: str, folder: Path, path_loss: PathLossAxis = "db") -> RunReport:
    """All that a report tells of a run."""
    import dataclasses

    from fairwave.privacy.ledger import with_unfinished
    from fairwave.report.figure_data import panels
    from fairwave.report.paper_setting import is_beside_paper
    from fairwave.report.privacy_history import epsilon_panels
    from fairwave.runs.store import RunStore
    from fairwave.runs.track_states import short_tracks
    from fairwave.scenario.show import to_toml

    store = RunStore(folder)
    try:
        found = read_numbers(name, store)
        scenario, ledgers, notes = store.order.scenario, store.ledgers(), short_tracks(store)
        whole = with_unfinished(ledgers, store.unfinished())
    finally:
        store.close()
    drawn = panels(found.results, path_loss, paper_axes=is_beside_paper(found.results))
    figures = [*drawn, *epsilon_panels(scenario.privacy, whole)]
    return dataclasses.replace(found, panels=figures, notes=notes, scenario_toml=to_toml(scenario))


def read_numbers(name: str, store: RunStore) -> RunReport:
    """The same without figures, which is quicker: results, privacy account, and how far every track is."""
    from fairwave.report.privacy_account import run_account
    from fairwave.report.section import RunReport
    from fairwave.runs.session import results
    from fairwave.runs.track_states import track_states

    account = run_account(store.order.scenario, store.ledgers(), store.unfinished())
    return RunReport(name, results(store), "", [], account, (), track_states(store))
