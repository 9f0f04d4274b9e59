"""Ways to say where the devices stand."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from fairwave.scenario.group import Group
from fairwave.scenario.quantity import Column, Length, LengthEach


class Linspace(Group):
    """Devices stand at evenly spaced distances, which include the near and the far end."""

    law: Literal["linspace"]
    """This is the name of the law."""
    near_m: Length
    """The nearest device stands at this distance."""
    far_m: Length
    """The farthest device stands at this distance."""

    @model_validator(mode="after")
    def _ordered(self) -> Linspace:
        if self.near_m > self.far_m:
            raise ValueError(f"near_m {self.near_m:g} exceeds far_m {self.far_m:g}; swap them")
        return self


class Listed(Group):
    """Devices stand at the listed distances."""

    law: Literal["list"]
    """This is the name of the law."""
    distance_m: LengthEach
    """These are the distances of the devices, one each."""


class Disc(Group):
    """Devices are spread uniformly over the area of a ring around the access point. The places are drawn once per
    seed."""

    law: Literal["disc"]
    """This is the name of the law."""
    radius_m: Length
    """No device stands farther away than this."""
    min_distance_m: Length = 1.0
    """No device stands nearer than this."""

    @model_validator(mode="after")
    def _ordered(self) -> Disc:
        if self.min_distance_m > self.radius_m:
            raise ValueError(f"min_distance_m {self.min_distance_m:g} exceeds radius_m {self.radius_m:g}; lower it")
        return self


class FromFile(Column):
    """The distances are read from a column of a CSV or Parquet file, in metres."""

    law: Literal["file"]
    """This is the name of the law."""
    column: str = "distance_m"
    """The distances stand in this column."""


Placement = Annotated[Linspace | Listed | Disc | FromFile, Field(discriminator="law")]
