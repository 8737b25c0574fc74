"""Operations that build values, held to the size that a value may have.

What is estimated is estimated before anything is built: a value that is too large never exists.
"""

from __future__ import annotations

import re
from array import array
from collections import UserList, deque
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from effectful_agents.handlers.execution.exact import exact, exact_count
from effectful_agents.handlers.execution.kinds import PLAIN, SANDBOX, is_own
from effectful_agents.handlers.execution.limits import TooLarge, check, current

__all__ = [
    "FORMATS",
    "WORTH_COUNTING",
    "add",
    "check_added",
    "check_bits",
    "check_count",
    "check_field",
    "check_number",
    "check_power",
    "check_product",
    "check_rounded",
    "check_shift",
    "check_size",
    "check_spec",
    "check_sum",
    "check_template",
    "check_work",
    "data_of",
    "floordiv",
    "format_value",
    "length",
    "lshift",
    "mod",
    "mul",
    "power",
    "reject_reaching",
    "repeated",
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


MAX_BITS = 1_000_000
"""Binary digits of an integer: to compare one of more with a decimal number takes a second, or a minute."""


def check_bits(bits: float) -> None:
    """Raise if an integer of so many binary digits may not be built."""
    check_size(bits, "The number")
    if bits > MAX_BITS:
        raise TooLarge("size", MAX_BITS, "An integer cannot have more binary digits here.")


def check_count(count: Any) -> None:
    """Raise if a number that says how much is to be built is too large."""
    number = _number(count)
    if number is not None:
        check_size(abs(number))


def check_number(value: Any) -> None:
    """Raise if a decimal number has so many digits before or after its point that writing it out would be too large."""
    if isinstance(value, Decimal):
        check_exponent(value)


def check_exponent(value: Decimal) -> None:
    """Raise if a decimal number is so large or so small that to make an integer of it takes long."""
    if Decimal.is_finite(value) and abs(Decimal.adjusted(value)) > MAX_EXPONENT:
        raise TooLarge("size", current().size, f"A decimal number can have {MAX_EXPONENT:,} digits here.")


MAX_EXPONENT = 99_999


def length(value: Any) -> int:
    """The length of a value of a built-in class, or of one derived from it, which may say anything; 0 of others."""
    for cls in (str, list, tuple, bytes, bytearray, deque, array):
        if isinstance(value, cls):
            return cls.__len__(value)
    if isinstance(value, UserList):
        return length(data_of(value))
    cls = type(value)
    known = cls.__module__ in ("collections", "array") and hasattr(cls, "__len__")
    return len(value) if known else 0


def data_of(value: UserList[Any]) -> Any:
    """The list in a `UserList`, which is the same one the next time that somebody asks for it."""
    if hasattr(type(value), "data"):
        raise TypeError(f"the `data` of a `{type(value).__name__}` is kept in its objects here, and not in the class.")
    return value.data


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
        if type(a).__module__ == SANDBOX or type(b).__module__ == SANDBOX:
            a, b = repeated(a, b), repeated(b, a)
        check_product(a, b)
    return a * b


def repeated(value: Any, other: Any) -> Any:
    """One side of `*`; where the other is a sequence, and C would ask this one how often, that is asked for before.

    Raises:
        TypeError: It may answer otherwise.
    """
    kind = type(value)
    if kind in PLAIN or isinstance(value, int) or not hasattr(kind, "__index__") or not isinstance(other, _REPEATED):
        return value
    if is_own(kind) and (hasattr(kind, "__rmul__") or hasattr(kind, "__mul__")):
        raise TypeError(f"a sequence cannot be multiplied by a `{kind.__name__}` here; make an `int` of it.")
    return exact_count(value) if is_own(kind) else value


_REPEATED = (str, list, tuple, bytes, bytearray, deque, array, UserList)


def check_product(a: Any, b: Any) -> None:
    """Raise if `a * b` would be too large."""
    if type(a) is float or type(b) is float:
        return
    one, other = _number(a), _number(b)
    if one is not None and other is not None:
        check_bits(one.bit_length() + other.bit_length())
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
            check_bits(base.bit_length() * abs(exponent))
    elif isinstance(a, Fraction):
        number = exact(a)
        check_bits(max(number.numerator.bit_length(), number.denominator.bit_length()) * abs(exponent))


SHOWN: list[Callable[[Any, Any], None]] = []
"""What looks at a value that is about to be made into text; set by a module that this one cannot import."""


def _check_shown(values: Iterable[Any], conversion: str | None = None) -> None:
    for value in values:
        if type(value) not in (str, int, float) or (conversion is not None and isinstance(value, str)):
            for check_one in SHOWN:
                check_one(value, _CONVERSIONS[conversion])


_CONVERSIONS: Mapping[Any, Any] = {None: str, "r": repr, "a": ascii}


OTHER_POWERS: list[Callable[[Any, Any, Any], None]] = []
"""What looks at powers of other numbers; set by modules that this one cannot import."""


def check_rounded(number: Any, digits: Any) -> None:
    """Raise if the power of ten is too large to which an integer is rounded."""
    places = _number(digits)
    if isinstance(number, int) and places is not None and places < 0:
        check_power(10, -places)


def lshift(a: Any, b: Any) -> Any:
    """`a << b`."""
    check_shift(a, b)
    return a << b


def check_shift(a: Any, b: Any) -> None:
    """Raise if `a << b` would be too large."""
    number, places = _number(a), _number(b)
    if number and places is not None:
        check_bits(number.bit_length() + places)


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
        text = (
            a
            if type(a) is str
            else str.__str__(a)
            if isinstance(a, str)
            else bytes(bytearray(memoryview(a))).decode("latin-1")
        )
        values = b if type(b) is tuple else tuple(tuple.__iter__(b)) if isinstance(b, tuple) else (b,)
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
        for letter in ("r", "a"):
            if f"%{letter}" in text:
                _check_shown(values, letter)


# --- formats ------------------------------------------------------------------------------------------------------


def format_value(value: Any, spec: Any = "") -> str:
    """`format(value, spec)`; also what stands between braces in an f-string."""
    if spec:
        if type(spec) is not str:
            spec = exact(spec)
        check_spec(value, spec)
    else:
        _check_shown((value,))
    return format(value, spec)


def check_spec(value: Any, spec: Any) -> tuple[Any, ...]:
    """Raise if a value in such a format would be too large; what is the format, whatever its methods say."""
    if type(spec) is not str:
        spec = exact(spec)
    if not isinstance(spec, str):
        raise TypeError(f"the format of a value is a `str`, not `{type(spec).__name__}`.")
    check_size(sum([int(number[:20]) for number in _NUMBER.findall(spec)]))
    if "%" in spec and not isinstance(value, int | float | Decimal):
        check_size(256 * len(spec))  # of a date: the system's function is given that much room
    if isinstance(value, Decimal):
        check_number(value)
    return (spec,)


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
                    if is_own(type(value)):
                        raise TypeError("the width of a format is a number or a text here, not one of your own kind.")
                    check_count(value)
                    if not isinstance(value, int | float):
                        check_spec(None, format(value))
    check_size(total)
    _check_shown(values)
    for letter in ("r", "a"):
        if f"!{letter}" in template:
            _check_shown(values, letter)


def _format(template: str, *args: Any, **kwargs: Any) -> str:
    text = str.__str__(template)
    _check_template(text, [*args, *kwargs.values()])
    return str.format(text, *args, **kwargs)


def _format_map(template: str, mapping: Any) -> str:
    text = str.__str__(template)
    reject_reaching(text)
    if type(mapping) is not dict:
        mapping = {name: mapping[name] for name in _fields(text)}
    _check_template(text, list(mapping.values()))
    return str.format_map(text, mapping)


def _fields(template: str) -> list[str]:
    found: list[str] = []
    for _, field, spec, _ in _parsed(template):
        if field is not None:
            found += [field, *_fields(spec or "")]
    return found


FORMATS: Mapping[str, Callable[..., str]] = {"format": _format, "format_map": _format_map}
