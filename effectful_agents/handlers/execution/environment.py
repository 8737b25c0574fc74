"""What restricted code finds: its builtins, and the guards that the policy writes into it."""

from __future__ import annotations

import builtins
import dataclasses
import sys
import types
import typing
from collections.abc import Callable
from typing import Any

from RestrictedPython.Guards import guarded_iter_unpack_sequence, guarded_unpack_sequence

from effectful_agents.handlers.execution import (
    calls,
    limits,
    matching,
    numeric,
    reading,
    showing,
    sizes,
    spreading,
    streams,
)
from effectful_agents.handlers.execution.attributes import (
    delete_attribute,
    get_attribute,
    get_item,
    has_attribute,
    set_attribute,
    writable,
)
from effectful_agents.handlers.execution.callables import check_fields, returned
from effectful_agents.handlers.execution.classes import build_class
from effectful_agents.handlers.execution.contexts import within
from effectful_agents.handlers.execution.hints import annotated
from effectful_agents.handlers.execution.kinds import (
    REPLACED,
    RESTRICTED,
    SANDBOX,
    VETTED,
    check_value,
    opened,
    replace,
)
from effectful_agents.handlers.execution.metaclasses import type_
from effectful_agents.handlers.execution.modules import guarded_import
from effectful_agents.handlers.execution.printing import PrintCollector, print_
from effectful_agents.handlers.execution.specials import listed, operand
from effectful_agents.handlers.execution.standard import hints_of
from effectful_agents.handlers.execution.waiting import awaited
from effectful_agents.types.local_types import TYPE_HINTS

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


# --- all of it ----------------------------------------------------------------------------------------------------


def format_field(value: Any, spec: Any = "") -> str:
    """What stands between braces in an f-string."""
    return sizes.format_value(value, spec)


@replace(iter)
def iter_(*args: Any) -> Any:
    """`iter`."""
    if len(args) == 2:
        return streams.guarded_iter(calls.callee(args[0]), args[1])
    return streams.guarded_iter(*map(opened, args))


@replace(next)
def next_(iterator: Any, *default: Any) -> Any:
    """`next`."""
    limits.tick()
    return check_value(next(opened(iterator), *default))


def delegated(values: Any) -> Any:
    """What `yield from` goes through: the interpreter calls what that has as `send`, `throw` and `close`."""
    kind = type(values)
    if kind is not types.GeneratorType:
        values = iter(values if kind.__module__ == SANDBOX else streams.taken(values, kept=False))
    check_fields(values)
    return opened(values)


def _builtins() -> dict[str, Any]:
    found: dict[str, Any] = {name: getattr(builtins, name) for name in (*_DIRECT, *_OTHERS)}
    for name in _DIRECT:
        calls.DIRECT.add(id(found[name]))
    for name, value in vars(builtins).items():
        if isinstance(value, type) and issubclass(value, Exception):
            found[name] = value
            if not issubclass(value, ImportError):  # what it is told is looked at
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
        "iter": iter_,
        "next": next_,
        "divmod": numeric.divide,
        "reversed": streams.guarded_reversed,
        "repr": showing.repr_,
        "ascii": showing.ascii_,
    }
    for name, value in own.items():
        if isinstance(value, types.FunctionType):
            value.__name__ = value.__qualname__ = name  # as it is called in what the code prints
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
    TYPE_HINTS: hints_of,
    "_add_": sizes.add,
    "_and_": spreading.both,
    "_annotated_": annotated,
    "_apply_": calls.apply,
    "_awaited_": awaited,
    "_callee_": calls.callee,
    "_catchable_": catchable,
    "_contained_": spreading.contained,
    "_delegated_": delegated,
    "_each_": spreading.each,
    "_floordiv_": sizes.floordiv,
    "_flying_": sys.exception,
    "_format_": format_field,
    "_getattr_": get_attribute,
    "_getitem_": get_item,
    "_getiter_": streams.iterate,
    "_inplacevar_": spreading.inplace,
    "_instance_": matching.instance_parts,
    "_iter_unpack_sequence_": guarded_iter_unpack_sequence,
    "_joined_": showing.joined,
    "_kept_": limits.kept_flying,
    "_listed_": listed,
    "_looped_": streams.looped,
    "_lshift_": sizes.lshift,
    "_mapping_": matching.mapping_parts,
    "_mod_": sizes.mod,
    "_mul_": sizes.mul,
    "_named_": reading.named,
    "_names_": spreading.spread_names,
    "_opened_": opened,
    "_operand_": operand,
    "_or_": spreading.either_of,
    "_pairs_": spreading.spread_pairs,
    "_pow_": sizes.power,
    "_print_": PrintCollector,
    "_raisable_": raisable,
    "_returned_": returned,
    "_sequence_": matching.sequence_parts,
    "_shown_": showing.shown,
    "_shown_ascii_": showing.shown_as_ascii,
    "_shown_repr_": showing.shown_as_repr,
    "_slices_": spreading.slices,
    "_special_": reading.special,
    "_spread_": spreading.spread,
    "_sub_": spreading.sub,
    "_tick_": limits.tick,
    "_told_": limits.told,
    "_unpack_sequence_": guarded_unpack_sequence,
    "_unpacked_": spreading.unpacked,
    "_with_": within,
    "_write_": writable,
    "_xor_": spreading.exclusive,
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
