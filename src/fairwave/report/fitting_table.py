"""A table that fits its terminal: where it is too wide, intervals go below their means, and then columns are left out.

The columns that are left out are the last ones, and the table says which.
"""

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
        table, shown = self, len(self.heads)
        for narrower in (" (", " to "):
            if table._needs(console, options, shown) > options.max_width:
                table = table._broken_before(narrower)
        while shown > 1 and table._needs(console, options, shown) > options.max_width:
            shown -= 1
        yield table._table(shown)

    def _broken_before(self, text: str) -> FittingTable:
        """The same with a new line in every cell where this text begins, as in '0.5 (0.4' and 'to 0.7)'."""
        rows = [[cell.replace(text, f"\n{text.lstrip()}") for cell in row] for row in self.rows]
        return dataclasses.replace(self, rows=rows)

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
