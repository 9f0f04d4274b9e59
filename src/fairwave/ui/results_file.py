"""A run's results as one CSV file, read without holding up whoever writes the run."""

from __future__ import annotations

import io

import pyarrow.csv

from fairwave.engine.round_record import Arrays
from fairwave.errors import StoreError
from fairwave.report.run_export import result_rows
from fairwave.runs.order import Track
from fairwave.runs.packing import unpack
from fairwave.runs.results import to_dataset
from fairwave.ui.run_description import Description
from fairwave.ui.short_reads import ShortReads

Stored = dict[Track, list[bytes]]


def stored_rounds(reads: ShortReads, description: Description) -> tuple[Stored, dict[int, bytes]]:
    """The packed rounds of every track, and where each seed's devices stand."""
    rounds = {track: _rounds(reads, track) for track in description.tracks()}
    layouts = {seed: content for seed, content in reads.rows("SELECT seed, layout FROM track")}
    return rounds, layouts


def results_csv(rounds: Stored, layouts: dict[int, bytes], description: Description) -> bytes:
    """A row per scheme, seed, round and device, as `fairwave export --to results.csv` writes it."""
    begun = {track for track, stored in rounds.items() if stored}
    if not begun:
        raise StoreError("results: no round is stored yet; wait for the first")
    records: dict[Track, list[Arrays]] = {track: [unpack(each) for each in stored] for track, stored in rounds.items()}
    seeds = [seed for seed in description.seeds if any(track.seed == seed for track in begun)]
    dataset = to_dataset(
        records,
        {seed: unpack(layouts[seed]) for seed in seeds},
        [name for name in description.schemes if any(track.scheme == name for track in begun)],
        seeds,
    )
    written = io.BytesIO()
    pyarrow.csv.write_csv(result_rows(dataset), written)
    return written.getvalue()


def _rounds(reads: ShortReads, track: Track) -> list[bytes]:
    taken: list[bytes] = []
    whole = False
    while not whole:
        rows, whole = reads.some_rows(
            "SELECT arrays FROM round WHERE scheme = ? AND seed = ? AND number >= ? ORDER BY number",
            (*track, len(taken)),
        )
        taken += [content for (content,) in rows]
    return taken
