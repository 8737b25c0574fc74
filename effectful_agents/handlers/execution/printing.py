"""What restricted code prints: to the standard output of the moment, or to an object of its own."""

from __future__ import annotations

import builtins
import calendar
import contextlib
import pprint as _pprint
import sys
from collections.abc import Generator
from contextvars import ContextVar
from typing import Any

from effectful_agents.handlers.execution import calls, limits, showing
from effectful_agents.handlers.execution.attributes import get_attribute
from effectful_agents.handlers.execution.exact import exact
from effectful_agents.handlers.execution.kinds import replace
from effectful_agents.handlers.execution.sizes import check_count

__all__ = ["PrettyPrinter", "PrintCollector", "not_redirected", "pformat", "pprint", "print_", "redirect_stdout"]

_target: ContextVar[Any] = ContextVar("effectful_agents_printing_target", default=None)


_FEW = 8
"""Texts that may be put together before they are counted."""


def print_(*values: Any, sep: str | None = None, end: str | None = None, file: Any = None, flush: bool = False) -> None:
    """`print`."""
    limits.tick()
    between = " " if sep is None else _text_of("sep", sep)
    after = "\n" if end is None else _text_of("end", end)
    file = _target.get() if file is None else file
    if file is None:
        parts = [showing.text(value) for value in values]
        many = len(parts) > _FEW
        if many:  # one of them may stand there again and again
            limits.counted(sum(map(str.__len__, parts)) + len(between) * (len(parts) - 1) + len(after))
        text = between.join(parts)
        if not many:
            limits.counted(len(text) + len(after))
        builtins.print(text, end=after, file=sys.stdout, flush=flush)
        return
    write = calls.callee(get_attribute(file, "write"))
    for number, value in enumerate(values):
        if number:
            write(between)
        write(showing.text(value))
    write(after)
    if flush:
        calls.apply(get_attribute(file, "flush"))


print_.__name__ = print_.__qualname__ = "print"


def _text_of(name: str, text: Any) -> str:
    if type(text) is str:
        return text
    if not isinstance(text, str):
        raise TypeError(f"{name} must be None or a string, not {type(text).__name__}")
    return exact(text)


class PrintCollector:
    """The collector of RestrictedPython's own policy: it collects nothing, and prints."""

    def __init__(self, getattr: Any = None) -> None:
        self._call_print = print_

    def __call__(self) -> str:
        return ""


@replace(contextlib.redirect_stdout)
class redirect_stdout(contextlib.AbstractContextManager[Any]):
    """`contextlib.redirect_stdout`, for what the code prints: the output of the process stays where it is."""

    def __init__(self, new_target: Any) -> None:
        self._new_target = new_target
        self._before: list[Any] = []

    def __enter__(self) -> Any:
        self._before.append(_target.get())
        _target.set(self._new_target)
        return self._new_target

    def __exit__(self, *error: object) -> None:
        _target.set(self._before.pop())


@contextlib.contextmanager
def not_redirected() -> Generator[None]:
    """What is printed in the block is printed; what the code redirects is so no longer than until its end."""
    token = _target.set(None)
    try:
        yield
    finally:
        _target.reset(token)


@replace(_pprint.pformat)
def pformat(object: Any, indent: int = 1, *args: Any, **options: Any) -> str:
    """`pprint.pformat`."""
    check_count(indent)
    showing.check_shown(object, repr)
    return _pprint.pformat(object, indent, *args, **options)


@replace(_pprint.pprint)
def pprint(object: Any, stream: Any = None, *args: Any, **options: Any) -> None:
    """`pprint.pprint`."""
    print_(pformat(object, *args, **options), file=stream)


@replace(_pprint.pp)
def pp(object: Any, *args: Any, sort_dicts: bool = False, **options: Any) -> None:
    """`pprint.pp`."""
    pprint(object, *args, sort_dicts=sort_dicts, **options)


@replace(_pprint.PrettyPrinter)
class PrettyPrinter:
    """`pprint.PrettyPrinter`."""

    def __init__(self, indent: int = 1, width: int = 80, depth: Any = None, stream: Any = None, **options: Any) -> None:
        self._stream = stream
        self._options = {"indent": indent, "width": width, "depth": depth, **options}

    def pformat(self, object: Any) -> str:
        """A value as a text."""
        return pformat(object, **self._options)

    def pprint(self, object: Any) -> None:
        """Print a value."""
        pprint(object, self._stream, **self._options)


@replace(calendar.TextCalendar)
class TextCalendar(calendar.TextCalendar):
    """`calendar.TextCalendar`, whose printing is that of the code."""

    def prweek(self, theweek: Any, width: Any) -> None:
        """Print a week."""
        print_(self.formatweek(theweek, width), end="")

    def prmonth(self, theyear: Any, themonth: Any, w: Any = 0, l: Any = 0) -> None:  # noqa: E741 - as in the library
        """Print a month."""
        print_(self.formatmonth(theyear, themonth, w, l), end="")

    def pryear(self, theyear: Any, w: Any = 0, l: Any = 0, c: Any = 6, m: Any = 3) -> None:  # noqa: E741
        """Print a year."""
        print_(self.formatyear(theyear, w, l, c, m), end="")


# It is called with what is looked at, like the class that it stands for.
TextCalendar.__module__ = "calendar"
