"""Block fading: one power gain per device and round, by law."""

from __future__ import annotations

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp

from fairwave.keys import Stream, device_key
from fairwave.scenario.fading_laws import Fading, Nakagami, NoFading, Rayleigh, Rician
from fairwave.types import Count, Key, Scalar
from fairwave.wireless.clarke import Field, scattered_field


class Channel(eqx.Module):
    """One device's channel in one round."""

    fading_gain: Scalar
    """What the upload will really meet."""
    estimated_gain: Scalar
    """What the device knows when it plans."""


def _none(law: NoFading, key: Key) -> Scalar:
    return jnp.ones(())


def _rayleigh(law: Rayleigh, key: Key) -> Scalar:
    return law.mean_power * jax.random.exponential(key)


def _rayleigh_of(law: Rayleigh, field: Field) -> Scalar:
    return law.mean_power * 0.5 * jnp.sum(field**2)


def _rician_of(law: Rician, field: Field) -> Scalar:
    scattered = field * jnp.sqrt(0.5 / (law.k_factor + 1.0))
    direct = jnp.sqrt(law.k_factor / (law.k_factor + 1.0))
    return law.mean_power * ((direct + scattered[0]) ** 2 + scattered[1] ** 2)


def _rician(law: Rician, key: Key) -> Scalar:
    return _rician_of(law, jax.random.normal(key, (2,)))


def _nakagami(law: Nakagami, key: Key) -> Scalar:
    return law.mean_power * jax.random.gamma(key, law.shape) / law.shape


LAWS: dict[type, Callable[..., Scalar]] = {
    NoFading: _none,
    Rayleigh: _rayleigh,
    Rician: _rician,
    Nakagami: _nakagami,
}
"""A new law is a model in `scenario/fading.py`, a sampler here, and one line in this table."""


SCATTERED: dict[type, Callable[..., Scalar]] = {Rayleigh: _rayleigh_of, Rician: _rician_of}
"""Laws of a scattered field, which a Doppler shift can correlate over time."""


def draw_channel(
    law: Fading,
    error_std: float,
    root: Key,
    round_index: Count,
    device_index: Count,
    doppler_cycles: Scalar | None = None,
) -> Channel:
    """One device's channel in one round: the estimate, and the truth it differs from.

    The error is independent of the estimate, as for a minimum-mean-square-error estimator, so the estimate carries
    the law's mean power less the error's; under Rayleigh fading the truth then follows the law exactly.
    Rounds are independent, unless the time since the first is given in cycles of the largest Doppler shift.
    """
    if doppler_cycles is None:
        drawn = LAWS[type(law)](law, device_key(root, round_index, Stream.FADING, device_index))
    else:
        field = scattered_field(device_key(root, 0, Stream.SCATTERING, device_index), doppler_cycles)
        drawn = SCATTERED[type(law)](law, field)
    if error_std == 0.0:
        return Channel(fading_gain=drawn, estimated_gain=drawn)
    estimated = drawn * (1.0 - 2.0 * error_std**2 / law.mean_power)
    error = error_std * jax.random.normal(device_key(root, round_index, Stream.CHANNEL_ERROR, device_index), (2,))
    truth = (jnp.sqrt(estimated) + error[0]) ** 2 + error[1] ** 2
    return Channel(fading_gain=truth, estimated_gain=estimated)
