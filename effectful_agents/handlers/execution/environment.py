"""What restricted code finds: its builtins, and the guards that the policy writes into it."""

from __future__ import annotations

import builtins
import dataclasses
import sys
import typing
from collections.abc import Callable
from typing import Any

from RestrictedPython.Guards import guarded_iter_unpack_sequence, guarded_unpack_sequence

from effectful_agents.handlers.execution import calls, limits, matching, numeric, showing, sizes, spreading, streams
from effectful_agents.handlers.execution.attributes import (
    delete_attribute,
    get_attribute,
    get_item,
    has_attribute,
    set_attribute,
    writable,
)
from effectful_agents.handlers.execution.classes import build_class
from effectful_agents.handlers.execution.kinds import REPLACED, RESTRICTED, SANDBOX, VETTED
from effectful_agents.handlers.execution.metaclasses import type_
from effectful_agents.handlers.execution.modules import guarded_import

__all__ = ["BUILTINS"]

_DIRECT = [
    "abs",
    "bin",
    "bool",
    "callable",
    "chr",
    "complex",
    "float",
    "hash",
    "hex",
    "id",
    "isinstance",
    "issubclass",
    "len",
    "next",
    "object",
    "oct",
    "ord",
    "range",
    "slice",
    "str",
    "super",
]
_OTHERS = [
    "classmethod",
    "property",
    "staticmethod",
    "all",
    "any",
    "bytearray",
    "bytes",
    "dict",
    "enumerate",
    "filter",
    "frozenset",
    "int",
    "list",
    "map",
    "max",
    "memoryview",
    "min",
    "set",
    "sorted",
    "tuple",
    "zip",
]

# --- exceptions ---------------------------------------------------------------------------------------------------


def catchable(kinds: Any = Exception) -> Any:
    """What an `except` clause catches: of what it names, whatever is an `Exception`, and nothing of a stop."""
    if limits.is_stopped(sys.exception()):
        return ()
    if isinstance(kinds, tuple):
        return tuple([one for kind in kinds for one in _as_tuple(catchable(kind))])
    if isinstance(kinds, type) and issubclass(kinds, BaseException):
        return kinds if issubclass(kinds, Exception) else ()
    return kinds  # no class: the interpreter says so


def _as_tuple(kinds: Any) -> tuple[Any, ...]:
    return kinds if isinstance(kinds, tuple) else (kinds,)


def raisable(error: Any) -> Any:
    """What a `raise` statement raises, if it may."""
    kind = error if isinstance(error, type) else type(error)
    if issubclass(kind, BaseException) and not issubclass(kind, Exception):
        raise TypeError(f"`{kind.__name__}` cannot be raised here; raise an `Exception`.")
    if isinstance(error, BaseException):
        showing.check_shown(error)  # who hears of it makes a text of it, outside of all limits
    return error


class Within:
    """A context manager that cannot make an exception that is no `Exception`, or a stop, disappear."""

    __slots__ = ("_leave", "_manager")

    def __init__(self, manager: Any) -> None:
        self._manager = manager

    def __enter__(self) -> Any:
        kind = type(self._manager)
        if not hasattr(kind, "__enter__") or not hasattr(kind, "__exit__"):
            raise TypeError(f"'{kind.__name__}' object does not support the context manager protocol")
        self._leave = kind.__exit__
        return kind.__enter__(self._manager)

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> bool:
        left = self._leave(self._manager, kind, error, traceback)
        if isinstance(error, BaseException) and (not isinstance(error, Exception) or limits.is_stopped(error)):
            return False
        return bool(left)


def within(manager: Any) -> Within:
    """What a `with` statement enters."""
    get_attribute(manager, "__enter__") if hasattr(type(manager), "__enter__") else None
    return Within(manager)


# --- output -------------------------------------------------------------------------------------------------------


def print_(*values: Any, sep: str | None = None, end: str | None = None, file: Any = None, flush: bool = False) -> None:
    """`print`: to the standard output of the moment, or to an object of the code's own."""
    limits.tick()
    if file is None:
        text = (" " if sep is None else sep).join([showing.text(value) for value in values])
        limits.counted(len(text) + 1)
        builtins.print(text, end=end, file=sys.stdout, flush=flush)
    else:
        get_attribute(file, "write")
        builtins.print(*values, sep=sep, end=end, file=file, flush=flush)


