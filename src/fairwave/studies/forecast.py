"""What a run would take, without running it: energy from plans, memory from shapes, time from two rounds in memory."""

from __future__ import annotations

import dataclasses
import os
import sys
import time

import numpy as np

from fairwave.engine.cell import SimulatedCell
from fairwave.engine.model_copies import ROOM
from fairwave.extensions import SCHEMES
from fairwave.learning.models import count_parameters
from fairwave.metrics.fairness import fairness_summary
from fairwave.planner.plan import plan
from fairwave.runs.experiment import Experiment, run_rounds
from fairwave.runs.order import Order

MOST_DRAWS = 200
"""Channel draws that energies are averaged over, where the run has more rounds."""
BYTES = 4
"""Bytes of a number in models and updates."""
UPDATES_AT_A_TIME = 4
"""Arrays as large as all updates that a round holds at its peak: as trained, as sent, as rows, and one in use."""
SHARE_OF_MEMORY = 0.8
"""Share of the machine's memory up to which rounds are tried out."""


@dataclasses.dataclass(frozen=True)
class SchemeForecast:
    """What the devices of one scheme would spend."""

    scheme: str
    iterations: float
    """Mean local iterations in a round."""
    energy_j: float
    """Mean over devices, of a round in which all take part."""
    energy_std_j: float
    """Std over devices."""
    total_j: float
    """What all devices spend in all rounds, with every seed."""


@dataclasses.dataclass(frozen=True)
class Pace:
    """How long rounds take here."""

    first_s: float
    """The first round, which compiles."""
    next_s: float
    """The round after it."""


@dataclasses.dataclass(frozen=True)
class Forecast:
    """What an order would take."""

    order: Order
    schemes: tuple[SchemeForecast, ...]
    memory_bytes: float
    """At the peak."""
    machine_bytes: float
    pace: Pace | None
    """None where rounds do not fit into this machine's memory, and were not tried."""
    warnings: tuple[str, ...]

    @property
    def seconds(self) -> float | None:
        """Time of the whole run: rounds are taken to cost what their iterations do, under every scheme."""
        if self.pace is None:
            return None
        tried = max(self.schemes[0].iterations, 1e-9)
        rounds = len(self.order.seeds) * self.order.rounds
        compiling_s = max(0.0, self.pace.first_s - self.pace.next_s)
        return compiling_s + sum(rounds * self.pace.next_s * each.iterations / tried for each in self.schemes)


def forecast(order: Order) -> Forecast:
    """Estimates for an order. Data are read and two rounds of its first scheme are run in memory; nothing is stored."""
    experiment = Experiment(order)
    cell = experiment.cell(next(order.tracks()))
    schemes = tuple(_spent(order, name) for name in order.schemes)
    needed, there = needed_bytes(cell, order), machine_bytes()
    pace = _tried(cell) if needed <= SHARE_OF_MEMORY * there else None
    return Forecast(order, schemes, needed, there, pace, tuple(experiment.forewarnings()))


def _spent(order: Order, name: str) -> SchemeForecast:
    """Energies as the scheme's rule plans them over the run's channels."""
    scenario, cell = order.seeded(order.seeds[0]), order.scenario.cell
    planned = plan(scenario, [SCHEMES[name].plan], draws=min(order.rounds, MOST_DRAWS)).isel(policy=0)
    each_j = np.nan_to_num(planned["energy_j"].values)
    turns = (cell.participants or cell.num_devices) / cell.num_devices
    in_a_round_j = float(np.sum(each_j * (1.0 - planned["outage_fraction"].values))) * turns
    summary = fairness_summary(planned["energy_j"].values)
    return SchemeForecast(
        scheme=name,
        iterations=float(np.nanmean(planned["local_iterations"])),
        energy_j=summary["mean"],
        energy_std_j=summary["std"],
        total_j=in_a_round_j * order.rounds * len(order.seeds),
    )


def _tried(cell: SimulatedCell) -> Pace:
    """Two rounds, whose results are dropped."""
    times = [time.perf_counter()]
    times.extend(time.perf_counter() for _ in run_rounds(cell, 2))
    taken = np.diff(times)
    return Pace(float(taken[0]), float(taken[-1]))


def needed_bytes(cell: SimulatedCell, order: Order) -> float:
    """The program as it is, with the data that it has read, and the models and updates that a round adds to that.

    Copies of the model are kept for every device where something looks at them; else a few models serve for all.
    """
    scenario, rules = cell.scenario, cell.access_point.rules
    model = BYTES * count_parameters(cell.access_point.model)
    looked_at = not rules.copies_can_be_made_again or any(SCHEMES[name].reward is not None for name in order.schemes)
    kept = scenario.cell.num_devices if looked_at or scenario.cheating.adversaries else ROOM
    taking_part = scenario.cell.participants or scenario.cell.num_devices
    return resident_bytes() + float(model) * (UPDATES_AT_A_TIME * taking_part + 2 * kept)


def resident_bytes() -> float:
    """Memory that this process takes, at its peak so far."""
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return float(peak) if sys.platform == "darwin" else 1024.0 * peak


def machine_bytes() -> float:
    """Memory of this machine."""
    return float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
