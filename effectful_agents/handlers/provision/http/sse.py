"""Server-sent events: the form in which a reply comes in pieces."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Iterator

__all__ = ["events"]


def events(body: Iterable[bytes], is_whole: Callable[[str], bool] = bool) -> Iterator[str]:
    r"""The data of each event in a body that arrives in pieces, however it was cut.

    Names and numbers of events are ignored, since no service for chat completions says anything in them. An event that
    no blank line ends counts too, as some servers leave out the last one, unless the connection ended in its middle.

    Args:
        body: The body.
        is_whole: Whether such an event is a whole one, by its data.

    >>> list(events([b": hello", b"\n\nda", b"ta: 1\r\n\r\ndata: 2\ndata: 3"]))
    ['1', '2\n3']
    """
    data: list[str] = []
    for line in _lines(body):
        if not line:
            if data:
                yield "\n".join(data)
                data = []
            continue
        name, _, value = line.partition(":")
        if name == "data":
            data.append(value.removeprefix(" "))
    if is_whole(last := "\n".join(data)):
        yield last


def _lines(body: Iterable[bytes]) -> Iterator[str]:
    # Not `str.splitlines`, nor httpx's `iter_lines`: both also end a line at characters that JSON leaves as they are,
    # such as U+2028.
    decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
    rest: list[str] = []
    after_return = False
    for piece in body:
        text = decoder.decode(piece)
        if after_return and text:
            text = text.removeprefix("\n")
            after_return = False
        if text.endswith("\r"):
            after_return = True
        # Only at a line's end is anything put together: a long line in many pieces costs no more than its length.
        *ended, unended = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        for line in ended:
            yield "".join(rest) + line
            rest = []
        rest.append(unended)
    if last := "".join(rest) + decoder.decode(b"", final=True):
        yield last
