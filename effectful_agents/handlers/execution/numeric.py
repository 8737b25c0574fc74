"""Functions of numbers and sequences, in versions that are held to the size that a value may have."""

from __future__ import annotations

import math
import operator
import random
import secrets
from collections.abc import Callable
from typing import Any

from effectful_agents.handlers.execution import sizes, spreading
from effectful_agents.handlers.execution.exact import exact_count
from effectful_agents.handlers.execution.kinds import replace
from effectful_agents.handlers.execution.sizes import (
    check_bits,
    check_count,
    check_number,
    check_product,
    check_rounded,
    check_work,
)
from effectful_agents.handlers.execution.streams import stream, taken

__all__ = ["RANDOM"]


@replace(math.factorial)
def factorial(n: Any) -> int:
    """`math.factorial`."""
    n = exact_count(n)
    if isinstance(n, int) and n > 1000:
        check_bits(n * math.log2(n) * 4)  # to compute it takes longer than other numbers of its size
    return math.factorial(n)


@replace(math.comb)
def comb(n: Any, k: Any) -> int:
    """`math.comb`."""
    n, k = exact_count(n), exact_count(k)
    if isinstance(n, int) and isinstance(k, int) and n > k > 0:
        check_bits(min(k, n - k) * n.bit_length() * 4)
    return math.comb(n, k)


@replace(math.perm)
def perm(n: Any, k: Any = None) -> int:
    """`math.perm`."""
    n, k = exact_count(n), exact_count(k)
    if isinstance(n, int) and n > 1:
        check_bits((n if k is None else min(k, n)) * n.bit_length() * 4)
    return math.perm(n, k)


@replace(math.gcd)
def gcd(*integers: Any) -> int:
    """`math.gcd`."""
    found = 0
    for value in map(exact_count, integers):
        check_work(found, value)
        found = math.gcd(found, value)
    return found


@replace(math.lcm)
def lcm(*integers: Any) -> int:
    """`math.lcm`."""
    found = 1
    for value in map(exact_count, integers):
        check_work(found, value)
        check_product(found, value)
        found = math.lcm(found, value)
    return found


@replace(math.isqrt)
def isqrt(n: Any, /) -> int:
    """`math.isqrt`."""
    n = exact_count(n)
    check_work(n, n)
    return math.isqrt(n)


@replace(divmod)
def divide(a: Any, b: Any, /) -> Any:
    """`divmod`."""
    check_work(a, b)
    return divmod(a, b)


@replace(math.prod)
def prod(values: Any, /, *, start: Any = 1) -> Any:
    """`math.prod`."""
    for value in stream(values):
        start = sizes.mul(start, value)
    return start


@replace(sum)
def total(values: Any, /, start: Any = 0) -> Any:
    """`sum`."""
    if isinstance(start, int | float | complex | str | bytes | bytearray):  # of the last three it says what to do
        return sum(taken(values, kept=False), start)
    for value in stream(values):
        start = sizes.add(start, value)
    return start


@replace(round)
def round_number(number: Any, ndigits: Any = None) -> Any:
    """`round`."""
    check_number(number)
    ndigits = exact_count(ndigits)
    check_count(ndigits)
    check_rounded(number, ndigits)
    return round(number) if ndigits is None else round(number, ndigits)


@replace(pow)
def power(base: Any, exp: Any, mod: Any = None) -> Any:
    """`pow`."""
    return sizes.power(base, exp, mod)


@replace(format)
def format_(value: Any, format_spec: Any = "", /) -> str:
    """`format`."""
    return sizes.format_value(value, format_spec)


_OPERATORS: dict[str, Callable[..., Any]] = {
    "add": sizes.add,
    "concat": sizes.add,
    "mul": sizes.mul,
    "pow": sizes.power,
    "lshift": sizes.lshift,
    "mod": sizes.mod,
    "floordiv": sizes.floordiv,
}
for _name, _function in _OPERATORS.items():
    replace(getattr(operator, _name))(_function)


def _inplace(symbol: str) -> Callable[[Any, Any], Any]:
    def operate(a: Any, b: Any, /) -> Any:
        return spreading.inplace(symbol, a, b)

    return operate


for _symbol, _name in (
    ("+=", "iadd"),
    ("*=", "imul"),
    ("**=", "ipow"),
    ("<<=", "ilshift"),
    ("%=", "imod"),
    ("//=", "ifloordiv"),
    ("|=", "ior"),
    ("&=", "iand"),
    ("^=", "ixor"),
    ("-=", "isub"),
):
    replace(getattr(operator, _name))(_inplace(_symbol))
replace(operator.iconcat)(_inplace("+="))


# --- random numbers of the system ---------------------------------------------------------------------------------


def _index(n: Any) -> int:
    n = operator.index(exact_count(n))
    check_count(n)
    return n


@replace(secrets.randbelow)
def randbelow(exclusive_upper_bound: Any) -> int:
    """`secrets.randbelow`."""
    return secrets.randbelow(operator.index(exact_count(exclusive_upper_bound)))


@replace(secrets.token_bytes)
def token_bytes(nbytes: Any = None) -> bytes:
    """`secrets.token_bytes`."""
    return secrets.token_bytes(None if nbytes is None else _index(nbytes))


@replace(secrets.token_hex)
def token_hex(nbytes: Any = None) -> str:
    """`secrets.token_hex`."""
    return secrets.token_hex(None if nbytes is None else _index(nbytes))


@replace(secrets.token_urlsafe)
def token_urlsafe(nbytes: Any = None) -> str:
    """`secrets.token_urlsafe`."""
    return secrets.token_urlsafe(None if nbytes is None else _index(nbytes))


class _Random(random.Random):
    """Random numbers that restricted code may seed, and whose amount is held to the limits."""

    def choices(self, population: Any, weights: Any = None, *, cum_weights: Any = None, k: int = 1) -> list[Any]:
        k = exact_count(k)
        check_count(k)
        return super().choices(population, weights, cum_weights=cum_weights, k=k)

    def sample(self, population: Any, k: int, *, counts: Any = None) -> list[Any]:
        k = exact_count(k)
        check_count(k)
        return super().sample(population, k, counts=counts)

    def randbytes(self, n: int) -> bytes:
        n = exact_count(n)
        check_count(n)
        return super().randbytes(n)

    def getrandbits(self, k: int) -> int:
        k = exact_count(k)
        check_count(k)
        return super().getrandbits(k)

    def binomialvariate(self, n: int = 1, p: float = 0.5) -> int:
        n = exact_count(n)
        check_count(n)
        return super().binomialvariate(n, p)


# Seeding the program's own generator would change what the program does.
RANDOM = _Random()
replace(random.Random)(_Random)
