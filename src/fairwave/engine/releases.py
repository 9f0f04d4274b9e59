"""What a round has released, for the ledger."""

from __future__ import annotations

import numpy as np

from fairwave.engine.guard import Guard
from fairwave.engine.state import RoundRecord
from fairwave.policy.device_plan import Case
from fairwave.privacy.ledger import ReleaseEvent, event


def releases(
    guard: Guard,
    record: RoundRecord,
    *,
    gradient_exchange: bool,
    local_std: float,
    told_losses: bool = False,
    charged: np.ndarray | None = None,
) -> list[ReleaseEvent]:
    """The events of one round.

    An update that came late, or over a channel that was misjudged, has left the device all the same. `charged` is the
    steps of private training to put down for each device; left out, those of its plan, if it sent anything.
    """
    asked = np.asarray(record.participating)
    sent = np.flatnonzero(asked & (np.asarray(record.plan.case) != int(Case.OUTAGE)))
    heard, answered = np.flatnonzero(asked), np.flatnonzero(np.asarray(record.delivered))
    served = np.flatnonzero(np.asarray(record.served))
    copies_std = np.asarray(record.noise_std)[served]
    if guard.mode == "device":
        std, sensitivity = float(record.release_std), float(record.release_sensitivity)
        events = [event("update", "device", sent)]
        if answered.size:  # the noise that proves is the access point's own; copies may have more, and no device less
            lost = guard.rounding_delta
            events.append(event("model", "access point", served, std, sensitivity, subjects=answered, lost_delta=lost))
        return events
    if guard.mode == "provable":
        if charged is not None:
            sent = np.union1d(sent, np.flatnonzero(charged))
        steps = np.asarray(record.plan.local_iterations if charged is None else charged)
        private = _private(guard, steps, sent, gradient_exchange=gradient_exchange)
        if gradient_exchange:
            private.append(event("gradient", "access point", heard, basis="messages", subjects=sent))
        return [
            *private,
            event("model", "access point", served, copies_std, basis="messages", subjects=answered),
            event("deviation", "access point", answered, basis="messages"),
        ]
    exchanged = [event("gradient", "device", sent), event("gradient", "access point", heard, subjects=sent)]
    return [
        *(exchanged if gradient_exchange else []),
        *([event("loss", "device", sent)] if told_losses else []),
        event("update", "device", sent, local_std),
        event("model", "access point", served, copies_std, subjects=answered),
        event("deviation", "access point", answered),
    ]


def _private(guard: Guard, all_steps: np.ndarray, sent: np.ndarray, *, gradient_exchange: bool) -> list[ReleaseEvent]:
    """What devices sent after clipping and noise: each step of training is a release on a random batch."""
    steps = all_steps[sent]
    update = event(
        "update",
        "device",
        sent,
        guard.noise_multiplier * guard.clip_norm,
        guard.clip_norm,
        steps=steps,
        sampling=guard.sampling[sent],
        lost_delta=steps * guard.lost_delta[sent],
    )
    if not gradient_exchange:
        return [update]
    std = guard.exchange_noise_multiplier * guard.clip_norm
    lost = guard.rounding_delta
    return [event("gradient", "device", sent, std, guard.clip_norm, lost_delta=lost), update]
