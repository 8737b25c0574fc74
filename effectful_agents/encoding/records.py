"""Records as text that is the same in every process, for journals, digests and caches."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from effectful_agents.encoding.values import encode, not_encoded, written_down
from effectful_agents.encoding.writers import in_order
from effectful_agents.errors import AgentsError

__all__ = ["dumps", "to_jsonable"]

_OURS = __name__.partition(".")[0]


def dumps(obj: Any) -> str:
    """JSON text of a value: keys sorted, no blanks, so that equal values give equal text, byte for byte.

    Raises:
        EncodingError: A part of the value has no JSON form.

    >>> dumps({"b": [1, None], "a": {"é"}})
    '{"a":["é"],"b":[1,null]}'
    """
    token = in_order.set(True)
    try:
        jsonable = to_jsonable(obj)
    finally:
        in_order.reset(token)
    with written_down(obj):
        return json.dumps(jsonable, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def to_jsonable(obj: Any) -> Any:
    """A value as plain JSON.

    In records of this package None is left out: a field that a later version adds then changes nothing about records
    without it, and a run can still be compared with what was recorded before. Everywhere else None is data, and stays.

    Raises:
        EncodingError: A part of the value has no JSON form.

    >>> from effectful_agents.messages import Usage
    >>> to_jsonable({"usage": Usage(input=3), "note": None})
    {'usage': {'input': 3, 'estimated': False}, 'note': None}
    """
    try:
        return _jsonable(obj)
    except AgentsError:
        raise
    except Exception as error:
        raise not_encoded(obj, error) from error


def _jsonable(obj: Any) -> Any:
    kind = type(obj)
    if _is_record(kind):
        names = [field.name for field in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else kind._fields
        return {name: _jsonable(part) for name in names if (part := getattr(obj, name)) is not None}
    if kind in (list, tuple):
        return [_jsonable(part) for part in obj]
    if isinstance(obj, Mapping) and all(isinstance(key, str) for key in obj):
        # The keys go through `encode`, which makes them safe and refuses those that become alike.
        return dict(zip(encode(dict.fromkeys(obj)), map(_jsonable, obj.values()), strict=True))
    return encode(obj)


def _is_record(kind: type) -> bool:
    """Whether a class is a record of this package: a dataclass or a named tuple."""
    ours = kind.__module__.partition(".")[0] == _OURS
    return ours and (dataclasses.is_dataclass(kind) or hasattr(kind, "_fields"))
