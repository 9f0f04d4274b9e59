"""What the paper does not say about its training, as a finite family of readings; and the runs that cover all of it.

Readings share tracks. The proposed scheme knows nothing of the benchmark's power, and one copy for all concerns only
schemes with the same noise level for all. Benchmarks choose without an effort model. An access point that overwrites
its model with a noisy one sends that to all devices of a benchmark, and adds what a copy of the proposed scheme lacks.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fairwave.errors import ArgumentError
from fairwave.runs.order import Order
from fairwave.scenario.loading import load_scenario
from fairwave.studies.jobs import Job
from fairwave.studies.responses import FITS

PROPOSED = "proposed"
BENCHMARKS = ("max_power", "amplifier_cap", "priced")
PRESETS = {"on": "paper", "off": "paper-clean"}
"""The preset, by whether devices add noise to their updates."""
DRAW_EACH, ONE_COPY, OVERWRITE = "draw_each", "one_copy", "overwrite"
NOISE: dict[str, tuple[str, ...]] = {
    DRAW_EACH: (),
    ONE_COPY: ("privacy.broadcast=true",),
    OVERWRITE: ("privacy.overwrite_model=true",),
}
"""Overrides, by how the access point's noise is read.

Either it keeps the true model and sends every device a copy with a draw of its own, or the benchmark's devices one copy
for all; or it overwrites its model with the noisy one.
"""
SEARCHED = (
    "privacy.mode",
    "privacy.local_noise",
    "privacy.copies",
    "privacy.broadcast",
    "privacy.overwrite_model",
    "utility.effort_fit",
)
"""Settings that the search has values of its own for."""


class Run(NamedTuple):
    """A scenario of the search."""

    update_noise: str
    noise: str
    effort_fit: str

    @property
    def name(self) -> str:
        """The folder that holds it."""
        return f"{PRESETS[self.update_noise]}-{self.noise}-{self.effort_fit}"

    @property
    def overrides(self) -> tuple[str, ...]:
        """What sets it apart from its preset."""
        return (*NOISE[self.noise], f"utility.effort_fit={self.effort_fit}")


class Training(NamedTuple):
    """One reading of everything that takes training of its own."""

    benchmark: str
    noise: str
    update_noise: str
    effort_fit: str

    @property
    def proposed_run(self) -> Run:
        """The run that holds the proposed scheme's track."""
        return Run(self.update_noise, DRAW_EACH if self.noise == ONE_COPY else self.noise, self.effort_fit)

    @property
    def benchmark_run(self) -> Run:
        """The run that holds the benchmark's track."""
        return Run(self.update_noise, self.noise, FITS[0])


def trainings() -> Iterator[Training]:
    """Every combination."""
    return itertools.starmap(Training, itertools.product(BENCHMARKS, NOISE, PRESETS, FITS))


def jobs(overrides: Sequence[str], seeds: Sequence[int], rounds: int | None) -> list[Job]:
    """The fewest runs that hold every track once, those with most tracks first so that workers end together."""
    for override in overrides:
        name = override.partition("=")[0].strip()
        if name in SEARCHED:
            raise ArgumentError(f"--set {override}: the search has values of its own for {name}; leave it out")
    schemes: dict[Run, list[str]] = {}
    for training in trainings():
        for run, scheme in ((training.proposed_run, PROPOSED), (training.benchmark_run, training.benchmark)):
            held = schemes.setdefault(run, [])
            if scheme not in held:
                held.append(scheme)
    return [
        Job(
            run.name,
            Order.checked(
                load_scenario(PRESETS[run.update_noise], [*overrides, *run.overrides]), held, tuple(seeds), rounds
            ),
        )
        for run, held in sorted(schemes.items(), key=lambda item: -len(item[1]))
    ]
