"""What a round has released, for the ledger."""

from __future__ import annotations

import numpy as np

from fairwave.engine.state import RoundRecord
from fairwave.policy.plan import Case
from fairwave.privacy.ledger import ReleaseEvent


def releases(record: RoundRecord, *, gradient_exchange: bool, local_std: float) -> list[ReleaseEvent]:
    """The events of one round in the paper's mode, where nothing is clipped and so no sensitivity is proved.

    An update that came late, or over a channel that was misjudged, has left the device all the same.
    """
    asked = np.asarray(record.participating)
    sent = np.flatnonzero(asked & (np.asarray(record.plan.case) != int(Case.OUTAGE)))
    answered = np.flatnonzero(np.asarray(record.delivered))
    served = np.flatnonzero(np.asarray(record.delivered) | ~asked)
    silent = np.zeros(sent.size)
    events = [
        ReleaseEvent("update", "device", "access point", sent, np.full(sent.size, local_std), None),
        ReleaseEvent("model", "access point", "device", served, np.asarray(record.noise_std)[served], None),
        ReleaseEvent("deviation", "access point", "device", answered, np.zeros(answered.size), None),
    ]
    if gradient_exchange:
        heard = np.flatnonzero(asked)
        events.insert(0, ReleaseEvent("gradient", "device", "access point", sent, silent, None))
        events.insert(1, ReleaseEvent("gradient", "access point", "device", heard, np.zeros(heard.size), None))
    return events
