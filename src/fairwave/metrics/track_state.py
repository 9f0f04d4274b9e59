"""How far one scheme is with one seed."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class TrackState:
    """Rounds that are there and rounds that were asked for."""

    scheme: str
    seed: int
    rounds: int
    asked: int
    why_ended: str = ""
    """Why it ended before the last round, in words; empty if it did not."""

    @property
    def is_short(self) -> bool:
        """Whether it has fewer rounds than were asked for, for whatever reason."""
        return self.rounds < self.asked

    @property
    def ended_early(self) -> bool:
        """Whether it is short for a reason of its own, such as a target that was reached: it goes no further."""
        return self.is_short and bool(self.why_ended)

    @property
    def is_unfinished(self) -> bool:
        """Whether rounds are missing that could still be done: it was interrupted, or is under way."""
        return self.is_short and not self.why_ended

    def in_words(self) -> str:
        """A sentence without its full stop."""
        who = f"{self.scheme} with seed {self.seed}"
        if self.ended_early:
            return f"{who} ended after {self.rounds} of {self.asked} rounds: {self.why_ended}"
        if self.is_unfinished and self.rounds == 0:
            return f"{who} has not begun: 0 of {self.asked} rounds"
        if self.is_unfinished:
            return f"{who} is not finished: {self.rounds} of {self.asked} rounds (interrupted, or still running)"
        return f"{who} has done all {self.asked} rounds"
