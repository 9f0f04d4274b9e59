"""What a run says of itself: what it is to do, how it began, and with which scenario."""

from __future__ import annotations

import dataclasses
import json
import sqlite3
from collections.abc import Iterator
from typing import Any

from fairwave.runs.database import damaged
from fairwave.runs.folder import FEDERATION
from fairwave.runs.integrity import description_digest, history_and_plugins
from fairwave.runs.migrations import readable
from fairwave.runs.order import Track
from fairwave.ui.short_reads import Row, ShortReads


@dataclasses.dataclass(frozen=True)
class Description:
    """A run's order, and where it comes from."""

    schemes: tuple[str, ...]
    seeds: tuple[int, ...]
    rounds: int
    federation: bool
    scenario_text: str
    """The stored scenario as it is, which digests cover."""
    sessions: tuple[tuple[str, str], ...]
    """When each session began, and by which command."""

    def tracks(self) -> list[Track]:
        """What is run from the first round to the last, in the order in which it is run."""
        return [Track(scheme, seed) for seed in self.seeds for scheme in self.schemes]

    def scenario(self) -> dict[str, Any]:
        """The scenario as one table, such as {"cell.num_devices": 10}."""
        return dict(_flat("", json.loads(self.scenario_text)))


def read_description(reads: ShortReads) -> Description:
    """The description, if it matches its digest; one query more than that would show another moment."""
    described, history, plugins = reads.at_one_moment(_stored)
    readable(reads.path, described.get("format", ""))
    if described.pop("digest", "") != description_digest(described, history, plugins):
        raise damaged(reads.path, "its description does not match its digest")
    return Description(
        schemes=tuple(json.loads(described["schemes"])),
        seeds=tuple(json.loads(described["seeds"])),
        rounds=int(described["rounds"]),
        federation=described.get("kind") == FEDERATION,
        scenario_text=described["scenario"],
        sessions=tuple((begun, command) for begun, command, *_ in history),
    )


def _stored(connection: sqlite3.Connection) -> tuple[dict[str, str], list[Row], list[Row]]:
    described = dict(connection.execute("SELECT name, value FROM run ORDER BY name").fetchall())
    history, plugins = history_and_plugins(connection)
    return described, list(history), list(plugins)


def _flat(place: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _flat(f"{place}.{name}" if place else name, inner)
    else:
        yield place, value
