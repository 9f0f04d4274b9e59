"""Loss against energy: every scheme over a range of the setting that limits its energy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fairwave.runs.order import Order
from fairwave.scenario.loading import load_scenario
from fairwave.studies.jobs import Job

BUDGETS_J = (0.1, 0.15, 0.2, 0.25, 0.3)
POWERS_W = (0.1, 0.25, 0.5, 1.0)
ITERATIONS = (40, 60, 80)
PRICES_J = (0.02, 0.04, 0.065, 0.1)

BUDGETED = ("proposed", "fair_energy_only", "equal_energy")
COUNTED = ("least_energy", "fedl")
PRICED = ("priced",)
DEFAULT = ("proposed", "max_power", "equal_energy", "priced", "least_energy", "fedl", "q_fedavg", "cgsv")


def jobs(
    source: str, overrides: Sequence[str], schemes: Sequence[str], seeds: Sequence[int], rounds: int
) -> Iterator[Job]:
    """A run for every value of a limit, with the schemes that it limits."""
    for name, limited, settings in _limits(schemes):
        if limited:
            for setting in settings:
                scenario = load_scenario(source, [*overrides, *setting])
                value = setting[0].split("=")[1].replace(".", "_")
                yield Job(f"{name}-{value}", Order(scenario, limited, tuple(seeds), rounds))


def _limits(schemes: Sequence[str]) -> Iterator[tuple[str, tuple[str, ...], list[list[str]]]]:
    """Name of a limit, the schemes that obey it, and its values."""
    special = {*BUDGETED, *COUNTED, *PRICED}
    yield (
        "budget",
        tuple(name for name in schemes if name in BUDGETED),
        [[f"utility.energy_reference_j={2 * value:g}"] for value in BUDGETS_J],
    )
    yield (
        "iterations",
        tuple(name for name in schemes if name in COUNTED),
        [[f"utility.required_iterations={value}"] for value in ITERATIONS],
    )
    yield (
        "price",
        tuple(name for name in schemes if name in PRICED),
        [[f"utility.iteration_price_j={value:g}"] for value in PRICES_J],
    )
    yield (
        "power",
        tuple(name for name in schemes if name not in special),
        [[f"radio.max_transmit_power_w={value:g}"] for value in POWERS_W],
    )
