"""Operations that build values, held to the size that a value may have.

What is estimated is estimated before anything is built: a value that is too large never exists.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from effectful_agents.handlers.execution.limits import TooLarge, check, current
from effectful_agents.handlers.execution.names import is_attribute

__all__ = [
    "FORMATS",
    "INPLACE",
    "SIZED_METHODS",
    "add",
    "check_count",
    "check_number",
    "check_size",
    "format_value",
    "inplace",
    "lshift",
    "mod",
    "mul",
    "power",
    "reject_reaching",
]

_WORTH_COUNTING = 65_536
_SMALL = 1 << 2048


def check_size(size: float, what: str = "A value") -> None:
    """Raise if something of this size may not be built."""
    if size > _WORTH_COUNTING:
        check()
        limit = current().size
        if size > limit:
            raise TooLarge("size", limit, f"{what} would be larger.")


def check_count(count: Any) -> None:
    """Raise if a number that says how much is to be built is too large."""
    if isinstance(count, int):
        check_size(abs(count))


def check_number(value: Any) -> None:
    """Raise if a decimal number has so many digits before or after its point that writing it out would be too large."""
    if isinstance(value, Decimal) and value.is_finite():
        check_size(abs(value.adjusted()), "Its digits")


def _length(value: Any) -> int:
    # Only of what is known: a class of the code may say anything, and its `__len__` would run twice.
    return len(value) if isinstance(value, str | bytes | bytearray | list | tuple) else _other_length(value)


def _other_length(value: Any) -> int:
    cls = type(value)
    known = cls.__module__ in ("collections", "array") and hasattr(cls, "__len__")
    return len(value) if known else 0


def add(a: Any, b: Any) -> Any:
    """`a + b`."""
    kind = type(a)
    if kind is not int and kind is not float and kind is not bool:
        size = _length(a)
        if size:
            check_size(size + _length(b))
    return a + b


def mul(a: Any, b: Any) -> Any:
    """`a * b`."""
    if not (type(a) is int and type(b) is int and -_SMALL < a < _SMALL and -_SMALL < b < _SMALL):
        check_product(a, b)
    return a * b


def check_product(a: Any, b: Any) -> None:
    """Raise if `a * b` would be too large."""
    if type(a) is float or type(b) is float:
        return
    if isinstance(a, int) and isinstance(b, int):
        if not (-_SMALL < a < _SMALL and -_SMALL < b < _SMALL):
            check_size(a.bit_length() + b.bit_length(), "The number")
    elif isinstance(b, int):
        check_size(_length(a) * max(b, 0))
    elif isinstance(a, int):
        check_size(_length(b) * max(a, 0))


def power(a: Any, b: Any, modulo: Any = None) -> Any:
    """`a ** b`."""
    if modulo is None and isinstance(b, int):
        if isinstance(a, int):
            if abs(a) > 1:
                check_size(a.bit_length() * abs(b), "The number")
        elif isinstance(a, Fraction):
            check_size(max(a.numerator.bit_length(), a.denominator.bit_length()) * abs(b), "The number")
    return a**b if modulo is None else pow(a, b, modulo)


def lshift(a: Any, b: Any) -> Any:
    """`a << b`."""
    if isinstance(a, int) and isinstance(b, int) and a:
        check_size(a.bit_length() + b, "The number")
    return a << b


_NUMBER = re.compile(r"\d+")
_PERCENT = re.compile(r"%(?:\([^)]*\))?[-#0 +]*(\*|\d+)?(?:\.(\*|\d+))?")


def mod(a: Any, b: Any) -> Any:
    """`a % b`: a remainder, or a text with values put in."""
    kind = type(a)
    if kind is int or kind is float:
        return a % b
    if isinstance(a, str | bytes | bytearray):
        text = a if isinstance(a, str) else bytes(a).decode("latin-1")
        values = b if isinstance(b, tuple) else (b,)
        if "%" in text:
            for match in _PERCENT.finditer(text):
                for number in match.groups():
                    if number == "*":
                        for value in values:
                            check_count(value)
                    elif number:
                        check_size(int(number[:20]))
        check_size(
            len(text) + sum(_length(value) for value in values) if len(values) < _WORTH_COUNTING else len(values)
        )
        for value in values:
            check_number(value)
    return a % b


INPLACE: Mapping[str, Callable[[Any, Any], Any]] = {
    "+=": operator.iadd,
    "-=": operator.isub,
    "*=": operator.imul,
    "/=": operator.itruediv,
    "//=": operator.ifloordiv,
    "%=": operator.imod,
    "**=": operator.ipow,
    "<<=": operator.ilshift,
    ">>=": operator.irshift,
    "&=": operator.iand,
    "^=": operator.ixor,
    "|=": operator.ior,
    "@=": operator.imatmul,
}


_SHRINKING = frozenset({"+=", "-=", "//=", "/=", "%=", ">>=", "&="})
"""What makes an integer no larger than its operands, but for a digit."""


def inplace(symbol: str, a: Any, b: Any) -> Any:
    """`a += b`, or with another symbol."""
    kind = type(a)
    if kind is float or (kind is int and symbol in _SHRINKING):
        pass
    elif symbol == "+=":
        if kind is not int:
            size = _length(a)
            if size:
                check_size(size + _length(b))
    elif symbol == "*=":
        check_product(a, b)
    elif symbol == "**=":
        return power(a, b)
    elif symbol == "<<=":
        return lshift(a, b)
    elif symbol == "%=" and isinstance(a, str | bytes):
        return mod(a, b)
    return INPLACE[symbol](a, b)


# --- formats ------------------------------------------------------------------------------------------------------


def format_value(value: Any, spec: Any = "") -> str:
    """`format(value, spec)`; also what stands between braces in an f-string."""
    if spec:
        check_spec(value, str(spec))
    elif isinstance(value, Decimal):
        check_number(value)
    return format(value, spec)


def check_spec(value: Any, spec: str) -> None:
    """Raise if a value in such a format would be too large."""
    for number in _NUMBER.findall(spec):
        check_size(int(number[:20]))
    if isinstance(value, Decimal):
        check_number(value)


def reject_reaching(template: str) -> None:
    """Raise if a field of a template for `str.format` goes on from its argument to an attribute or an item of it.

    The formatter walks there in C, past every guard. What a field does is written in the template, so it is read off
    before anything is formatted.
    """
    for _, field, spec, _ in _parsed(template):
        if field and ("." in field or "[" in field):
            raise AttributeError(
                f"the field {{{field}}} of a format reaches into its argument; give the value, or use an f-string."
            )
        if spec:
            reject_reaching(spec)


def _parsed(template: str) -> Any:
    import string  # noqa: PLC0415 - only code that formats needs it

    return string.Formatter().parse(template)


def _check_template(template: str, values: list[Any]) -> None:
    reject_reaching(template)
    check_size(len(template) + sum(_length(value) for value in values) * max(1, template.count("{")))
    for _, _, spec, _ in _parsed(template):
        if spec:
            for number in _NUMBER.findall(spec):
                check_size(int(number[:20]))
            if "{" in spec:
                for value in values:
                    check_count(value)
                    if isinstance(value, str):
                        check_spec(None, value)
    for value in values:
        check_number(value)


def _format(template: str, *args: Any, **kwargs: Any) -> str:
    text = str.__str__(template)
    _check_template(text, [*args, *kwargs.values()])
    return str.format(text, *args, **kwargs)


def _format_map(template: str, mapping: Any) -> str:
    text = str.__str__(template)
    values = list(mapping.values()) if isinstance(mapping, dict) else []
    _check_template(text, values)
    return str.format_map(text, mapping)


FORMATS: Mapping[str, Callable[..., str]] = {"format": _format, "format_map": _format_map}


# --- methods that build -------------------------------------------------------------------------------------------


def _padded(name: str) -> Callable[..., Any]:
    def padded(value: Any, width: Any, *fill: Any) -> Any:
        check_count(width)
        return getattr(value, name)(width, *fill)

    return padded


def _expandtabs(value: Any, tabsize: Any = 8) -> Any:
    check_size(len(value) + value.count("\t" if isinstance(value, str) else b"\t") * abs(operator.index(tabsize)))
    return value.expandtabs(tabsize)


def _replace(value: Any, *args: Any, **kwargs: Any) -> Any:
    if len(args) >= 2 and isinstance(args[1], str | bytes | bytearray):
        found = max(0, len(args[1]) - len(args[0]))
        if found * (len(value) + 1) > _WORTH_COUNTING:
            check_size(len(value) + found * value.count(args[0]))
    return value.replace(*args, **kwargs)


def _join(value: Any, parts: Any) -> Any:
    many = parts if isinstance(parts, list | tuple) else list(parts)
    if len(many) > 64 or len(value) > 64:
        check_size(len(value) * len(many) + sum(map(_length, many)))
    else:
        check_size(sum(map(_length, many)))
    return value.join(many)


def _translate(value: Any, table: Any, *more: Any) -> Any:
    if isinstance(table, dict):
        check_size(len(value) * max([1, *(len(one) for one in table.values() if isinstance(one, str))]))
    return value.translate(table, *more)


def _to_bytes(value: int, length: Any = 1, *args: Any, **kwargs: Any) -> bytes:
    check_count(length)
    return int.to_bytes(value, length, *args, **kwargs)


def _extend(value: Any, more: Any) -> None:
    check_size(_length(value) + _length(more) + (len(more) if isinstance(more, range) else 0))
    value.extend(more)


def _special(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def special(value: Any, *args: Any) -> Any:
        return function(value, *args)

    return special


def _reflected(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def reflected(value: Any, other: Any) -> Any:
        return function(other, value)

    return reflected


def _dunder_format(value: Any, spec: str) -> str:
    return format_value(value, spec)


SIZED_METHODS: Mapping[str, Callable[..., Any]] = {
    **FORMATS,
    **{name: _padded(name) for name in ("center", "ljust", "rjust", "zfill")},
    "expandtabs": _expandtabs,
    "replace": _replace,
    "join": _join,
    "translate": _translate,
    "to_bytes": _to_bytes,
    "extend": _extend,
    "__add__": _special(add),
    "__iadd__": _special(lambda a, b: inplace("+=", a, b)),
    "__mul__": _special(mul),
    "__rmul__": _reflected(mul),
    "__imul__": _special(lambda a, b: inplace("*=", a, b)),
    "__pow__": _special(power),
    "__rpow__": _reflected(power),
    "__lshift__": _special(lshift),
    "__rlshift__": _reflected(lshift),
    "__mod__": _special(mod),
    "__rmod__": _reflected(mod),
    "__format__": _dunder_format,
}
"""Methods of the built-in types in whose place these are called, by name."""


assert all(is_attribute(name) for name in SIZED_METHODS)
