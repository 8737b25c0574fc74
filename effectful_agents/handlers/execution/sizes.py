"""Operations that build values, held to the size that a value may have.

What is estimated is estimated before anything is built: a value that is too large never exists.
"""

from __future__ import annotations

import operator
import re
from collections import UserList
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from effectful_agents.handlers.execution.limits import TooLarge, check, current

__all__ = [
    "FORMATS",
    "INPLACE",
    "WORTH_COUNTING",
    "add",
    "check_added",
    "check_count",
    "check_field",
    "check_number",
    "check_power",
    "check_product",
    "check_shift",
    "check_size",
    "check_spec",
    "check_sum",
    "check_template",
    "check_work",
    "floordiv",
    "format_value",
    "length",
    "lshift",
    "mod",
    "mul",
    "power",
    "reject_reaching",
]

WORTH_COUNTING = 65_536
_SMALL = 1 << 2048


def check_size(size: float, what: str = "A value") -> None:
    """Raise if something of this size may not be built."""
    if size > WORTH_COUNTING:
        check()
        limit = current().size
        if size > limit:
            raise TooLarge("size", limit, f"{what} would be larger.")


def check_count(count: Any) -> None:
    """Raise if a number that says how much is to be built is too large."""
    number = _number(count)
    if number is not None:
        check_size(abs(number))


def check_number(value: Any) -> None:
    """Raise if a decimal number has so many digits before or after its point that writing it out would be too large."""
    if isinstance(value, Decimal) and value.is_finite():
        check_exponent(value)
        check_size(abs(value.adjusted()), "Its digits")


def check_exponent(value: Decimal) -> None:
    """Raise if a decimal number is so large or so small that to make an integer of it takes long."""
    if value.is_finite() and abs(value.adjusted()) > MAX_EXPONENT:
        raise TooLarge("size", current().size, f"A decimal number can have {MAX_EXPONENT:,} digits here.")


MAX_EXPONENT = 99_999


def length(value: Any) -> int:
    """The length of a value of a built-in class, or of one derived from it, which may say anything; 0 of others."""
    for cls in (str, list, tuple, bytes, bytearray):
        if isinstance(value, cls):
            return cls.__len__(value)
    cls = type(value)
    known = cls.__module__ in ("collections", "array") and hasattr(cls, "__len__")
    return len(value) if known else 0


def _number(value: Any) -> int | None:
    """An integer as the interpreter takes it, whatever a class of the code makes of its methods."""
    return int.__add__(value, 0) if isinstance(value, int) else None


def add(a: Any, b: Any) -> Any:
    """`a + b`."""
    kind = type(a)
    if kind is not int and kind is not float:
        check_added(a, b)
    return a + b


def check_sum(a: Any, b: Any) -> None:
    """Raise if two sequences would be too large together."""
    size = length(a)
    if size:
        check_size(size + length(b))


_SEQUENCES = frozenset({str, list, tuple, bytes})


def check_added(a: Any, b: Any) -> None:
    """Raise if `a + b` would be too large, or may be: a `UserList` makes a list of what it is added to."""
    check_sum(a, b)
    if type(a) in _SEQUENCES and type(b) in _SEQUENCES:
        return
    for one, other in ((a, b), (b, a)):
        if isinstance(one, UserList) and not isinstance(other, list | tuple | str | UserList):
            raise TypeError(f"a `UserList` and a `{type(other).__name__}` cannot be added here; make a list of it.")


def mul(a: Any, b: Any) -> Any:
    """`a * b`."""
    if not (type(a) is int and type(b) is int and -_SMALL < a < _SMALL and -_SMALL < b < _SMALL):
        check_product(a, b)
    return a * b


def check_product(a: Any, b: Any) -> None:
    """Raise if `a * b` would be too large."""
    if type(a) is float or type(b) is float:
        return
    one, other = _number(a), _number(b)
    if one is not None and other is not None:
        check_size(one.bit_length() + other.bit_length(), "The number")
    elif other is not None:
        check_size(length(a) * max(other, 0))
    elif one is not None:
        check_size(length(b) * max(one, 0))


_WORK = 4e11
"""Products of binary digits, as long division and the like need them: about half a second."""


def check_work(a: Any, b: Any) -> None:
    """Raise if an operation on two integers that takes as long as long division would take too long."""
    one, other = _number(a), _number(b)
    if one is not None and other is not None:
        few, many = sorted((one.bit_length(), other.bit_length()))
        if few * (many - few if many > 2 * few else few) > _WORK:
            raise TooLarge("size", current().size, "To divide numbers of so many digits would take too long.")


def floordiv(a: Any, b: Any) -> Any:
    """`a // b`."""
    if not (type(a) is int and -_SMALL < a < _SMALL):
        check_work(a, b)
    return a // b


def power(a: Any, b: Any, modulo: Any = None) -> Any:
    """`a ** b`."""
    check_power(a, b, modulo)
    return a**b if modulo is None else pow(a, b, modulo)


