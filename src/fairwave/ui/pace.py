"""How long what is left of a run will take, from the rounds that were seen to be stored."""

from __future__ import annotations

import collections
import time
from collections.abc import Callable

KEPT = 40
"""Observations that the pace is taken from: enough to even out rounds, few enough to follow a change."""


class Pace:
    """Watches a count of rounds grow."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: collections.deque[tuple[float, int]] = collections.deque(maxlen=KEPT)

    def note(self, done: int) -> None:
        """Take in how many rounds are stored now."""
        if self._seen and done < self._seen[-1][1]:
            self._seen.clear()  # the run was begun anew
        if not self._seen or done > self._seen[-1][1]:
            self._seen.append((self._clock(), done))

    def rest(self) -> None:
        """The run is not written to now: the time until it goes on tells nothing of its pace."""
        self._seen.clear()

    def seconds_left(self, left: int) -> float | None:
        """At the pace seen; None before two rounds were seen to end.

        The first observation is dropped as soon as there are three: it is when somebody began to look, not when a
        round ended.
        """
        seen = list(self._seen)[1:] if len(self._seen) > 2 else list(self._seen)
        if len(seen) < 2:
            return None
        (first_at, first), (last_at, last) = seen[0], seen[-1]
        each = (last_at - first_at) / (last - first)
        return max(0.0, left * each - (self._clock() - last_at))
