"""Values and errors as a journal writes them: plain JSON that is proven to give the same again."""

from __future__ import annotations

import contextlib
import datetime
import decimal
import fractions
import hashlib
import inspect
import json
import pathlib
import sys
import uuid
from collections.abc import Mapping
from typing import Any

from effectful_agents.encoding import decode, dumps, encode
from effectful_agents.errors import AgentsError, EncodingError, JournalError
from effectful_agents.tracebacks import summary

__all__ = ["arguments", "digest", "error_of", "read", "read_any", "write", "write_any", "written_error"]


def digest(data: Any) -> str:
    """What stands for plain JSON: equal for equal data, and in every process."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


# --- values -----------------------------------------------------------------------------------------------------------


def write(value: Any, tp: Any) -> Any:
    """A value as JSON from which `read` makes the same value.

    Raises:
        EncodingError: There is no such JSON.
    """
    encoded = encode(value, tp)
    try:
        value_again = read(encoded, tp)
        again = encode(value_again, tp)
    except EncodingError:
        raise
    except Exception as error:
        raise EncodingError(f"what is written of `{type(value).__name__}` cannot be read as {tp}: {error}") from error
    if dumps(again) != dumps(encoded) or not _is_equal(value, value_again):
        raise EncodingError(
            f"a value of the class `{type(value).__name__}` is another one once it was written and read as {tp}; name "
            "its whole type"
        )
    return encoded


def _is_equal(value: Any, again: Any) -> bool:
    """Whether two values are equal, as far as they say: an array does not, nor what is not equal to itself."""
    try:
        says = [value == value, value == again]
    except Exception:  # a comparison may raise anything
        return True
    return says[0] is not True or says[1] is not False or type(value).__eq__ is object.__eq__


def read(encoded: Any, tp: Any) -> Any:
    """The value that `write` wrote."""
    return decode(json.dumps(encoded), tp, strict=True)


_PLAIN: Mapping[str, type] = {
    kind.__name__: kind
    for kind in (
        *(type(None), bool, int, float, complex, str, bytes, bytearray, list, dict, tuple, set, frozenset),
        *(datetime.datetime, datetime.date, datetime.time, datetime.timedelta),
        *(decimal.Decimal, fractions.Fraction, uuid.UUID, pathlib.Path, pathlib.PurePath),
    )
}
"""Classes whose values need no type to be read by: what is written names them."""


def write_any(value: Any, declared: Any = Any) -> dict[str, Any]:
    """A value with what it has to be read as: the type that is declared for it, or its own class.

    Raises:
        EncodingError: Neither gives the same value again.
    """
    if type(value) is str:  # to the letter, lone surrogates too
        return {"value": value} if _reads(value, declared) else {"value": value, "as": "str"}
    if declared is not Any and declared is not inspect.Signature.empty:
        try:
            return {"value": write(value, declared)}
        except EncodingError:
            if _name_of(value) is None:
                raise
    name = _name_of(value)
    if name is None:
        raise EncodingError(
            f"a value of the class `{type(value).__name__}` is not read again without a type that says how."
        )
    return {"value": write(value, _named(name)), "as": name}


def read_any(written: Mapping[str, Any], declared: Any = Any) -> Any:
    """The value that `write_any` wrote.

    Raises:
        JournalError: Its class is not there any more.
    """
    name, value = written.get("as"), written["value"]
    if type(value) is str and (name == "str" or (name is None and _reads(value, declared))):
        return value
    return read(value, declared if name is None else _named(name))


def _reads(text: str, tp: Any) -> bool:
    """Whether a text is what a type says, as it stands."""
    if tp in (Any, str, inspect.Signature.empty):
        return True
    try:
        return read(text, tp) == text
    except ValueError:
        return False


def _name_of(value: Any) -> str | None:
    """What the class of a value is called in a journal; None for one that would not be found by that."""
    name = "Path" if isinstance(value, pathlib.Path) else type(value).__name__
    if name in _PLAIN and (type(value) is _PLAIN[name] or name == "Path"):
        return name
    path = f"{type(value).__module__}:{type(value).__qualname__}"
    return path if _found(path) is type(value) else None


def _named(name: str) -> Any:
    found = _PLAIN.get(name) or _found(name)
    if found is None:
        raise JournalError(f"a value of the class `{name}` was recorded, and there is no such class any more.")
    return found


def arguments(bound: inspect.BoundArguments) -> dict[str, Any]:
    """Arguments as JSON, to be compared and shown; of one that has none, only its class is told."""
    shown = {}
    for name, value in bound.arguments.items():
        parameter = bound.signature.parameters[name]
        declared = parameter.annotation
        many = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        tp = Any if many or declared is parameter.empty else declared
        shown[name] = _shown(value, tp)
    return shown


def _shown(value: Any, tp: Any) -> Any:
    for each in (tp, Any):
        try:
            encoded = encode(value, each)
            return json.loads(dumps(encoded))
        except Exception:
            continue
    return {"class": type(value).__qualname__}


# --- errors -----------------------------------------------------------------------------------------------------------


def written_error(error: BaseException) -> dict[str, Any]:
    """An exception as JSON: its class, and of what it was made of and of its state what is plain data."""
    kind = type(error)
    written: dict[str, Any] = {"class": f"{kind.__module__}:{kind.__qualname__}", "text": summary(error)}
    if isinstance(error, BaseExceptionGroup):
        return written | {"message": error.message, "group": [written_error(each) for each in error.exceptions]}
    with contextlib.suppress(AgentsError):
        written["args"] = [write_any(each) for each in error.args]
    with contextlib.suppress(AgentsError):
        written["state"] = write_any(dict(vars(error)))
    # An OSError with a file's name is made of more than its `args`.
    with contextlib.suppress(Exception):
        _, made, *_ = error.__reduce__()
        if made != error.args:
            written["made"] = [write_any(each) for each in made]
    return written


def error_of(written: Mapping[str, Any]) -> Exception:
    """The exception that `written_error` wrote: of the same class where that is loaded, and with the same text.

    One that is made of more than plain data has only its text.
    """
    text = written.get("text", "")
    kind = _class(written.get("class", ""))
    if kind is not None and "group" in written:
        return kind(written["message"], [error_of(each) for each in written["group"]])
    if kind is not None:
        args = tuple(map(read_any, written["args"])) if "args" in written else (text.partition(": ")[2] or text,)
        made = tuple(map(read_any, written["made"])) if "made" in written else args
        for make in (lambda: kind(*made), lambda: kind.__new__(kind, *made)):
            try:
                error = make()
                error.args = args
                vars(error).update(read_any(written["state"]) if "state" in written else {})
            except Exception:  # a constructor may want anything, and do anything
                continue
            if type(error) is kind:
                return error
    return JournalError(f"this was raised before: {text}")


def _class(path: str) -> Any:
    found = _found(path)
    return found if found is not None and issubclass(found, Exception) else None


def _found(path: str) -> type | None:
    """The class at a place, `module:name`, of a module that is loaded."""
    module, _, name = path.partition(":")
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found if isinstance(found, type) else None
