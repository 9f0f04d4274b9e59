"""Where a moving device is: a closed form of its seed and the time, held for the length of a round."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp

from fairwave.double_precision import double_precision
from fairwave.keys import Stream, device_key, run_key
from fairwave.scenario.mobility_laws import Radial
from fairwave.scenario.quantity import FloatColumn
from fairwave.types import Count, Key, Scalar
from fairwave.wireless.physical_device import Device


class Motion(eqx.Module):
    """One device's way between `near_m` and `far_m`; a fleet's has a leading device axis."""

    placed_m: Scalar
    """Where the device was placed, which its path gain is for."""
    near_m: Scalar
    far_m: Scalar
    begun_m: Scalar
    """Way already gone on the round trip out and back when the first round begins."""
    speed_m_per_s: Scalar


def motions(law: Radial, distance_m: FloatColumn, seed: int) -> Motion:
    """Speed and direction of every device, drawn once per seed; those placed outside start at the nearest end."""
    with double_precision():  # a caller's precision must not move the devices
        each = jnp.arange(distance_m.size)
        keys = jax.vmap(lambda index: device_key(run_key(seed), 0, Stream.MOBILITY, index))(each)
        motion: Motion = jax.vmap(lambda placed_m, key: _motion(law, placed_m, key))(jnp.asarray(distance_m), keys)
    return motion


def _motion(law: Radial, placed_m: Scalar, key: Key) -> Motion:
    share, side = jax.random.uniform(key, (2,))
    out_m = jnp.clip(placed_m, law.near_m, law.far_m) - law.near_m
    return Motion(
        placed_m=placed_m,
        near_m=jnp.asarray(law.near_m),
        far_m=jnp.asarray(law.far_m),
        begun_m=jnp.where(side < 0.5, out_m, 2.0 * (law.far_m - law.near_m) - out_m),
        speed_m_per_s=law.max_speed_m_per_s * share,
    )


def distance_now_m(motion: Motion, time_s: Scalar) -> Scalar:
    """Distance from the access point: a triangle wave between both ends."""
    length_m = motion.far_m - motion.near_m
    gone_m = (motion.begun_m + motion.speed_m_per_s * time_s) % (2.0 * length_m)
    return motion.near_m + length_m - jnp.abs(gone_m - length_m)


def moved(device: Device, motion: Motion, path_loss_exponent: float, round_index: Count) -> tuple[Scalar, Scalar]:
    """The device's path gain where it is in a round, and how far away that is."""
    distance_m = distance_now_m(motion, round_index * device.deadline_s)
    return device.path_gain * (distance_m / motion.placed_m) ** -path_loss_exponent, distance_m
