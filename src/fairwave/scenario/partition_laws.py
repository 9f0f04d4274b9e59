"""Ways to say which device holds which samples."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from fairwave.scenario.group import Group
from fairwave.scenario.quantity import Column, Limit, Positive, one, whole
from fairwave.units import NUMBER

Number = Annotated[int, *whole(0, 1_000_000)]


class Iid(Group):
    """Samples shuffled and shared out equally."""

    law: Literal["iid"]


class Dirichlet(Group):
    """Each class is split over the devices in Dirichlet proportions; a small alpha gives devices few classes."""

    law: Literal["dirichlet"]
    alpha: Positive


class Shards(Group):
    """Samples sorted by class and cut into shards, of which each device gets a few."""

    law: Literal["shards"]
    per_device: int = Field(ge=1, le=1000)


class QuantitySkew(Group):
    """Classes mixed evenly, but numbers of samples in Dirichlet proportions."""

    law: Literal["quantity"]
    alpha: Positive


class Rare(Group):
    """Some devices alone hold some classes; all hold the same number of samples, and share the other classes evenly."""

    law: Literal["rare"]
    devices: tuple[Number, ...] = Field(min_length=1)
    """Numbers of the devices, counted from 0."""
    classes: tuple[Number, ...] = Field(min_length=1)
    """Numbers of the classes that nobody else holds."""
    share: Annotated[float, *one(Limit(NUMBER, 0.0, 1.0))] = 0.5
    """Largest part of such a device's samples that is of these classes; samples of them beyond that are left out."""

    @model_validator(mode="after")
    def _each_is_named_once(self) -> Rare:
        for name, numbers in (("devices", self.devices), ("classes", self.classes)):
            twice = [number for number in numbers if numbers.count(number) > 1]
            if twice:
                raise ValueError(f"{name} has {twice[0]} twice; name each once")
        return self


class FromFile(Column):
    """A column that names each sample's device, in the order of the data set; -1 leaves a sample out."""

    law: Literal["file"]
    column: str = "device"


class Users(Group):
    """Every device holds the samples of one person, where the data set says whose its samples are."""

    law: Literal["users"]


class Own(Group):
    """Devices bring data of their own, as many samples as data.samples_per_device says; for federations alone."""

    law: Literal["own"]


Partition = Annotated[
    Iid | Dirichlet | Shards | QuantitySkew | Rare | FromFile | Users | Own, Field(discriminator="law")
]
