"""A table that fits its terminal: where it is too wide, the last columns are left out, and it says which."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from rich.console import Console, ConsoleOptions
from rich.measure import Measurement
from rich.table import Table


@dataclasses.dataclass(frozen=True)
class FittingTable:
    """Rows of text under heads; the first column is aligned left and always shown, the others right."""

    title: str
    heads: Sequence[str]
    """What stands above each column; one with a line break is as wide as its longer line."""
    rows: Sequence[Sequence[str]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Table]:
        """The table with as many columns as fit."""
        shown = len(self.heads)
        while shown > 1 and self._needs(console, options, shown) > options.max_width:
            shown -= 1
        yield self._table(shown)

    def _needs(self, console: Console, options: ConsoleOptions, shown: int) -> int:
        """Columns of text that the table takes if nothing in it is broken."""
        roomy = options.update(max_width=10_000)
        return Measurement.get(console, roomy, self._table(shown, captioned=False)).maximum

    def _table(self, shown: int, *, captioned: bool = True) -> Table:
        left_out = ", ".join(head.replace("\n", " ") for head in self.heads[shown:])
        caption = f"not shown on a narrow terminal: {left_out}" if left_out and captioned else None
        table = Table(title=self.title, title_justify="left", caption=caption, caption_justify="left")
        for place, head in enumerate(self.heads[:shown]):
            table.add_column(head, justify="right" if place else "left")
        for row in self.rows:
            table.add_row(*row[:shown])
        return table
