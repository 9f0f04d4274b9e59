"""Which devices are in the cell, round by round."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from fairwave.errors import ScenarioError
from fairwave.scenario.per_device import DeviceValues
from fairwave.types import Count, FlagPerDevice, PerDevice


class Presence(eqx.Module):
    """First and last round in which each device is there, counted from 0; the last may be infinite."""

    arrival: PerDevice
    departure: PerDevice

    def at(self, number: Count | int) -> FlagPerDevice:
        """Who is there in a round."""
        return (self.arrival <= number) & (number <= self.departure)

    def reachable(self, number: Count) -> FlagPerDevice:
        """Who gets what is released at the end of a round: those still there, and those there for the next one."""
        return self.at(number) | self.at(number + 1)

    def from_then_on(self, number: int) -> np.ndarray:
        """Who is there in that round or a later one."""
        return np.asarray(self.departure) >= number


def presence(values: DeviceValues) -> Presence | None:
    """Who is there when, of a scenario; None where nobody ever comes or goes."""
    first, last = values("arrival_round"), values("departure_round")
    if first is None and last is None:
        return None
    arrival = np.broadcast_to(1.0 if first is None else first, (values.num_devices,))
    departure = np.broadcast_to(np.inf if last is None else last, (values.num_devices,))
    wrong = np.flatnonzero(departure < arrival)
    if wrong.size:
        device = wrong[0]
        raise ScenarioError(
            f"cell.departure_round: device {device} leaves after round {departure[device]:g} and arrives in round "
            f"{arrival[device]:g}; let it leave later or arrive earlier"
        )
    if arrival.min() > 1.0:
        raise ScenarioError(
            f"cell.arrival_round: nobody is there before round {arrival.min():g}; let somebody arrive in round 1"
        )
    return Presence(jnp.asarray(arrival - 1.0), jnp.asarray(departure - 1.0))
