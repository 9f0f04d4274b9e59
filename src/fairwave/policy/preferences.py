"""What a device wants, apart from its effort model."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp

from fairwave.scenario.parameters import Scenario
from fairwave.scenario.per_device import DeviceValues
from fairwave.types import Scalar


class Preferences(eqx.Module):
    """One device's wishes; a fleet has a leading axis on the fields that differ."""

    energy_reference_j: Scalar
    iteration_price_j: Scalar
    energy_budget_j: Scalar
    required_iterations: Scalar
    delay_price_w: Scalar


def preferences(scenario: Scenario, values: DeviceValues) -> Preferences:
    """The wishes of all devices of a scenario."""
    reference_j = jnp.asarray(values("energy_reference_j"), dtype=float)
    budget_j = values("energy_budget_j")
    return Preferences(
        energy_reference_j=reference_j,
        iteration_price_j=jnp.asarray(scenario.utility.iteration_price_j, dtype=float),
        energy_budget_j=0.5 * reference_j if budget_j is None else jnp.asarray(budget_j, dtype=float),
        required_iterations=jnp.asarray(values("required_iterations"), dtype=float),
        delay_price_w=jnp.asarray(scenario.utility.delay_price_w, dtype=float),
    )
