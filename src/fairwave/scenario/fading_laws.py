"""Laws of block fading. Those with a `scale` have the mean power of a Rayleigh amplitude of that scale."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from fairwave.scenario.group import Group
from fairwave.scenario.quantity import Limit, NonNegative, Positive, one
from fairwave.units import NUMBER


class NoFading(Group):
    """The channel is its path loss."""

    law: Literal["none"]

    @property
    def mean_power(self) -> float:
        """Mean of the fading gain."""
        return 1.0


class _Scattered(Group):
    scale: Positive
    """Rayleigh scale of the amplitude; the mean power gain is twice its square."""

    @property
    def mean_power(self) -> float:
        """Mean of the fading gain."""
        return 2.0 * self.scale**2


class Rayleigh(_Scattered):
    """No line of sight: the power gain is exponential."""

    law: Literal["rayleigh"]


class Rician(_Scattered):
    """A line of sight `k_factor` times as strong as the scattered rest."""

    law: Literal["rician"]
    k_factor: NonNegative


class Nakagami(_Scattered):
    """Milder (shape > 1) or harsher (shape < 1) than Rayleigh; the power gain is a gamma variable."""

    law: Literal["nakagami"]
    shape: Annotated[float, *one(Limit(NUMBER, 0.5, 1e6, low_allowed=True))]


Fading = Annotated[NoFading | Rayleigh | Rician | Nakagami, Field(discriminator="law")]
