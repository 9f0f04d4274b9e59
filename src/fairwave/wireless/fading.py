"""Block fading: one power gain per device and round, by law.

Laws with a `scale` have the mean power of a Rayleigh amplitude of that scale.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp

from fairwave.keys import Stream, device_key
from fairwave.scenario.fading_laws import FadingLaw
from fairwave.scenario.quantity import Limit, NonNegative, Positive, one
from fairwave.types import Count, Key, Scalar
from fairwave.units import NUMBER
from fairwave.wireless.clarke import Field, scattered_field


class NoFading(FadingLaw):
    """There is no fading: the channel is its path loss."""

    name: ClassVar[str] = "none"
    law: Literal["none"]
    """This is the name of the law."""

    @property
    def mean_power(self) -> float:
        """Mean of the fading gain."""
        return 1.0

    def gain(self, key: Key) -> Scalar:
        """No fading at all."""
        return jnp.ones(())


class _Scattered(FadingLaw):
    scale: Positive
    """This is the Rayleigh scale of the amplitude. The mean power gain is twice its square."""

    @property
    def mean_power(self) -> float:
        """Mean of the fading gain."""
        return 2.0 * self.scale**2


class Rayleigh(_Scattered):
    """There is no line of sight, and the power gain is exponential."""

    name: ClassVar[str] = "rayleigh"
    scattered: ClassVar[bool] = True
    law: Literal["rayleigh"]
    """This is the name of the law."""

    def gain(self, key: Key) -> Scalar:
        """An exponential draw."""
        return self.mean_power * jax.random.exponential(key)

    def gain_of_field(self, field: Field) -> Scalar:
        """The squared amplitude of the field."""
        return self.mean_power * 0.5 * jnp.sum(field**2)


class Rician(_Scattered):
    """There is a line of sight, which is `k_factor` times as strong as the scattered rest."""

    name: ClassVar[str] = "rician"
    scattered: ClassVar[bool] = True
    law: Literal["rician"]
    """This is the name of the law."""
    k_factor: NonNegative
    """The line of sight has this power, in units of the power of all scattered paths."""

    def gain(self, key: Key) -> Scalar:
        """The gain of a field that is drawn anew."""
        return self.gain_of_field(jax.random.normal(key, (2,)))

    def gain_of_field(self, field: Field) -> Scalar:
        """The squared amplitude of the direct path and the field together."""
        scattered = field * jnp.sqrt(0.5 / (self.k_factor + 1.0))
        direct = jnp.sqrt(self.k_factor / (self.k_factor + 1.0))
        return self.mean_power * ((direct + scattered[0]) ** 2 + scattered[1] ** 2)


class Nakagami(_Scattered):
    """Fading is milder (shape > 1) or harsher (shape < 1) than Rayleigh's, and the power gain is a gamma variable."""

    name: ClassVar[str] = "nakagami"
    law: Literal["nakagami"]
    """This is the name of the law."""
    shape: Annotated[float, *one(Limit(NUMBER, 0.5, 1e6, low_allowed=True))]
    """Fading is milder than Rayleigh's above 1 and harsher below 1."""

    def gain(self, key: Key) -> Scalar:
        """A gamma draw."""
        return self.mean_power * jax.random.gamma(key, self.shape) / self.shape


class Channel(eqx.Module):
    """One device's channel in one round."""

    fading_gain: Scalar
    """The gain that the upload will really meet."""
    estimated_gain: Scalar
    """The gain that the device knows when it plans."""


def draw_channel(
    law: FadingLaw,
    error_std: float,
    root: Key,
    round_index: Count,
    device_index: Count,
    *,
    doppler_cycles: Scalar | None = None,
) -> Channel:
    """One device's channel in one round: the estimate, and the truth it differs from.

    The error is independent of the estimate, as for a minimum-mean-square-error estimator, so the estimate carries
    the law's mean power less the error's; under Rayleigh fading the truth then follows the law exactly.
    Rounds are independent, unless the time since the first is given in cycles of the largest Doppler shift.
    """
    if doppler_cycles is None:
        drawn = law.gain(device_key(root, round_index, Stream.FADING, device_index))
    else:
        field = scattered_field(device_key(root, 0, Stream.SCATTERING, device_index), doppler_cycles)
        drawn = law.gain_of_field(field)
    if error_std == 0.0:
        return Channel(fading_gain=drawn, estimated_gain=drawn)
    estimated = drawn * (1.0 - 2.0 * error_std**2 / law.mean_power)
    error = error_std * jax.random.normal(device_key(root, round_index, Stream.CHANNEL_ERROR, device_index), (2,))
    truth = (jnp.sqrt(estimated) + error[0]) ** 2 + error[1] ** 2
    return Channel(fading_gain=truth, estimated_gain=estimated)
