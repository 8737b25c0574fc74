"""Decimal numbers: with many digits some of their functions take hours, and they count no steps."""

from __future__ import annotations

import decimal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

from effectful_agents.handlers.execution import methods, sizes
from effectful_agents.handlers.execution.exact import exact
from effectful_agents.handlers.execution.limits import TooLarge, current
from effectful_agents.handlers.execution.sizes import MAX_EXPONENT, check_bits

__all__ = ["check_decimal", "check_made_number", "clamp", "context"]

_PRECISION = 1_000
"""Digits of logarithms and the like: with 1,000 they take some hundredths of a second, and with 10,000 some ten."""


@contextmanager
def context() -> Generator[None]:
    """Compute as the program does, to within what takes no long time, and change nothing of the program's."""
    with decimal.localcontext() as own:
        clamp(own)
        yield


def clamp(own: Context) -> None:
    """Have a context give no number with a larger exponent than is allowed."""
    own.Emax = min(own.Emax, MAX_EXPONENT)
    own.Emin = max(own.Emin, -MAX_EXPONENT)


def check_made_number(made: Any) -> None:
    """Raise if a number that was made is too large, and have a context make none."""
    if isinstance(made, Decimal):
        sizes.check_exponent(made)
    elif isinstance(made, Context):
        clamp(made)


def check_decimal(*values: Any) -> None:
    """Raise if a logarithm or a power of these would take too long."""
    most = decimal.getcontext().prec
    for value in map(exact, values):
        if isinstance(value, Context):
            most = max(most, value.prec)
        elif isinstance(value, Decimal) and value.is_finite():
            most = max(most, len(value.as_tuple().digits))
    if most > _PRECISION:
        limit = current().size
        raise TooLarge("size", limit, f"Logarithms and powers are computed with up to {_PRECISION:,} digits here.")


def check_power(a: Any, b: Any, modulo: Any = None) -> None:
    """Raise if a power of decimal numbers would take too long."""
    a, b, modulo = map(exact, (a, b, modulo))
    if isinstance(a, Decimal) or isinstance(b, Decimal) or isinstance(modulo, Decimal):
        is_whole = isinstance(b, int) or (isinstance(b, Decimal) and b.is_finite() and b == b.to_integral_value())
        if modulo is not None or not is_whole:
            check_decimal(a, b, modulo)


sizes.OTHER_POWERS.append(check_power)


def check_fraction(text: Any) -> None:
    """Raise if a fraction that is written with an exponent would be too large."""
    text = exact(text)
    if isinstance(text, str) and "e" in text.lower():
        exponent = text.lower().rpartition("e")[2].strip().lstrip("+-").replace("_", "")
        if exponent.isdecimal():
            check_bits(4 * int(exponent[:20]))


# They call the method of the class itself: `super().exp()` in a class of the code must not come back to that class.


def _checked(cls: type, name: str) -> Callable[..., Any]:
    method = getattr(cls, name)

    def checked(target: Any, /, *args: Any, **kwargs: Any) -> Any:
        check_decimal(target, *args, *kwargs.values())
        return method(target, *args, **kwargs)

    return checked


def _checked_power(cls: type, name: str) -> Callable[..., Any]:
    method = getattr(cls, name)

    def checked(target: Any, /, *args: Any) -> Any:
        if isinstance(target, Fraction):
            sizes.check_power(*((*args[:1], target) if name == "__rpow__" else (target, *args)))
        else:
            check_decimal(target, *args)
        return method(target, *args)

    return checked


for _name in ("exp", "ln", "log10"):
    for _class in (Decimal, Context):
        methods.INSTEAD[_class, _name] = _checked(_class, _name)
methods.INSTEAD[Context, "power"] = _checked(Context, "power")
for _name in ("__pow__", "__rpow__"):
    for _class in (Decimal, Fraction):
        methods.INSTEAD[_class, _name] = _checked_power(_class, _name)
