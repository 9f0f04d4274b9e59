"""Distances of the devices from the access point."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from fairwave.double_precision import double_precision
from fairwave.keys import Stream, device_key, run_key
from fairwave.scenario.placement_laws import Disc, FromFile, Linspace, Listed, Placement
from fairwave.scenario.quantity import FloatColumn, PerDevice


def placed(law: Placement, num_devices: int, seed: int) -> FloatColumn | PerDevice:
    """Distances in metres: computed where the law is a law, as a per-device value where they are given."""
    match law:
        case Linspace():
            return np.linspace(law.near_m, law.far_m, num_devices)
        case Listed():
            return law.distance_m
        case Disc():
            return _in_ring(law, num_devices, seed)
        case FromFile():
            return law


def _in_ring(law: Disc, num_devices: int, seed: int) -> FloatColumn:
    """Uniform over the ring's area: the squared distance is uniform."""
    with double_precision():  # a caller's precision must not move the devices
        keys = jax.vmap(lambda index: device_key(run_key(seed), 0, Stream.PLACEMENT, index))(jnp.arange(num_devices))
        share = np.asarray(jax.vmap(jax.random.uniform)(keys))
    inner, outer = law.min_distance_m**2, law.radius_m**2
    return np.sqrt(inner + share * (outer - inner))
