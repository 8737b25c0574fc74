"""Code in a text runs once, however often the text is read.

A text that does not fit is read again, with what is forgiven, or in another packaging. What the code in it did the
first time it may have done for good, so what came of it, a value or an error, is found again.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Callable, Generator
from typing import Any, NamedTuple

__all__ = ["one_decoding", "run_once"]

type _Decode = Callable[[Any, Any], Any]


class _Run(NamedTuple):
    decode: _Decode
    written: Any
    context: Any
    result: Callable[[], Any]


_runs: contextvars.ContextVar[list[_Run] | None] = contextvars.ContextVar("effectful_agents_decoded_code", default=None)


@contextlib.contextmanager
def one_decoding() -> Generator[None]:
    """Take all readings in the block for readings of one text; a block inside of another belongs to that one."""
    if _runs.get() is not None:
        yield
        return
    token = _runs.set([])
    try:
        yield
    finally:
        _runs.reset(token)


def run_once(decode: _Decode) -> _Decode:
    """A function of a written value and the context, at one place of a type, which runs once for each in a decoding."""

    def read(written: Any, context: Any) -> Any:
        runs = _runs.get()
        if runs is None:
            return decode(written, context)
        # The context tells apart what is decoded while the code runs: other calls have other scopes.
        for one in runs:
            if one.decode is decode and one.context is context and one.written == written:
                return one.result()
        try:
            value = decode(written, context)
        except Exception as error:
            runs.append(_Run(decode, written, context, _raising(error)))
            raise
        runs.append(_Run(decode, written, context, lambda: value))
        return value

    return read


def _raising(error: Exception) -> Callable[[], Any]:
    def result() -> Any:
        raise error

    return result
