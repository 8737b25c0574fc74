"""The value of an answer while it is still being written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal

from pydantic_core import from_json

from effectful_agents.encoding.answers import answer_codec
from effectful_agents.encoding.forgiving import FENCE
from effectful_agents.messages.text import safe_text

__all__ = ["PartialDecoder"]

_FINENESS = 50
"""A text is decoded again when it has grown by this part of itself, so all decodings together read it some 50 times."""
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+("?)', re.DOTALL)
"""A string; the group is empty where it has not ended. It takes the open one too, or the search would begin anew at
every quote in it."""
_END_OF_FENCE = re.compile(r"\n`{1,3}\s*\Z")
# The first takes a string that has not ended as far as it goes, the second waits for its end.
_MODES: tuple[Literal["trailing-strings", True], ...] = ("trailing-strings", True)
_NOTHING: Any = object()


class PartialDecoder:
    """What an answer says so far, as its text arrives.

    For `str` that is the text. Anything else is JSON, read as `AnswerCodec` reads it, behind the opening of a Markdown
    code fence too. Elements of lists, items of dictionaries and characters of strings come one after the other, and
    what cannot be a value yet is left out: a number before the character that ends it, a name of an `enum` that has not
    ended. An object of a class (a dataclass, a model, a tuple of several types) is not there before all that it
    requires is; in a list, it is left out until then. Fields that have a default have it until they come. So a date
    that is written as text may be another one for a moment, and a validator is asked about values that are not
    complete; what it raises means that there is no value yet.

    An answer of which a part is code has no values before it is decoded as a whole: code that has not ended would run,
    and run again with each piece.

    A value that is equal to the one before is not given again. The text is decoded when it has grown by two percent
    since the last time, so with each piece at first, and with every second kilobyte at 100; the last value is always
    given.

    Args:
        tp: The type of the answer.
        context: What validators of the type see as `info.context`.

    Raises:
        EncodingError: The type cannot be described.

    >>> decoder = PartialDecoder(list[int])
    >>> [value for piece in ('{"val', 'ue": [1, 2', '3, ', '4]}') for value in decoder.add(piece)]
    [[1], [1, 23], [1, 23, 4]]
    """

    def __init__(self, tp: Any, context: Any = None) -> None:
        self._codec = answer_codec(tp)
        self._context = context
        self._pieces: list[str] = []
        self._length = self._decoded = 0
        self._last: Any = _NOTHING

    def add(self, piece: str) -> Iterator[Any]:
        """Take in the next piece of the text, and give the value so far if there is a new one."""
        if self._codec.has_code:
            return
        self._pieces.append(piece)
        self._length += len(piece)
        if (self._length - self._decoded) * _FINENESS >= self._length:
            self._decoded = self._length
            yield from self._news(self._value(self._text()))

    def end(self) -> Iterator[Any]:
        """Give the value of the whole text if it is a new one; nothing where the answer cannot be decoded."""
        if self._codec.has_code:  # whoever decodes the answer runs it
            return
        try:
            value = self._codec.decode(self._text(), context=self._context)
        except Exception:  # a validator of the user's may raise anything
            return
        yield from self._news(value)

    def _text(self) -> str:
        text = "".join(self._pieces)
        self._pieces = [text]
        return text

    def _news(self, value: Any) -> Iterator[Any]:
        if value is not _NOTHING and not _same(value, self._last):
            self._last = value
            yield value

    def _value(self, text: str) -> Any:
        try:
            if self._codec.response_format is None:
                return self._codec.decode(text, context=self._context)
            text = _without_open_number(_without_fence(safe_text(text)))
            read = self._codec.reader(from_json(text, allow_partial=True))
        except Exception:
            return _NOTHING
        for mode in _MODES:
            try:
                return read(text, context=self._context, allow_partial=mode)
            except Exception:
                continue
        return _NOTHING


def _without_fence(text: str) -> str:
    text = text.lstrip()
    if not text.startswith("`"):
        return text
    fence = FENCE.match(text)
    return "" if fence is None else _END_OF_FENCE.sub("", text[fence.end() :])


def _without_open_number(text: str) -> str:
    """The text without the number at its end, of which more may come."""
    rest = text.rstrip("0123456789+-.eE")
    # The last letter of `true` and `false` is no number, and digits in a string are a part of it.
    if any(map(str.isdigit, text[len(rest) :])) and "" not in _STRING.findall(rest):
        return rest
    return text


def _same(one: Any, other: Any) -> bool:
    try:
        return type(one) is type(other) and bool(one == other)
    except Exception:  # such as for arrays, which compare element by element
        return False
