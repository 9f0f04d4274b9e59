"""Ways to say where the devices stand."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from fairwave.scenario.group import Group
from fairwave.scenario.quantity import Column, Length, LengthEach


class Linspace(Group):
    """Evenly spaced distances, near and far end included."""

    law: Literal["linspace"]
    near_m: Length
    far_m: Length

    @model_validator(mode="after")
    def _ordered(self) -> Linspace:
        if self.near_m > self.far_m:
            raise ValueError(f"near_m {self.near_m:g} exceeds far_m {self.far_m:g}; swap them")
        return self


class Listed(Group):
    """The distances themselves."""

    law: Literal["list"]
    distance_m: LengthEach


class Disc(Group):
    """Uniform over the area of a ring around the access point; drawn once per seed."""

    law: Literal["disc"]
    radius_m: Length
    min_distance_m: Length = 1.0

    @model_validator(mode="after")
    def _ordered(self) -> Disc:
        if self.min_distance_m > self.radius_m:
            raise ValueError(f"min_distance_m {self.min_distance_m:g} exceeds radius_m {self.radius_m:g}; lower it")
        return self


class FromFile(Column):
    """A column of a CSV or Parquet file, in metres."""

    law: Literal["file"]
    column: str = "distance_m"


Placement = Annotated[Linspace | Listed | Disc | FromFile, Field(discriminator="law")]
