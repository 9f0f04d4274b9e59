"""Ways to say which device holds which samples."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from fairwave.scenario.group import Group
from fairwave.scenario.quantity import Column, Limit, Positive, one, whole
from fairwave.units import NUMBER

Number = Annotated[int, *whole(0, 1_000_000)]


class Iid(Group):
    """Samples are shuffled and shared out equally."""

    law: Literal["iid"]
    """This is the name of the law."""


class Dirichlet(Group):
    """Each class is split over the devices in Dirichlet proportions. A small alpha gives devices few classes."""

    law: Literal["dirichlet"]
    """This is the name of the law."""
    alpha: Positive
    """This is the concentration of the Dirichlet distribution. A small value gives devices few classes."""


class Shards(Group):
    """Samples are sorted by class and cut into shards, and each device gets a few of them."""

    law: Literal["shards"]
    """This is the name of the law."""
    per_device: int = Field(ge=1, le=1000)
    """Each device gets this many shards."""


class QuantitySkew(Group):
    """Classes are mixed evenly, but the numbers of samples have Dirichlet proportions."""

    law: Literal["quantity"]
    """This is the name of the law."""
    alpha: Positive
    """This is the concentration of the Dirichlet distribution. A small value makes the numbers of samples more
    unequal."""


class Rare(Group):
    """Only some devices hold some classes. All hold the same number of samples, and share the other classes evenly."""

    law: Literal["rare"]
    """This is the name of the law."""
    devices: tuple[Number, ...] = Field(min_length=1)
    """These devices hold the rare classes. Devices are numbered from 0."""
    classes: tuple[Number, ...] = Field(min_length=1)
    """No other device holds these classes."""
    share: Annotated[float, *one(Limit(NUMBER, 0.0, 1.0))] = 0.5
    """At most this part of such a device's samples is of the rare classes. Further samples of those classes are not
    used."""

    @model_validator(mode="after")
    def _each_is_named_once(self) -> Rare:
        for name, numbers in (("devices", self.devices), ("classes", self.classes)):
            twice = [number for number in numbers if numbers.count(number) > 1]
            if twice:
                raise ValueError(f"{name} has {twice[0]} twice; name each once")
        return self


class FromFile(Column):
    """A column names each sample's device, in the order of the data set. A sample with -1 is not used."""

    law: Literal["file"]
    """This is the name of the law."""
    column: str = "device"
    """The numbers of the devices stand in this column."""


class Users(Group):
    """Every device holds the samples of one person, if the data set says whose its samples are."""

    law: Literal["users"]
    """This is the name of the law."""


class Own(Group):
    """Devices bring their own data, as many samples as data.samples_per_device says. This is for federations only."""

    law: Literal["own"]
    """This is the name of the law."""


Partition = Annotated[
    Iid | Dirichlet | Shards | QuantitySkew | Rare | FromFile | Users | Own, Field(discriminator="law")
]