class PrintCollector:
    """The collector of RestrictedPython's own policy: it collects nothing, and prints."""

    def __init__(self, getattr: Any = None) -> None:
        self._call_print = print_

    def __call__(self) -> str:
        return ""


# --- all of it ----------------------------------------------------------------------------------------------------


def format_field(value: Any, spec: Any = "") -> str:
    """What stands between braces in an f-string."""
    return sizes.format_value(value, spec)


def _builtins() -> dict[str, Any]:
    found: dict[str, Any] = {name: getattr(builtins, name) for name in (*_DIRECT, *_OTHERS)}
    for name in _DIRECT:
        calls.DIRECT.add(id(found[name]))
    for name, value in vars(builtins).items():
        if isinstance(value, type) and issubclass(value, Exception):
            found[name] = value
            calls.DIRECT.add(id(value))
    own: dict[str, Callable[..., Any]] = {
        "type": type_,
        "print": print_,
        "getattr": get_attribute,
        "setattr": set_attribute,
        "delattr": delete_attribute,
        "hasattr": has_attribute,
        "sum": numeric.total,
        "round": numeric.round_number,
        "pow": numeric.power,
        "format": numeric.format_,
        "iter": streams.guarded_iter,
        "divmod": numeric.divide,
        "reversed": streams.guarded_reversed,
        "repr": showing.repr_,
        "ascii": showing.ascii_,
    }
    for value in (*found.values(), *own.values()):
        VETTED.add(id(value))
    calls.DIRECT |= {id(type_), id(showing.repr_), id(showing.ascii_)}
    for name in own:
        REPLACED.setdefault(id(getattr(builtins, name)), (getattr(builtins, name), own[name]))
    return {**found, **own}


RESTRICTED |= {
    **_builtins(),
    "Ellipsis": ...,
    "NotImplemented": NotImplemented,
    "__debug__": True,
    "__build_class__": build_class,
    "__import__": guarded_import,
    "__name__": "builtins",
    "_add_": sizes.add,
    "_apply_": calls.apply,
    "_callee_": calls.callee,
    "_catchable_": catchable,
    "_contained_": spreading.contained,
    "_delegated_": spreading.delegated,
    "_each_": spreading.each,
    "_floordiv_": sizes.floordiv,
    "_format_": format_field,
    "_getattr_": get_attribute,
    "_getitem_": get_item,
    "_getiter_": streams.iterate,
    "_inplacevar_": spreading.inplace,
    "_instance_": matching.instance_parts,
    "_iter_unpack_sequence_": guarded_iter_unpack_sequence,
    "_joined_": showing.joined,
    "_looped_": streams.looped,
    "_lshift_": sizes.lshift,
    "_mapping_": matching.mapping_parts,
    "_mod_": sizes.mod,
    "_mul_": sizes.mul,
    "_pow_": sizes.power,
    "_print_": PrintCollector,
    "_raisable_": raisable,
    "_sequence_": matching.sequence_parts,
    "_shown_": showing.shown,
    "_slices_": spreading.slices,
    "_spread_": spreading.spread,
    "_tick_": limits.tick,
    "_unpack_sequence_": guarded_unpack_sequence,
    "_unpacked_": spreading.unpacked,
    "_with_": within,
    "_write_": writable,
    "__metaclass__": type,
}
for _known in (typing.NamedTuple, typing.TypedDict):
    VETTED.add(id(_known))

BUILTINS = RESTRICTED
"""The builtins of restricted code."""

# What `dataclasses` writes is run among the names of this module: there, too, only these builtins count.
# And there it looks for what `ClassVar` means, where annotations are texts.
sys.modules[SANDBOX].__dict__.update(
    __builtins__=RESTRICTED,
    typing=typing,
    dataclasses=dataclasses,
    ClassVar=typing.ClassVar,
    KW_ONLY=dataclasses.KW_ONLY,
)
sys.modules[SANDBOX].__dict__["InitVar"] = dataclasses.InitVar
