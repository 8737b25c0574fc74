"""The forms of types that pydantic does not know, and where users add their own.

A `Codec` says how values of a type look on the wire: by the annotation of that form, and two functions between the
two. Schema, decoding and encoding of the type follow from it everywhere, inside containers, dataclasses and models too.
"""

from __future__ import annotations

import collections
import dataclasses
import datetime
import decimal
import fractions
import inspect
import ipaddress
import pathlib
import re
import uuid
import zoneinfo
from collections.abc import Callable
from typing import Any

from effectful_agents.errors import EncodingError, OptionError

__all__ = ["Codec", "Kinds", "add", "find", "on_change", "register"]


@dataclasses.dataclass(frozen=True, slots=True)
class Codec:
    """How values of one type are written, and read.

    Args:
        form: The annotation of the written value: `str`, `list[int]`, a dataclass. Its schema is the type's schema;
            constraints and a description go into `Annotated`. It may name other types that have codecs.
        encode: Makes the written value of a value.
        decode: Makes the value of a written one; None where a model can be shown such values and not write them. It
            raises `ValueError` for what it cannot read, with a text for the model. A second positional parameter, if it
            has one, gets the context of the decoding (the names that the skill sees).
        runs_code: Whether decoding runs what the model wrote. Such a type can be asked for only where an executor of
            `effectful_agents.handlers.execution` is installed.
    """

    form: Any
    encode: Callable[[Any], Any]
    decode: Callable[..., Any] | None = None
    runs_code: bool = False

    def decoder(self) -> Callable[..., Any] | None:
        """`decode` as a function of the written value and the context."""
        decode = self.decode
        if decode is None or _takes_context(decode):
            return decode
        return lambda written, _: decode(written)


type Kinds = type | str | Callable[[type], bool]
"""Which types a codec is for: a class with its subclasses, a class by its full name, or what a test of a class says."""

_by_class: dict[type, Any] = {}
_by_name: dict[str, Any] = {}
_tests: list[tuple[Callable[[type], bool], Any]] = []
_listeners: list[Callable[[], None]] = []

# Annotations of these say how they are written without naming a class, so that a codec would never be asked.
_FIXED = frozenset({
    object, type(None), bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset,
    collections.deque, collections.OrderedDict, collections.defaultdict, decimal.Decimal, fractions.Fraction,
    datetime.date, datetime.datetime, datetime.time, datetime.timedelta, uuid.UUID, re.Pattern, zoneinfo.ZoneInfo,
    pathlib.PurePath, pathlib.PurePosixPath, pathlib.PureWindowsPath, pathlib.Path, pathlib.PosixPath,
    pathlib.WindowsPath, ipaddress.IPv4Address, ipaddress.IPv4Network, ipaddress.IPv4Interface,
    ipaddress.IPv6Address, ipaddress.IPv6Network, ipaddress.IPv6Interface,
})  # fmt: skip
# Python can call most of these, and what comes of it says nothing about a class.
_ANNOTATIONS = frozenset({"typing", "typing_extensions", "types"})


def register(kinds: Kinds, codec: Codec | Callable[[type], Codec]) -> None:
    """Say how values of a type cross the wire: as parameters, answers, parts of prompts and results of tools.

    What was registered last counts; a tool that was offered before keeps the form that it had.

    Args:
        kinds: A class, whose subclasses are meant as well; its full name (`"numpy.ndarray"`), so that nothing need be
            imported; or a function that is asked about classes.
        codec: The codec, or a function that makes one of the class in question.

    Raises:
        OptionError: The first is none of the three (`list[int]`, a union, a `NewType`), or a class whose form is fixed
            (`int`, `list`, `datetime.date`, whose subclasses may be registered; `pydantic.SecretStr` and other classes
            that tell pydantic how they are written); or the second is neither.

    >>> class Money:
    ...     def __init__(self, cents: int) -> None:
    ...         self.cents = cents
    >>> register(Money, Codec(int, lambda money: money.cents, Money))
    >>> from effectful_agents.encoding import decode, encode, json_schema
    >>> encode([Money(250)]), decode("[250]", list[Money])[0].cents, json_schema(Money)
    ([250], 250, {'type': 'integer'})
    """
    _check(kinds, codec)
    add(kinds, codec)


