"""Best responses: every device answers its deviation by what suits it; do the answers settle?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fairwave.runs.order import Order
from fairwave.scenario.loading import load_scenario
from fairwave.studies.jobs import Job

FITS = ("paper", "prior", "window")


def jobs(source: str, overrides: Sequence[str], seeds: Sequence[int], rounds: int) -> Iterator[Job]:
    """A run for every way to learn from deviations, over a channel that stands still: what moves is the answers."""
    for fit in FITS:
        still = [*overrides, 'radio.fading={ law = "none" }', f"utility.effort_fit={fit}"]
        yield Job(fit, Order.checked(load_scenario(source, still), ("proposed",), tuple(seeds), rounds))
