"""Why a track ends before its last round."""

from __future__ import annotations

import enum

import numpy as np

from fairwave.engine.round_record import RoundRecord, mean_of_participants
from fairwave.policy.convergence import relative_distance
from fairwave.scenario.parameters import Run


class EndReason(enum.StrEnum):
    """Stored with the last round; append only."""

    TARGET_LOSS = "target_loss"
    TARGET_ACCURACY = "target_accuracy"
    GLOBAL_ACCURACY = "global_accuracy"
    EVERYBODY_LEFT = "everybody_left"
    BUDGET_SPENT = "budget_spent"
    BATTERIES_EMPTY = "batteries_empty"
    NOBODY_ABLE = "nobody_able"

    def in_words(self) -> str:
        """As people read it."""
        return _WORDS[self]


_WORDS = {
    EndReason.TARGET_LOSS: "its target loss was reached (run.target_loss)",
    EndReason.TARGET_ACCURACY: "its target accuracy was reached (run.target_accuracy)",
    EndReason.GLOBAL_ACCURACY: "the global problem is solved to its accuracy (run.global_accuracy)",
    EndReason.EVERYBODY_LEFT: "every device has left (cell.departure_round)",
    EndReason.BUDGET_SPENT: "no device has privacy budget left (privacy.max_epsilon)",
    EndReason.BATTERIES_EMPTY: "no battery is charged enough (compute.battery_capacity_j)",
    EndReason.NOBODY_ABLE: "no device that is still there has both privacy budget and charge left",
}


def end_reason(
    run: Run,
    record: RoundRecord,
    there: np.ndarray,
    affords: np.ndarray,
    charged: np.ndarray,
    first_loss: float | None = None,
) -> EndReason | None:
    """Why no further round follows; None if one does.

    The masks say which devices are there in the next round or later, have privacy budget left, and have charge left.
    `first_loss` is the global loss of the first model, where the run stops at an accuracy of the global problem.
    """
    if run.target_loss is not None and mean_of_participants(record.loss) <= run.target_loss:
        return EndReason.TARGET_LOSS
    if run.target_accuracy is not None and float(record.test_accuracy) >= run.target_accuracy:
        return EndReason.TARGET_ACCURACY
    if run.global_accuracy is not None and run.optimal_loss is not None and first_loss is not None:
        reached = relative_distance(float(record.global_loss), first_loss, run.optimal_loss)
        if reached <= run.global_accuracy:
            return EndReason.GLOBAL_ACCURACY
    if (there & affords & charged).any():
        return None
    if not there.any():
        return EndReason.EVERYBODY_LEFT
    if not (there & affords).any():
        return EndReason.BUDGET_SPENT
    return EndReason.BATTERIES_EMPTY if not (there & charged).any() else EndReason.NOBODY_ABLE