def check_power(a: Any, b: Any, modulo: Any = None) -> None:
    """Raise if `a ** b` would be too large."""
    exponent = _number(b)
    base = _number(a)
    for check_other in OTHER_POWERS:
        check_other(a, b, modulo)
    if modulo is not None:
        divisor = _number(modulo)
        if exponent is not None and divisor is not None and exponent.bit_length() * divisor.bit_length() ** 2 > _WORK:
            raise TooLarge("size", current().size, "To compute a power with so many digits would take too long.")
        return
    if exponent is None:
        return
    if base is not None:
        if abs(base) > 1:
            check_size(base.bit_length() * abs(exponent), "The number")
    elif isinstance(a, Fraction):
        check_size(max(a.numerator.bit_length(), a.denominator.bit_length()) * abs(exponent), "The number")


SHOWN: list[Callable[[Any], None]] = []
"""What looks at a value that is about to be made into text; set by a module that this one cannot import."""


def _check_shown(values: Iterable[Any]) -> None:
    for value in values:
        if type(value) not in (str, int, float):
            for check_one in SHOWN:
                check_one(value)


OTHER_POWERS: list[Callable[[Any, Any, Any], None]] = []
"""What looks at powers of other numbers; set by modules that this one cannot import."""


def lshift(a: Any, b: Any) -> Any:
    """`a << b`."""
    check_shift(a, b)
    return a << b


def check_shift(a: Any, b: Any) -> None:
    """Raise if `a << b` would be too large."""
    number, places = _number(a), _number(b)
    if number and places is not None:
        check_size(number.bit_length() + places, "The number")


_NUMBER = re.compile(r"\d+")
_PERCENT = re.compile(r"%(?:\([^)]*\))?[-#0 +]*(\*|\d+)?(?:\.(\*|\d+))?")


def mod(a: Any, b: Any) -> Any:
    """`a % b`: a remainder, or a text with values put in."""
    kind = type(a)
    if kind is int:
        if not -_SMALL < a < _SMALL:
            check_work(a, b)
    elif kind is not float:
        check_template(a, b)
    return a % b


def check_template(a: Any, b: Any) -> None:
    """Raise if `a % b` would be too large."""
    if isinstance(a, str | bytes | bytearray):
        text = a if isinstance(a, str) else bytes(a).decode("latin-1")
        values = b if isinstance(b, tuple) else (b,)
        if "%" in text:
            total = 0
            for match in _PERCENT.finditer(text):
                for number in match.groups():
                    if number == "*":
                        total += max(
                            [abs(known) for value in values if (known := _number(value)) is not None], default=0
                        )
                    elif number:
                        total += int(number[:20])
            check_size(total)
        check_size(len(text) + sum(length(value) for value in values) if len(values) < WORTH_COUNTING else len(values))
        _check_shown(values)


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


# --- formats ------------------------------------------------------------------------------------------------------


def format_value(value: Any, spec: Any = "") -> str:
    """`format(value, spec)`; also what stands between braces in an f-string."""
    if spec:
        check_spec(value, str(spec))
    else:
        _check_shown((value,))
    return format(value, spec)


def check_spec(value: Any, spec: str) -> None:
    """Raise if a value in such a format would be too large."""
    check_size(sum([int(number[:20]) for number in _NUMBER.findall(spec)]))
    if "%" in spec and not isinstance(value, int | float | Decimal):
        check_size(256 * len(spec))  # of a date: the system's function is given that much room
    if isinstance(value, Decimal):
        check_number(value)


def reject_reaching(template: str) -> None:
    """Raise if a field of a template for `str.format` goes on from its argument to an attribute or an item of it.

    The formatter walks there in C, past every guard. What a field does is written in the template, so it is read off
    before anything is formatted.
    """
    for _, field, spec, _ in _parsed(template):
        check_field(field)
        if spec:
            reject_reaching(spec)


def check_field(field: str | None) -> None:
    """Raise if such a field reaches further than its argument."""
    if field and ("." in field or "[" in field):
        raise AttributeError(
            f"the field {{{field}}} of a format reaches into its argument; give the value, or use an f-string."
        )


def _parsed(template: str) -> Any:
    import string  # noqa: PLC0415 - only code that formats needs it

    return string.Formatter().parse(template)


def _check_template(template: str, values: list[Any]) -> None:
    reject_reaching(template)
    check_size(len(template) + sum(length(value) for value in values) * max(1, template.count("{")))
    total = 0
    for _, _, spec, _ in _parsed(template):
        if spec:
            total += sum([int(number[:20]) for number in _NUMBER.findall(spec)])
            if "{" in spec:
                for value in values:
                    check_count(value)
                    if not isinstance(value, int | float):
                        check_spec(None, format(value))
    check_size(total)
    _check_shown(values)


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
