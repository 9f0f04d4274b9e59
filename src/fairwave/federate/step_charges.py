"""What the ledger of a proof is charged for each device: what it reports, or the most that it can have done.

Answers report how many local steps have left a device so far, by its own state. The charge of all rounds together is
never below what has really left an honest device: silence, repeated tries and lost states are taken at their worst.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fairwave.engine.round_record import Arrays
from fairwave.federate.protocol import Answer, Status

STATE, BASE = "client_state", "client_state_base"


class StepCharges:
    """Which state each device was last known by, and what had been charged before that began."""

    def __init__(self, num_devices: int, records: Sequence[Arrays] = ()) -> None:
        """As it stands after the rounds that are stored."""
        held = records[-1] if records else {}
        self._state = held.get(STATE, np.zeros(num_devices, np.int64)).copy()
        self._base = held.get(BASE, np.zeros(num_devices, np.int64)).copy()

    def charge(
        self,
        charged: np.ndarray,
        answers: Mapping[int, Answer],
        tries: Mapping[int, int],
        least: np.ndarray,
        most: np.ndarray,
    ) -> np.ndarray:
        """Steps to charge each device for a round, on top of those charged before it.

        `tries` is how often each was asked in this round, `least` and `most` what one try takes.
        """
        steps = np.zeros_like(charged)
        for device, asked in tries.items():
            answer = answers.get(device)
            if answer is None:
                steps[device] = asked * most[device]
                continue
            if answer.state_name != self._state[device]:
                # An old state, if there was one, is gone, and with it what that would have told of earlier tries.
                self._state[device] = answer.state_name
                self._base[device] = charged[device] + (asked - 1) * most[device]
            new = self._base[device] + answer.spent - charged[device]
            did = answer.status in (Status.SENT, Status.LOST)
            steps[device] = max(new, least[device] if did else 0, 0)
        return steps

    def arrays(self) -> Arrays:
        """The present standing, to be stored with the round."""
        return {STATE: self._state.copy(), BASE: self._base.copy()}
