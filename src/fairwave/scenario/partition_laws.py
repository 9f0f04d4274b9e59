"""Ways to say which device holds which samples."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from fairwave.scenario.group import Group
from fairwave.scenario.quantity import Column, Positive


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


Partition = Annotated[Iid | Dirichlet | Shards | QuantitySkew | FromFile | Users | Own, Field(discriminator="law")]
