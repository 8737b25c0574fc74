"""The economy of a run on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
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
        shown += [Text(), _table(sheet)]
    return Group(*shown)


def _table(sheet: Sheet) -> Table:
    table = Table(title=Text(sheet.title), title_justify="left", box=None, pad_edge=False, header_style="bold")
    for place, head in enumerate(sheet.heads):
        words = place in sheet.words
        table.add_column(head, justify="left" if words else "right", overflow="fold", no_wrap=not words)
    for row in sheet.rows:
        style = "bold" if row[0] == "all" else None
        table.add_row(*map(Text, row), style=style)
    return table
