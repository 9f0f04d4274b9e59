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
    """Every group with its cells, in order; one by one, if several cannot be one program."""
    if not experiment.computes_together():
        for group in groups:
            yield from _one_by_one(experiment, group)
        return
    _ = experiment.seen  # computed once, not by every thread
    pool = ThreadPoolExecutor(1 + AHEAD, thread_name_prefix="prepare")
    begun: collections.deque[tuple[Group, Future[CellGroup]]] = collections.deque()
    try:
        for number, group in enumerate(groups):
            begun.append((group, pool.submit(_compiled, experiment, group)))
            while begun and (len(begun) > AHEAD or number == len(groups) - 1):
                first, future = begun.popleft()
                cells = future.result()
                if cells.is_one_program or len(first.members) == 1:
                    yield first, cells
                else:
                    del cells, future  # and with them the memory of cells that would only wait
                    yield from _one_by_one(experiment, first)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _one_by_one(experiment: Experiment, group: Group) -> Iterator[tuple[Group, CellGroup]]:
    for place in group.left:
        alone = Group([group.members[place]], [0])
        yield alone, CellGroup([experiment.cell(alone.members[0])])


def _compiled(experiment: Experiment, group: Group) -> CellGroup:
    """With the programs of its first rounds; a track that goes on from a checkpoint may need others."""
    cells = CellGroup([experiment.cell(track) for track in group.members], group.left)
    cells.compile_ahead([cell.start() for cell in cells.cells])
    return cells
