"""What goes from one process to another and back: plain data, read so that it can be nothing else."""

from __future__ import annotations

import builtins
import collections
import datetime
import decimal
import fractions
import io
import pickle
import uuid
from typing import Any, override

__all__ = ["NotData", "dump", "load", "unpacked_error"]


class NotData(TypeError):
    """A value that only makes sense in the process in which it is."""


_CLASSES: tuple[type, ...] = (
    *(set, frozenset, complex, bytearray, range, slice),
    *(datetime.date, datetime.datetime, datetime.time, datetime.timedelta, datetime.timezone),
    *(decimal.Decimal, fractions.Fraction, uuid.UUID, uuid.SafeUUID),
    *(collections.OrderedDict, collections.deque, collections.Counter, collections.defaultdict),
    *(int, str, float, bool, bytes, list, tuple, dict),
)
_BY_NAME = {(cls.__module__, cls.__name__): cls for cls in _CLASSES}


class _Writer(pickle.Pickler):
    @override
    def reducer_override(self, obj: Any) -> Any:
        if type(obj) in _CLASSES or (isinstance(obj, type) and obj in _CLASSES):
            return NotImplemented
        kind = obj if isinstance(obj, type) else type(obj)
        raise NotData(f"a `{kind.__name__}` is no plain data, and cannot go from one process to another.")


class _Reader(pickle.Unpickler):
    """Reads nothing but the classes above. What comes out of a process that ran foreign code may be anything."""

    @override
    def find_class(self, module: str, name: str) -> Any:
        found = _BY_NAME.get((module, name))
        if found is None:
            raise NotData(f"`{module}.{name}` is no plain data.")
        return found


def dump(value: Any) -> bytes:
    """A value as bytes.

    Raises:
        NotData: It is, or holds, something that is not plain data.

    >>> load(dump({"a": [1, 2.5, ("x", {3})]}))
    {'a': [1, 2.5, ('x', {3})]}
    >>> dump(print)
    Traceback (most recent call last):
    effectful_agents.handlers.execution.crossing.NotData: a `builtin_function_or_method` is no plain data, and cannot \
go from one process to another.
    """
    buffer = io.BytesIO()
    _Writer(buffer, protocol=5).dump(value)
    return buffer.getvalue()


def load(data: bytes) -> Any:
    """The value of such bytes.

    Raises:
        NotData: They hold something else.
    """
    return _Reader(io.BytesIO(data)).load()


def unpacked_error(kind: str, text: str) -> Exception:
    """An exception that was raised in another process: of a class of the language where it was one."""
    cls = NotData if kind == "NotData" else getattr(builtins, kind, None)
    if isinstance(cls, type) and issubclass(cls, Exception) and not issubclass(cls, UnicodeError | OSError):
        return cls(text)
    return RuntimeError(f"{kind}: {text}" if text else kind)
