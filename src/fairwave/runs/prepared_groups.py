"""Groups of tracks with their cells: where rounds are one program each, the next group is prepared while one is run."""

from __future__ import annotations

import collections
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from fairwave.engine.cell_group import CellGroup
from fairwave.runs.experiment import Experiment
from fairwave.runs.track_groups import Group

AHEAD = 1
"""Groups that are prepared while one is run: each takes memory for its cells."""


def prepared(experiment: Experiment, groups: Sequence[Group]) -> Iterator[tuple[Group, CellGroup]]:
    """Every group with its cells, in order."""
    if not experiment.computes_together():
        yield from ((group, _cells(experiment, group)) for group in groups)
        return
    _ = experiment.seen  # computed once, not by every thread
    pool = ThreadPoolExecutor(1 + AHEAD, thread_name_prefix="prepare")
    begun: collections.deque[tuple[Group, Future[CellGroup]]] = collections.deque()
    try:
        for group in groups:
            begun.append((group, pool.submit(_compiled, experiment, group)))
            if len(begun) > AHEAD:
                first, cells = begun.popleft()
                yield first, cells.result()
        yield from ((group, cells.result()) for group, cells in begun)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _cells(experiment: Experiment, group: Group) -> CellGroup:
    return CellGroup([experiment.cell(track) for track in group.members], group.left)


def _compiled(experiment: Experiment, group: Group) -> CellGroup:
    """With the programs of its first rounds; a track that goes on from a checkpoint may need others."""
    cells = _cells(experiment, group)
    cells.compile_ahead([cell.start() for cell in cells.cells])
    return cells
