"""Bytes on the wire.

Bytes that are UTF-8 text are written as that text, which a model can read and write. Others are a `data:` address with
base64 inside; so is the rare text that looks like one, and nothing is ever read in two ways.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

__all__ = ["SCHEMA", "b64", "read", "write"]

_PREFIX = "data:;base64,"
SCHEMA = {"type": "string", "description": f"UTF-8 text; other bytes as `{_PREFIX}…`"}


def b64(data: bytes) -> str:
    r"""Bytes as base64 text, as the `data` of content parts wants it.

    >>> b64(b"\xff\x00")
    '/wA='
    """
    return base64.b64encode(data).decode("ascii")


def write(data: bytes | bytearray | memoryview) -> str:
    r"""Bytes as text.

    >>> write(b"plain"), write(b"\xff")
    ('plain', 'data:;base64,/w==')
    """
    raw = bytes(data)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        return _PREFIX + b64(raw)
    return _PREFIX + b64(raw) if text.startswith(_PREFIX) else text


def read(value: Any) -> Any:
    """The bytes that a text stands for; what is no text is left to whoever asked.

    Raises:
        ValueError: The base64 is malformed.
    """
    if not isinstance(value, str):
        return value
    if not value.startswith(_PREFIX):
        return value.encode("utf-8")
    try:
        return base64.b64decode(value.removeprefix(_PREFIX), validate=True)
    except binascii.Error as error:
        raise ValueError(f"the base64 after `{_PREFIX}` is malformed") from error
