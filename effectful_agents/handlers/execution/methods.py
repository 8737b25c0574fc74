"""Methods of the built-in classes and of streams that build values, held to the size that a value may have."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from effectful_agents.handlers.execution.exact import exact, exact_count
from effectful_agents.handlers.execution.growing import CASES, check_cased, check_coded
from effectful_agents.handlers.execution.limits import TooLarge, current
from effectful_agents.handlers.execution.showing import check_shown
from effectful_agents.handlers.execution.sizes import (
    WORTH_COUNTING,
    check_added,
    check_count,
    check_power,
    check_product,
    check_rounded,
    check_shift,
    check_size,
    check_spec,
    check_sum,
    check_template,
    check_work,
    data_of,
    length,
    repeated,
)
from effectful_agents.handlers.execution.streams import in_pieces, mapped, taken

__all__ = [
    "CHECKS",
    "INSTEAD",
    "KEYED_METHODS",
    "check_precision",
    "checked_call",
    "checked_descriptor",
    "checked_wrapped",
    "instead_of",
]

# Each raises if what a method is about to build would be too large, and may give other arguments to call it with. The
# method itself is called by who asks: `super().__add__(1)` in a class must not come back to that class.


def _check_padded(value: Any, width: Any, *fill: Any) -> tuple[Any, ...]:
    width = exact_count(width)
    check_count(width)
    return (width, *fill)


def _count(value: Any, part: Any) -> int:
    """How often a part is in a text or in bytes, whatever these say."""
    cls = next(cls for cls in (str, bytes, bytearray) if isinstance(value, cls))
    return cls.count(value, part)


def _check_tabs(value: Any, *sizes: Any, tabsize: Any = 8) -> tuple[Any, ...]:
    sizes = tuple(map(exact_count, sizes))
    (size,) = sizes or (tabsize,)
    check_size(length(value) + _count(value, "\t" if isinstance(value, str) else b"\t") * abs(operator.index(size)))
    return sizes


def _check_replaced(value: Any, *args: Any, **kwargs: Any) -> None:
    if len(args) >= 2 and isinstance(args[1], str | bytes | bytearray):
        more = max(0, length(args[1]) - length(args[0]))
        if more * (length(value) + 1) > WORTH_COUNTING:
            check_size(length(value) + more * _count(value, args[0]))


def _check_joined(value: Any, parts: Any) -> tuple[Any, ...]:
    many = parts if type(parts) in (list, tuple) else list(taken(parts, kept=True))
    check_size(length(value) * len(many) + sum(map(length, many)))
    return (many,)


def _check_translated(value: Any, table: Any, *more: Any) -> tuple[Any, ...] | None:
    if isinstance(value, str) and type(table) is not dict:
        table = {ord(one): _looked_up(table, ord(one)) for one in set(str.__str__(value))}
        return _check_translated(value, table) or (table,)
    if isinstance(table, dict):
        check_size(length(value) * max([1, *(length(one) for one in table.values())]))
    return None


def _looked_up(table: Any, key: int) -> Any:
    try:
        return table[key]
    except LookupError:
        return key


def _check_bytes(value: int, *args: Any, length: Any = 1, **kwargs: Any) -> tuple[Any, ...]:
    args = tuple(map(exact_count, args))
    check_count(args[0] if args else length)
    return args


def _check_extended(value: Any, more: Any) -> tuple[Any, ...]:
    more = taken(more, kept=True)
    check_sum(value, more)
    return (more,)


def _check_filled(value: Any, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
    if isinstance(value, dict):
        args = tuple(map(mapped, args))
    return tuple([in_pieces(taken(one, kept=True)) for one in args])


def _check_combined(value: Any, other: Any) -> tuple[Any, ...]:
    return (taken(other, kept=True),)


def _check_set_item(value: Any, key: Any, more: Any) -> tuple[Any, ...]:
    return (key, *_check_extended(value, more)) if isinstance(key, slice) else (key, more)


def _check_shown(value: Any) -> None:
    check_shown(value, repr)


def _check_remainder(value: Any, other: Any) -> None:
    check_work(value, other)
    check_template(value, other)


def _check_found(value: Any, wanted: Any, *ends: Any) -> None:
    if type(value) is range and not isinstance(wanted, int):
        raise ValueError(f"a `{type(wanted).__name__}` is not looked for in a range here.")


def _reflected(check: Callable[[Any, Any], None]) -> Callable[..., None]:
    def reflected(value: Any, other: Any, *rest: Any) -> None:
        check(other, value)

    return reflected


def _check_sought(value: Any, position: Any, *whence: Any) -> tuple[Any, ...]:
    position = exact_count(position)
    check_count(position)  # what is written there comes after as many zeros
    return (position, *whence)


def _check_repeated(value: Any, other: Any) -> tuple[Any, ...]:
    other = repeated(other, value)
    check_product(value, other)
    return (other,)


def _check_backwards(value: Any, sought: Any = None, *args: Any, **kwargs: Any) -> None:
    """From its end a text is gone through for another one in the simplest way: that takes the one times the other."""
    few = length(sought)
    if few * (length(value) - few) > _COMPARED:
        raise TooLarge("size", current().size, "To look for it from the end would take too long.")


def _check_coded(value: Any, encoding: Any = "utf-8", errors: Any = "strict") -> None:
    """The names of hosts are put into a normal form, which may take the square of their length."""
    if isinstance(encoding, str) and str.lower(encoding).startswith("idna") and length(value) > WORTH_COUNTING // 8:
        raise TooLarge("size", current().size, "To encode it would take too long.")
    if length(value) > WORTH_COUNTING // 8:
        check_coded(value, encoding, errors)


def _check_cased(name: str) -> Callable[..., None]:
    def check(value: Any, *args: Any) -> None:
        check_cased(name, value)

    return check


def _check_hex(value: Any, *args: Any, **kwargs: Any) -> None:
    size = value.nbytes if isinstance(value, memoryview) else length(value)
    check_size(3 * size)  # with something between the digits


KEYED_METHODS = frozenset(
    [
        *("update", "union", "intersection", "difference", "symmetric_difference", "isdisjoint", "fromkeys"),
        *("difference_update", "intersection_update", "symmetric_difference_update", "subtract"),
    ]
)
"""Methods of sets and dictionaries that look up, or put in, whatever is in what they get."""

_COMPARED = 10**10
"""Letters that may have to be compared: some seconds."""


def _check_round(value: Any, *digits: Any) -> tuple[Any, ...]:
    digits = tuple(map(exact_count, digits))
    for number in digits:
        check_count(number)
        check_rounded(value, number)
    return digits


CHECKS: Mapping[str, Callable[..., tuple[Any, ...] | None]] = {
    **dict.fromkeys(("center", "ljust", "rjust", "zfill"), _check_padded),
    "expandtabs": _check_tabs,
    "replace": _check_replaced,
    "join": _check_joined,
    "translate": _check_translated,
    "to_bytes": _check_bytes,
    "extend": _check_extended,
    "__add__": check_added,
    "__radd__": _reflected(check_added),
    "__iadd__": _check_extended,
    "__init__": _check_filled,
    "__setitem__": _check_set_item,
    "__repr__": _check_shown,
    "__str__": _check_shown,
    "__contains__": _check_found,
    "index": _check_found,
    "count": _check_found,
    "__floordiv__": check_work,
    "__rfloordiv__": check_work,
    "__divmod__": check_work,
    "__rdivmod__": check_work,
    "__mul__": _check_repeated,
    "__rmul__": _check_repeated,
    "__imul__": _check_repeated,
    "__pow__": check_power,
    "__rpow__": _reflected(check_power),
    "__lshift__": check_shift,
    "__rlshift__": _reflected(check_shift),
    "__mod__": _check_remainder,
    "__rmod__": _reflected(_check_remainder),
    "__format__": check_spec,
    "__round__": _check_round,
    **dict.fromkeys(KEYED_METHODS, _check_filled),
    # Of the keys of a dictionary: they take what can be gone through.
    **dict.fromkeys(
        (f"__{side}{name}__" for side in ("", "r") for name in ("and", "or", "xor", "sub")), _check_combined
    ),
    **dict.fromkeys(("encode", "decode"), _check_coded),
    **{name: _check_cased(name) for name in CASES},
    "hex": _check_hex,
    "seek": _check_sought,
    **dict.fromkeys(("rfind", "rindex", "rsplit", "rpartition"), _check_backwards),
}
"""What is checked before a method of this name of a built-in class is called."""


INSTEAD: dict[tuple[type, str], Callable[..., Any]] = {}
"""Methods of classes of the library: what is called in their place, with the object first."""


def instead_of(cls: type, name: str) -> Callable[..., Any] | None:
    """What is called in the place of a method of a class, if something is."""
    for base in cls.__mro__:
        if (base, name) in INSTEAD:
            return INSTEAD[base, name]
    return None


def checked_call(method: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Call a method that is bound to a value of a built-in class."""
    kwargs = {name: exact_count(value) for name, value in kwargs.items()} if kwargs else kwargs
    changed = CHECKS[method.__name__](method.__self__, *args, **kwargs)
    return method(*(args if changed is None else changed), **kwargs)


def checked_wrapped(method: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Call a method of a class of the library that does with its `data` what the method of this name does there."""
    data = data_of(method.__self__)
    target = method.__self__ if method.__name__ in ("__add__", "__radd__") else data
    changed = CHECKS[method.__name__](target, *args, **kwargs)
    return method(*(args if changed is None else changed), **kwargs)


def checked_descriptor(descriptor: Any, /, target: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a method of a built-in class that is bound to nothing."""
    kwargs = {name: exact_count(value) for name, value in kwargs.items()} if kwargs else kwargs
    changed = CHECKS[descriptor.__name__](target, *args, **kwargs)
    return descriptor(target, *(args if changed is None else changed), **kwargs)


def check_precision(value: Any) -> None:
    """Raise if a precision is too large."""
    value = exact(value)
    if isinstance(value, int) and value > 100_000:
        raise ValueError(f"a precision of {value} digits is too large here; 100,000 are allowed.")
