"""What a federation agrees on beyond its scenario: how long to wait, for how many, and what is refused."""

from __future__ import annotations

from typing import Annotated, Literal

from fairwave.scenario.group import Group
from fairwave.scenario.quantity import Limit, Positive, Time, one, whole
from fairwave.units import NUMBER


class Settings(Group):
    """Settings of the network and the machines, not of the experiment."""

    deadline_s: Time = 120.0
    """Seconds that each exchange waits for answers; messages die with it, unless the scenario uses late updates."""
    quorum: Annotated[float, *one(Limit(NUMBER, 0.0, 1.0))] = 0.5
    """Share of a round's participants that must answer in each exchange; below it, the round is tried again."""
    patience: Annotated[int, *whole(1, 1_000)] = 3
    """Times that a round is tried before the federation stops; it can be resumed."""
    wait_s: Time = 180.0
    """Seconds to wait for enough devices to be connected."""
    max_norm: Positive = 1e3
    """Longest gradient or update that is accepted."""
    noise: Literal["hardened", "simulation"] = "hardened"
    """Root of each party's noise: its own secret, or the scenario's seed, which all know: repeatable, no protection."""
    keep_models: Literal["last", "all"] = "last"
    """Which of the access point's models stay beside the run: the last of each scheme and seed, or every round's."""
    telemetry: bool = False
    """For experiments: devices tell their plan, energy and time and, where no proof forbids it, their losses."""
    energy: Literal["measured", "model"] = "measured"
    """What a device takes for its compute energy: RAPL where the machine has it, or the scenario's model."""