def add(kinds: Kinds, codec: Codec | Callable[[type], Codec]) -> None:
    """As `register`; of a class whose form is fixed, it counts for its subclasses."""
    if isinstance(kinds, type):
        _by_class[kinds] = codec
    elif isinstance(kinds, str):
        _by_name[kinds] = codec
    else:
        _tests.insert(0, (kinds, codec))
    for forget in _listeners:
        forget()


def _check(kinds: Any, codec: Any) -> None:
    own = False
    if isinstance(kinds, type):
        # A class that tells pydantic its core schema is not seen in it; a model and a dataclass are.
        own = hasattr(kinds, "__get_pydantic_core_schema__") and not hasattr(kinds, "__pydantic_fields__")
        fixed = own or kinds in _FIXED
    elif isinstance(kinds, str):
        if not all(map(str.isidentifier, kinds.replace("<locals>", "locals").split("."))) or "." not in kinds:
            raise OptionError(f"`{kinds}` is no full name of a class; write it with its module: `numpy.ndarray`")
        fixed = any(kinds == _full_name(kind) for kind in _FIXED)
    elif callable(kinds) and type(kinds).__module__ not in _ANNOTATIONS:
        fixed = False
    else:
        raise OptionError(
            f"`register` takes a class, its full name, or a function that is asked about classes, and not `{kinds!r}`; "
            "for one annotation, register a class of its own"
        )
    if fixed:
        name = kinds if isinstance(kinds, str) else kinds.__qualname__
        raise OptionError(
            f"the form of `{name}` is fixed; "
            + ("it says itself how it is written" if own else "register a subclass of it")
        )
    if not isinstance(codec, Codec) and (isinstance(codec, type) or not callable(codec)):
        raise OptionError(f"`register` takes a `Codec`, or a function that makes one of a class, and not `{codec!r}`")


def on_change(forget: Callable[[], None]) -> None:
    """Have a function called whenever something is registered: what was derived before may be outdated."""
    _listeners.append(forget)


def find(kind: type) -> Codec | None:
    """The codec of a class; its own first, then that of a test that it passes, then that of the nearest base.

    Raises:
        EncodingError: A test that a user wrote failed, or a function made something else than a codec.
    """
    entry = _by_class.get(kind) or _by_name.get(_full_name(kind))
    if entry is None:
        entry = next((codec for passes, codec in _tests if _passes(passes, kind)), None)
    if entry is None:
        bases = (base for base in getattr(kind, "__mro__", ())[1:] if base is not object)
        entry = next(
            (found for base in bases if (found := _by_class.get(base) or _by_name.get(_full_name(base)))), None
        )
    if entry is None or isinstance(entry, Codec):
        return entry
    made = entry(kind)
    if not isinstance(made, Codec):
        raise EncodingError(f"what was registered for `{_full_name(kind)}` made {type(made).__name__}, and no `Codec`")
    return made


def _passes(test: Callable[[type], bool], kind: type) -> bool:
    try:
        return bool(test(kind))
    except TypeError:  # such as that of `issubclass`: it is not for this class
        return False
    except Exception as error:  # what users wrote may raise anything
        name = getattr(test, "__qualname__", None) or type(test).__name__
        raise EncodingError(
            f"the test `{name}` that codecs were registered with failed for `{_full_name(kind)}`: "
            f"{type(error).__name__}: {error}"
        ) from error


def _full_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _takes_context(function: Callable[..., Any]) -> bool:
    if isinstance(function, type):  # the second parameter of a constructor is an option
        return False
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a builtin that does not tell
        return False
    required = [
        one
        for one in parameters
        if one.default is one.empty and one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
    ]
    return len(required) == 2
