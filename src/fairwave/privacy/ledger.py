"""The ledger: every message that leaves its sender is an event, whatever it may later be proved to cost."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

import numpy as np


@dataclasses.dataclass(frozen=True)
class ReleaseEvent:
    """One kind of message in one round, for all devices that sent or received it."""

    content: Literal["gradient", "loss", "update", "model", "deviation"]
    sender: Literal["device", "access point"]
    audience: Literal["device", "access point"]
    basis: Literal["data", "messages"]
    """Made from somebody's data, or from messages that are on the ledger already, which costs nothing more."""
    proven_sensitivity: float | None
    """L2 bound that the code enforces on one contribution's influence; None if it enforces none: nothing is proved."""
    devices: np.ndarray
    """Device numbers: who sent it, or who received it from the access point."""
    noise_std: np.ndarray
    """Std of the noise on each value, per device, in the units of the sensitivity; 0 for none."""
    subjects: np.ndarray
    """Devices about whose data it tells."""
    steps: np.ndarray
    """Releases that it is made of, per device: the steps of private training, else 1."""
    sampling: np.ndarray
    """Probability with which a record is in each of them, per device."""
    lost_delta: np.ndarray
    """Probability, per device, that it is not what is accounted for: a batch overflowed, arithmetic is not exact."""


@dataclasses.dataclass(frozen=True)
class RoundMessages:
    """Who sent and received what in one round, as device numbers: what a privacy mode writes its events from."""

    invited: np.ndarray
    """Devices that took part: they hear the mean gradient, where gradients are exchanged."""
    sent: np.ndarray
    """Devices whose messages left them, even if they came late or were lost on the way."""
    delivered: np.ndarray
    """Devices whose update was used: it arrived in time, or it is a late one of an earlier round."""
    served: np.ndarray
    """Devices that were sent a copy of the new model."""
    copy_std: np.ndarray
    """Noise std in the copy of each of those that were served."""
    update_std: float
    """Noise std that devices add to their updates where nothing is proved; 0 for none."""
    steps: np.ndarray
    """Local steps of every device of the cell, as they are charged."""
    exchanged_gradients: bool
    reported_losses: bool
    gradients: np.ndarray | None = None
    """Gradients of every device of the cell, as they are charged; None for one of each that sent anything."""
    model_std: float = 0.0
    """Noise std in the access point's own model, where that is what proves."""
    model_sensitivity: float = 0.0
    """By how much one device's update can change that model."""


Ledger: TypeAlias = Sequence[tuple[int, ReleaseEvent]]
"""Events with the round (from 0) in which they happened, in their order."""
Ledgers: TypeAlias = Mapping[tuple[str, int], Ledger]
"""The ledger of each scheme and seed."""


def with_unfinished(ledgers: Ledgers, unfinished: Ledgers) -> Ledgers:
    """The ledgers with, at the end of each, what devices were asked for in a round that was not concluded."""
    return {track: [*ledgers.get(track, ()), *unfinished.get(track, ())] for track in {**ledgers, **unfinished}}


def rounds_of(ledger: Ledger) -> int:
    """Rounds that a ledger covers."""
    return max((number + 1 for number, _ in ledger), default=0)


def event(
    content: Literal["gradient", "loss", "update", "model", "deviation"],
    sender: Literal["device", "access point"],
    devices: np.ndarray,
    noise_std: np.ndarray | float = 0.0,
    proven_sensitivity: float | None = None,
    *,
    basis: Literal["data", "messages"] = "data",
    subjects: np.ndarray | None = None,
    steps: np.ndarray | int = 1,
    sampling: np.ndarray | float = 1.0,
    lost_delta: np.ndarray | float = 0.0,
) -> ReleaseEvent:
    """An event, with what is the same for all devices given once."""

    def each(value: np.ndarray | float, kind: str) -> np.ndarray:
        return np.broadcast_to(np.asarray(value, kind), devices.shape)

    return ReleaseEvent(
        content=content,
        sender=sender,
        audience="access point" if sender == "device" else "device",
        basis=basis,
        proven_sensitivity=proven_sensitivity,
        devices=devices.astype("<i4"),
        noise_std=each(noise_std, "<f8"),
        subjects=(devices if subjects is None else subjects).astype("<i4"),
        steps=each(steps, "<i8"),
        sampling=each(sampling, "<f8"),
        lost_delta=each(lost_delta, "<f8"),
    )
