"""The economy of a run on a terminal."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from effectful_agents.handlers.observability.context_economy.sheets import Sheet, sheets, summary_of

if TYPE_CHECKING:
    from effectful_agents.handlers.observability.context_economy.whole import ContextEconomy

__all__ = ["tables"]


def tables(economy: ContextEconomy) -> RenderableType:
    """All of it, a table for each part."""
    shown: list[RenderableType] = [Text(line) for line in summary_of(economy)]
    for sheet in sheets(economy):
        shown += [Text(), _WithSteps(sheet) if "STEP" in sheet.heads else _table(sheet)]
    return Group(*shown)


@dataclasses.dataclass(frozen=True)
class _WithSteps:
    """A table that has identifiers of steps: where they would be broken, they get a table of their own."""

    sheet: Sheet

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = _table(self.sheet)
        if Measurement.get(console, options.update(max_width=_ANY_WIDTH), table).maximum <= options.max_width:
            yield table
            return
        place = self.sheet.heads.index("STEP")
        yield _table(_of(self.sheet, [other for other in range(len(self.sheet.heads)) if other != place]))
        yield Text()
        steps = _of(self.sheet, [0, place])
        rows = [row for row in steps.rows if row[1]]
        yield _table(dataclasses.replace(steps, title="Steps of the turns", rows=rows))


_ANY_WIDTH = 100_000


def _of(sheet: Sheet, places: list[int]) -> Sheet:
    """Some columns of a table."""
    rows = [[row[place] for place in places] for row in sheet.rows]
    words = frozenset(new for new, place in enumerate(places) if place in sheet.words)
    return Sheet(sheet.title, [sheet.heads[place] for place in places], rows, words)


def _table(sheet: Sheet) -> Table:
    table = Table(title=Text(sheet.title), title_justify="left", box=None, pad_edge=False, header_style="bold")
    for place, head in enumerate(sheet.heads):
        words = place in sheet.words
        table.add_column(head, justify="left" if words else "right", overflow="fold", no_wrap=not words)
    for row in sheet.rows:
        style = "bold" if row[0] == "all" else None
        table.add_row(*map(Text, row), style=style)
    return table
