"""Cells whose rounds are computed side by side: one, or those of one scheme with several seeds."""

from __future__ import annotations

from collections.abc import Sequence

from fairwave.double_precision import training_precision
from fairwave.engine.cell import SimulatedCell
from fairwave.engine.round_record import RoundRecord
from fairwave.engine.state import State
from fairwave.engine.whole_rounds import NotOneProgram, WholeRounds

Ends = Sequence[tuple[State, RoundRecord]]
"""The next state and the record of every cell that is run."""


class CellGroup:
    """Some cells, and the states of all of them from round to round."""

    def __init__(self, cells: Sequence[SimulatedCell], running: Sequence[int] | None = None) -> None:
        """`running` are the places of those that are run; left out, all are.

        The last bits of a cell's values depend on the cells beside it in its program, and not on their states. A group
        of which some cells have ended therefore keeps them, and computes their first round again and again.
        """
        self._all = tuple(cells)
        self._running = tuple(range(len(cells)) if running is None else running)
        self.cells = tuple(cells[place] for place in self._running)
        self._idle = {place: cells[place].start() for place in range(len(cells)) if place not in self._running}
        self._whole: WholeRounds | None = None

    @property
    def is_one_program(self) -> bool:
        """Whether its rounds are one program each, as `compile_ahead` has found out."""
        return self._whole is not None

    def compile_ahead(self, states: Sequence[State]) -> None:
        """Compile the programs of a round before the first round needs them."""
        if all(cell.may_be_one_program() for cell in self.cells):
            whole = self._whole or WholeRounds(self._all)
            try:
                whole.compile(self._filled(_with_room(states)), 0)
            except NotOneProgram:
                self._whole = None
            else:
                self._whole = whole
                return
        for cell, state in zip(self.cells, states, strict=True):
            cell.compile_ahead(state)

    def round(self, states: Sequence[State], round_index: int) -> Ends:
        """The next state of every cell that is run, and what happened."""
        if self._whole is None:
            return [cell.round(state, round_index) for cell, state in zip(self.cells, states, strict=True)]
        return self._together(self._whole, _with_room(states), round_index)

    def begin_next(self, before: Sequence[State], states: Sequence[State], round_index: int) -> Ends | None:
        """Begin a round while the one before it is still computed; None where that has to be finished first.

        `before` are the states in which the round before began, and `states` those that it leads to.
        """
        if self._whole is not None:
            has_room = all(state.server.copies.has_room(2) for state in before)
            return self._together(self._whole, states, round_index) if has_room else None
        if len(self.cells) > 1:
            return None
        begun = self.cells[0].begin_next(before[0], states[0], round_index)
        return None if begun is None else [begun]

    def _together(self, whole: WholeRounds, states: Sequence[State], round_index: int) -> Ends:
        ends = whole(self._filled(states), round_index)
        return [ends[place] for place in self._running]

    def _filled(self, states: Sequence[State]) -> tuple[State, ...]:
        """The states of all cells, of equal shapes."""
        own = dict(zip(self._running, states, strict=True))
        places = states[0].server.copies.places
        with training_precision():
            return tuple(
                own[place] if place in own else self._idle[place].with_places(places) for place in range(len(self._all))
            )


def _with_room(states: Sequence[State]) -> list[State]:
    """With place for one more model in each, and for equally many in all."""
    with training_precision():
        places = max(state.server.copies.with_room().places for state in states)
        return [state.with_places(places) for state in states]
