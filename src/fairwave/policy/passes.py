"""How many local iterations a device's own data are good for in a round, where the scenario does not say.

An iteration takes as long as its batch has bits, so that a deadline leaves room for thousands where samples are small:
a table of three columns got 26,000 in a round, hundreds of passes over the same few samples, and training diverged.
"""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np

from fairwave.policy.fleet import Fleet
from fairwave.policy.problem import most_iterations_in_time
from fairwave.scenario.parameters import Scenario

MOST_PASSES = 10
"""Passes over a device's own samples that a round makes at most, where compute.max_iterations is not set."""
ALWAYS_ALLOWED = 200
"""Iterations that are allowed however few samples there are: a device with few of them has a use for some steps too."""


def iterations_of_passes(batch_size: int, counts: np.ndarray) -> np.ndarray:
    """The most iterations of devices that hold so many samples each."""
    return np.asarray(np.maximum(ALWAYS_ALLOWED, MOST_PASSES * np.ceil(np.asarray(counts) / batch_size)))


def kept_to_their_data(members: Fleet, scenario: Scenario, counts: np.ndarray) -> Fleet:
    """The devices of a cell, which plan no more iterations than their data are good for.

    Where the scenario sets compute.max_iterations, or no device has time for more, they stay as they are.
    """
    device = members.device
    if scenario.compute.max_iterations is not None:
        return members
    most = iterations_of_passes(scenario.learning.batch_size, counts)
    if not np.any(np.asarray(most_iterations_in_time(device)) > most):
        return members
    limited = jnp.asarray(np.maximum(most, np.asarray(device.min_iterations)), dtype=float)
    return dataclasses.replace(members, device=dataclasses.replace(device, max_iterations=limited))
