"""Ways in which devices move from round to round."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from fairwave.scenario.group import Group
from fairwave.scenario.quantity import Length, Speed


class Still(Group):
    """Devices stay where they are placed."""

    law: Literal["none"] = "none"
    """This is the name of the law."""


class Radial(Group):
    """Each device moves in or out along its radius at its own speed, and turns back at both ends."""

    law: Literal["radial"]
    """This is the name of the law."""
    max_speed_m_per_s: Speed
    """Each device draws its speed up to this value."""
    near_m: Length
    """A device turns back at this distance from the access point."""
    far_m: Length
    """A device turns back at this distance from the access point, on its way out."""

    @model_validator(mode="after")
    def _ordered(self) -> Radial:
        if self.near_m >= self.far_m:
            raise ValueError(f"near_m {self.near_m:g} leaves no way to far_m {self.far_m:g}; swap or part them")
        return self


Mobility = Annotated[Still | Radial, Field(discriminator="law")]
