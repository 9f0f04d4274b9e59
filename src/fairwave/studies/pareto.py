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
    special = {*BUDGETED, *COUNTED, *PRICED}
    limits = (
        (BUDGETED, [(f"budget-{value:g}J", f"utility.energy_reference_j={2 * value:g}") for value in BUDGETS_J]),
        (COUNTED, [(f"iterations-{value}", f"utility.required_iterations={value}") for value in ITERATIONS]),
        (PRICED, [(f"price-{value:g}J", f"utility.iteration_price_j={value:g}") for value in PRICES_J]),
        (
            tuple(name for name in schemes if name not in special),
            [(f"power-{value:g}W", f"radio.max_transmit_power_w={value:g}") for value in POWERS_W],
        ),
    )
    for obeyed_by, values in limits:
        limited = tuple(name for name in schemes if name in obeyed_by)
        for name, setting in values if limited else ():
            yield Job(name, Order.checked(load_scenario(source, [*overrides, setting]), limited, tuple(seeds), rounds))
