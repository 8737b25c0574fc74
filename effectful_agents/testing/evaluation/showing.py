"""How far an evaluation is, for whoever looks at a terminal."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

from effectful_agents.runtime import installed
from effectful_agents.testing.evaluation.tables import on_one_line

if TYPE_CHECKING:
    from effectful_agents.testing.evaluation.rows import Row

__all__ = ["progress_bar"]


@contextlib.contextmanager
def progress_bar(name: str, total: int, *, wanted: bool) -> Generator[Callable[[Row[Any]], None]]:
    """Show a bar on standard error while the block runs, if that is a terminal; it is gone afterwards.

    Yields:
        What is to be told of each row that is complete, from any thread.
    """
    if not wanted or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console  # noqa: PLC0415 - slow to load, and not needed where nobody looks
    from rich.markup import escape  # noqa: PLC0415 - as above
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    name = on_one_line(name)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    failed = 0
    counting = threading.Lock()
    # Where others show something on standard error too, they and the bar stand one below the other.
    theirs = [getattr(each, "console", None) for each in installed()]
    console = next((one for one in theirs if isinstance(one, Console) and one.stderr), None) or Console(stderr=True)
    # What skills print goes above the bar; where it does not go to the terminal, it stays where it goes.
    redirected = sys.stdout.isatty()
    with Progress(*columns, console=console, transient=True, redirect_stdout=redirected) as progress:
        bar = progress.add_task(escape(name), total=total)

        def tell(row: Row[Any]) -> None:
            nonlocal failed
            with counting:
                failed += bool(row.failures)
                text = f"{name}, {failed} failed" if failed else name
            progress.update(bar, advance=1, description=escape(text))

        yield tell
