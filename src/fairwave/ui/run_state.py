"""How a run stands: its state in a word, and how much of it is done."""

from __future__ import annotations

import contextlib
import dataclasses
import enum

from fairwave.errors import FairwaveError
from fairwave.runs.database import is_held
from fairwave.ui.short_reads import CutShortError, RemovedError, ShortReads


class RunState(enum.StrEnum):
    """What the page calls the state of a run."""

    RUNNING = "running"
    INTERRUPTED = "interrupted"
    DONE = "done"
    DAMAGED = "damaged"
    REMOVED = "removed"


@dataclasses.dataclass(frozen=True)
class Progress:
    """Rounds that are done and rounds that were asked for, over all schemes and seeds."""

    done: int
    total: int

    @classmethod
    def counted(cls, stored: list[tuple[int, bool]], rounds: int) -> Progress:
        """From the rounds that each track has stored and whether it ended by itself, and the rounds asked for."""
        return cls(sum(rounds if ended else min(has, rounds) for has, ended in stored), rounds * len(stored))


def state_of(reads: ShortReads, progress: Progress) -> RunState:
    """The state of a run that can be read."""
    if progress.done >= progress.total:
        return RunState.DONE
    with contextlib.suppress(OSError):  # a lock that may not be looked at tells nothing
        if is_held(reads.path.parent):
            return RunState.RUNNING
    return RunState.INTERRUPTED


def state_after(error: FairwaveError) -> RunState:
    """The state of a run that could not be read."""
    if isinstance(error, RemovedError):
        return RunState.REMOVED
    return RunState.INTERRUPTED if isinstance(error, CutShortError) else RunState.DAMAGED
