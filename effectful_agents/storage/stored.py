"""Values as they stand in an SQLite file, which may be damaged."""

from __future__ import annotations

import sqlite3
from typing import Any

__all__ = ["Damaged", "as_text", "of_text"]


class Damaged(sqlite3.DatabaseError):
    """What is read is nothing that was written. From a transaction it comes as a StorageError that names the file."""

    sqlite_errorcode = sqlite3.SQLITE_CORRUPT


# SQLite's text is UTF-8, which has no lone surrogates; Python's may have some.


def as_text(text: str) -> str | bytes:
    """How any text is given to SQLite, so that equal texts are equal there and others are not."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
    return text


def of_text(stored: Any) -> str:
    r"""The text that `as_text` was given.

    Raises:
        Damaged: It is none.

    >>> of_text(as_text("half \ud83d of it")) == "half \ud83d of it"
    True
    """
    if isinstance(stored, bytes):
        try:
            return stored.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            raise Damaged(f"a text is no UTF-8: {error}") from error
    if not isinstance(stored, str):
        raise Damaged(f"{stored!r} stands in the place of a text")
    return stored
