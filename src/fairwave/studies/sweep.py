"""From a study file to runs: every combination of the grid, at every draw, as a job with a name of its own."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fairwave.errors import ArgumentError, FairwaveError
from fairwave.keys import Stream, host_generator
from fairwave.runs.order import Order
from fairwave.scenario.loading import load_scenario
from fairwave.scenario.parameters import Scenario
from fairwave.studies.jobs import Job
from fairwave.studies.point_names import Shown, point_name, shown
from fairwave.studies.sweep_file import Sweep

MOST_POINTS = 10_000


@dataclasses.dataclass(frozen=True)
class Point:
    """One run of a sweep, and where it stands."""

    job: Job
    values: Mapping[str, Shown]
    """Values of the parameters that are swept: numbers in SI units, all else as text."""


def points(sweep: Sweep, file: Path) -> list[Point]:
    """All of them, checked before any is run. A point that is drawn again is the same run, and there once."""
    count = sweep.num_points
    if count > MOST_POINTS:
        raise ArgumentError(f"{file}: {count} points, and at most {MOST_POINTS} are run; take fewer values or draws")
    found: dict[str, Point] = {}
    for drawn in _draws(sweep):
        names = set()
        for combination in itertools.product(*sweep.grid.values()):
            settings = dict(zip(sweep.grid, combination, strict=True)) | drawn
            point = _point(sweep, settings, file)
            if point.job.name in names:
                raise ArgumentError(f"{file}: grid: {point.job.name} stands twice; give every value once")
            names.add(point.job.name)
            found.setdefault(point.job.name, point)
    return list(found.values())


def chance(seed: int, number: int, parameter: str) -> float:
    """A number in [0, 1) that depends on nothing but these three: neither other draws nor other parameters move it."""
    member = int.from_bytes(hashlib.blake2b(parameter.encode(), digest_size=4).digest(), "big")
    return float(host_generator(seed, Stream.SWEEP, number, member).random())


def _draws(sweep: Sweep) -> Iterator[dict[str, Any]]:
    if sweep.random is None:
        yield {}
        return
    for number in range(sweep.random.draws):
        yield {name: law.draw(chance(sweep.random.seed, number, name)) for name, law in sweep.laws.items()}


def _point(sweep: Sweep, settings: Mapping[str, Any], file: Path) -> Point:
    try:
        scenario = load_scenario(sweep.scenario, sweep.set, settings=settings, folder=file.resolve().parent)
        order = Order.checked(
            scenario,
            sweep.schemes,
            sweep.seeds or (scenario.run.seed,),
            sweep.rounds,
        )
    except FairwaveError as error:
        where = ", ".join(f"{name} = {value!r}" for name, value in settings.items())
        raise type(error)(f"{file}: at {where}: {error}") from None
    values = {name: shown(value, _resolved(scenario, name)) for name, value in settings.items()}
    return Point(Job(point_name(values), order), values)


def _resolved(scenario: Scenario, parameter: str) -> object:
    value: object = scenario
    for key in parameter.split("."):
        value = getattr(value, key, None)
    return value
