"""A federation's round that has begun and is not stored: who was asked, how often, and what that can have released.

Written before anybody is asked, so that after a crash, or while a round is under way, the account of the run counts
what may have left the devices.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

from fairwave.privacy.ledger import ReleaseEvent
from fairwave.runs.database import damaged
from fairwave.runs.order import Track
from fairwave.runs.packing import event_of, event_row

ASKED = "asked-{scheme}-{seed}.json"


@dataclasses.dataclass(frozen=True)
class Unfinished:
    """A round under way."""

    round: int
    asked: dict[str, dict[int, int]]
    """By exchange, how many questions were sent to each device."""
    at_worst: list[ReleaseEvent]
    """What devices can have sent in reply to all of these."""


def unfinished_file(folder: Path, track: Track) -> Path:
    """The file that speaks of a track's round under way."""
    return folder / ASKED.format(scheme=track.scheme, seed=track.seed)


def as_text(round_index: int, asked: dict[str, dict[int, int]], at_worst: Sequence[ReleaseEvent]) -> bytes:
    """The content of that file."""
    rows = [event_row(event) for event in at_worst]
    events = [[*words, arrays.hex()] for *words, arrays in rows if isinstance(arrays, bytes)]
    counts = {exchange: list(each.items()) for exchange, each in asked.items()}
    return json.dumps({"round": round_index, "asked": counts, "at_worst": events}).encode()


def read_unfinished(path: Path) -> Unfinished | None:
    """What the file says; None if there is none."""
    try:
        held = json.loads(path.read_bytes())
        # At first the file had tries, each with a question in every exchange.
        counts = held["asked"] if "asked" in held else dict.fromkeys(("gradient", "update"), held["tries"])
        asked = {str(name): {int(device): int(count) for device, count in each} for name, each in counts.items()}
        events = [event_of(words, bytes.fromhex(arrays)) for *words, arrays in held["at_worst"]]
        return Unfinished(int(held["round"]), asked, events)
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise damaged(path, "it does not say who was asked") from None
