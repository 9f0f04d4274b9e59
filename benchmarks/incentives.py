"""Does honesty pay in `fair`? Strategies of one device against its honest self on the same seeds.

    python benchmarks/incentives.py [FOLDER] [--seeds 200..209] [--rounds 25] [--jobs 2]

Runs are kept in FOLDER (default: runs/incentives) and gone on with; the table goes to docs/incentives.csv, and is
printed as it stands in docs/incentives.md. Strategies marked 'fresh' were not looked at while the score was made.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np

from fairwave.metrics.intervals import interval
from fairwave.runs.order import Order
from fairwave.runs.seeds import seeds_in
from fairwave.runs.session import results
from fairwave.runs.store import RunStore
from fairwave.scenario.loading import load_scenario
from fairwave.studies.best_response import Search, outcome
from fairwave.studies.jobs import Job, run_all
from fairwave.studies.strategies import Strategy

START = 3
NOTHING = ("fewer_iterations", 0.0)
KNOWN = {
    "replay of the last update": (("replay", 1.0),),
    "first update, a tenth, and noise": (NOTHING, ("adds_first_update", 0.1), ("adds_noise", 1.0)),
    "way since the start, and noise": (NOTHING, ("adds_path", 0.3), ("adds_noise", 0.95)),
    "a tenth of the work, scaled up": (("fewer_iterations", 0.1), ("scaled", 3.16)),
    "a tenth of the work, and noise": (("fewer_iterations", 0.1), ("adds_noise", 0.95)),
}
FRESH = {
    "last update, half, and noise": (NOTHING, ("adds_last_update", 0.5), ("adds_noise", 0.87)),
    "last change of the copy, and noise": (NOTHING, ("adds_echo", 0.5), ("adds_noise", 0.87)),
    "noise alone": (("noise_update", 1.0),),
    "a tenth of the work, first update, noise": (
        ("fewer_iterations", 0.1),
        ("adds_first_update", 0.1),
        ("adds_noise", 0.9),
    ),
    "a third of the work": (("fewer_iterations", 0.33),),
}


def main() -> None:
    """Run what is missing, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("runs/incentives"))
    parser.add_argument("--seeds", default="200..209")
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    game = Search(load_scenario("fair"), "proposed", given.rounds, tuple(seeds_in(given.seeds)), ())
    strategies = {name: Strategy(choices, START) for name, choices in (KNOWN | FRESH).items()}
    planned = [game.job(_file(name), strategy, game.seeds) for name, strategy in strategies.items()]
    schemes = ("proposed", "fair_energy_only")
    calm = Job("honest", Order.checked(game.scenario, schemes, game.seeds, given.rounds))
    run_all([calm, *planned], given.folder, "benchmarks/incentives.py", given.jobs, _tell)
    honest = _read(given.folder / "honest")
    own = honest.sel(scheme=[game.scheme])
    rows = [
        _row(
            name, "fresh" if name in FRESH else "known", outcome(strategy, _read(given.folder / _file(name)), own, game)
        )
        for name, strategy in strategies.items()
    ]
    target = Path(__file__).parents[1] / "docs" / "incentives.csv"
    with target.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(("strategy", "kind", "loss_%", "loss_low", "loss_high", "energy_saved_%", "utility_%", "seeds"))
        writer.writerows(rows)
    _tell_strategies(rows)
    _tell_honest(honest)


def _row(name: str, kind: str, found: object) -> list[object]:
    loss, energy, utility = (interval(100.0 * getattr(found, field)) for field in _FIELDS)
    return [name, kind, *(round(v, 1) for v in (loss.mean, loss.low, loss.high, energy.mean, utility.mean)), loss.count]


def _tell_strategies(rows: list[list[object]]) -> None:
    print("| strategy from round 3 on | | its copy's loss (%) | energy saved (%) | utility (%) |")
    print("| --- | --- | --- | --- | --- |")
    for name, kind, mean, low, high, saved, gain, _ in rows:
        print(f"| {name} | {kind} | {mean:+.0f} ({low:+.0f} to {high:+.0f}) | {saved:.0f} | {gain:+.0f} |")


_FIELDS = ("loss_change", "energy_saved", "utility_gain")


def _tell_honest(honest: object) -> None:
    """False alarms, and what the score costs honest devices: their copies against copies without deviation."""
    deviation = honest["deviation"].sel(scheme="proposed").values
    copies = honest["received_loss"].isel(round=slice(-5, None)).mean(("round", "device"))
    cost = 100.0 * (copies.sel(scheme="proposed").values / copies.sel(scheme="fair_energy_only").values - 1.0)
    print(f"false alarms: {100.0 * np.mean(deviation > 0.0):.2f} % of {deviation.size} deviations of honest devices")
    print(f"cost to honest devices: {interval(cost)} % of the loss of their copies")


def _read(folder: Path) -> object:
    store = RunStore(folder)
    found = results(store)
    store.close()
    return found


def _file(name: str) -> str:
    return name.replace(",", "").replace(" ", "-")


def _tell(name: str, step: object) -> None:
    del name, step


if __name__ == "__main__":
    main()
