"""How far every track of a stored run is, and why it goes no further."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairwave.metrics.track_state import TrackState

if TYPE_CHECKING:
    from fairwave.runs.store import RunStore


def track_states(store: RunStore) -> list[TrackState]:
    """The state of every track that was asked for, begun or not."""
    order = store.order
    found = [(track, store.summary(track)) for track in order.tracks()]
    return [
        TrackState(*track, now.rounds, order.rounds, "" if now.ended is None else now.ended.in_words())
        for track, now in found
    ]


def short_tracks(store: RunStore) -> list[str]:
    """A sentence for every track with fewer rounds than were asked for, and why."""
    return [state.in_words() for state in track_states(store) if state.is_short]
