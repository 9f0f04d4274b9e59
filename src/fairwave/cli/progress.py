"""What is shown while a run goes on: a live table in a terminal, a line now and then elsewhere."""

from __future__ import annotations

import contextlib
import math
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rich.table import Table

    from fairwave.runs.session import TrackProgress

_LINE_EVERY = 10
_MOST_ROWS = 12


class Board:
    """The latest step of every track, and how long the rest will take."""

    def __init__(self, total: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._total, self._clock, self._start = total, clock, clock()
        self._steps: dict[tuple[str, int], TrackProgress] = {}
        self._done_before = self._rounds_done = 0
        self._first_round_at: float | None = None

    def take(self, step: TrackProgress) -> None:
        """Note a step."""
        old = self._steps.get(step.track)
        gained = step.rounds - (old.rounds if old else 0)
        if old is None:
            self._done_before += gained
        else:
            self._rounds_done += gained
            # The first round compiles; the estimate starts after it.
            self._first_round_at = self._first_round_at or self._clock()
        self._steps[step.track] = step

    def seconds_left(self) -> float:
        """At the pace since the first round; NaN before there is one."""
        if self._first_round_at is None or self._rounds_done < 2:
            return math.nan
        pace = (self._clock() - self._first_round_at) / (self._rounds_done - 1)
        return max(0.0, pace * (self._total - self._done_before - self._rounds_done))

    def headline(self) -> str:
        """Rounds done, time taken, time left."""
        done = self._done_before + self._rounds_done
        left = self.seconds_left()
        remaining = "estimating" if math.isnan(left) else f"{duration(left)} left"
        return f"{done} of {self._total} rounds, {duration(self._clock() - self._start)}, {remaining}"

    def table(self) -> Table:
        """The tracks, latest last."""
        from rich.table import Table

        table = Table(title=self.headline(), title_justify="left", box=None, pad_edge=False)
        shown = list(self._steps.values())[-_MOST_ROWS:]
        measure = " / ".join(dict.fromkeys(map(_measure, shown)))
        for column in ("scheme", "seed", "round", "loss", measure, "energy std (mJ)"):
            table.add_column(column, justify="left" if column == "scheme" else "right")
        for step in shown:
            table.add_row(step.track.scheme, str(step.track.seed), str(step.rounds), *_numbers(step))
        return table

    def line(self, step: TrackProgress) -> str:
        """One step as text."""
        loss, tested, spread = _numbers(step)
        return (
            f"{step.track.scheme}, seed {step.track.seed}, round {step.rounds}: loss {loss}, {_measure(step)} "
            f"{tested}, energy std {spread} mJ ({self.headline()})"
        )


def _measure(step: TrackProgress) -> str:
    """What is told of the model on test data."""
    return "test accuracy" if step.test_rmse is None else "test RMSE"


def _numbers(step: TrackProgress) -> tuple[str, str, str]:
    tested = step.test_accuracy if step.test_rmse is None else step.test_rmse
    values = ((step.loss, ".3f"), (tested, ".3f"), (step.energy_std_j * 1e3, ".2f"))
    shown = ["" if math.isnan(value) else format(value, form) for value, form in values]
    return shown[0], shown[1], shown[2]


def duration(seconds: float) -> str:
    """Seconds as people say them."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    return (
        f"{whole // 60} min {whole % 60:02d} s" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60:02d} min"
    )


@contextlib.contextmanager
def watching(total: int) -> Iterator[Callable[[TrackProgress], None]]:
    """A watcher that shows progress on standard error."""
    board = Board(total)
    if not sys.stderr.isatty():
        yield lambda step: _print_line(board, step)
        return
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(stderr=True), get_renderable=board.table, refresh_per_second=4):
        yield board.take


def _print_line(board: Board, step: TrackProgress) -> None:
    board.take(step)
    if not math.isnan(step.energy_std_j) and (step.rounds % _LINE_EVERY == 0 or step.rounds == 1):
        typer.echo(board.line(step), err=True)
