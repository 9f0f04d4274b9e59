"""What a federation agrees on beyond its scenario: how long to wait, for how many, and what is refused."""

from __future__ import annotations

from typing import Annotated, Literal

from fairwave.scenario.group import Group
from fairwave.scenario.quantity import Limit, Positive, Time, one, whole
from fairwave.units import NUMBER


class Settings(Group):
    """Settings of the network and the machines, not of the experiment."""

    deadline_s: Time = 120.0
    """Each exchange waits this many seconds for answers. Later ones are lost, unless the scenario uses late updates."""
    quorum: Annotated[float, *one(Limit(NUMBER, 0.0, 1.0))] = 0.5
    """If less than this share of a round's participants answers in an exchange, the round is tried again."""
    patience: Annotated[int, *whole(1, 1_000)] = 3
    """A round is tried this many times before the federation stops. It can then be resumed."""
    wait_s: Time = 180.0
    """The access point waits at most this many seconds until enough devices are connected."""
    max_norm: Positive = 1e3
    """A gradient or an update that is longer than this is refused."""
    noise: Literal["hardened", "simulation"] = "hardened"
    """Hardened noise comes from a secret of each party. Simulation noise can be repeated and protects nothing."""
    keep_models: Literal["last", "all"] = "last"
    """The last model of each scheme and seed is kept beside the run, or every round's model."""
    telemetry: bool = False
    """For experiments, devices report plan, energy and time, and also their losses where no proof forbids it."""
    energy: Literal["measured", "model"] = "measured"
    """A device's compute energy is measured (RAPL, where the machine has it), or follows from the scenario's model."""
