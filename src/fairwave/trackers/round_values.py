"""What trackers are told of a round: numbers of the whole cell."""

from __future__ import annotations

import math

import numpy as np

from fairwave.engine.round_record import BACKDOOR_SUCCESS, PER_ROUND, TEST_RMSE, Arrays, mean_of_participants
from fairwave.privacy.modes.mode import PrivacyMode
from fairwave.trackers.callback import RoundValues

NOT_PRIVATE = "not_private/"
"""Opens the names of values that the proof of the run's privacy mode does not cover."""
_OF_PARTICIPANTS = ("loss", "received_loss", "received_accuracy")
_OF_UPLOADS = ("energy_j", "local_iterations", "transmit_power_w")
_OF_DEVICES = ("deviation", "noise_std")


def round_values(arrays: Arrays, number: int, mode: PrivacyMode) -> RoundValues:
    """The numbers of a round, from 1, by name; in modes that prove, those that no proof covers say so by theirs."""
    uploaded = arrays["participating"] & ~arrays["outage"]
    found = {name: float(arrays[name]) for name in (*PER_ROUND, TEST_RMSE, BACKDOOR_SUCCESS) if name in arrays}
    found |= {name: mean_of_participants(arrays[name]) for name in _OF_PARTICIPANTS}
    found |= {name: float(np.mean(arrays[name])) for name in _OF_DEVICES}
    if uploaded.any():
        found |= {name: float(np.mean(arrays[name][uploaded])) for name in _OF_UPLOADS}
        found["energy_std_j"] = float(np.std(arrays["energy_j"][uploaded]))
    found["updates_used"] = float(np.sum(arrays["delivered"]))
    found["outages"] = float(np.sum(arrays["outage"]))
    bare = mode.not_private() if mode.proves else {}
    known = {name: value for name, value in found.items() if math.isfinite(value)}
    return RoundValues(number, {f"{NOT_PRIVATE}{name}" if name in bare else name: known[name] for name in known})
