"""Ways in which devices move from round to round."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from fairwave.scenario.group import Group
from fairwave.scenario.quantity import Length, Speed


class Still(Group):
    """Devices stay where they are placed."""

    law: Literal["none"] = "none"


class Radial(Group):
    """Each device goes in or out along its radius at a speed of its own, and turns back at both ends."""

    law: Literal["radial"]
    max_speed_m_per_s: Speed
    near_m: Length
    far_m: Length

    @model_validator(mode="after")
    def _ordered(self) -> Radial:
        if self.near_m >= self.far_m:
            raise ValueError(f"near_m {self.near_m:g} leaves no way to far_m {self.far_m:g}; swap or part them")
        return self


Mobility = Annotated[Still | Radial, Field(discriminator="law")]
