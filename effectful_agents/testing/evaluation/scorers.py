"""Scorers that are ready."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from typing import Any

__all__ = ["close", "contains", "exact", "matches", "similar"]


def exact(output: Any, expected: Any) -> bool:
    r"""Whether the output is what is expected. Texts may differ in the blanks around them.

    >>> exact("Paris\n", "Paris"), exact([1, 2], [2, 1])
    (True, False)
    """
    if isinstance(output, str) and isinstance(expected, str):
        return output.strip() == expected.strip()
    return bool(output == expected)


def contains(output: Any, expected: Any) -> bool:
    """Whether what is expected stands in the output: in a text, whatever the case of its letters, or in a collection.

    Of a list, tuple or set of things that are expected each has to stand there.

    >>> contains("It is Paris.", "paris"), contains(["a", "b"], ["b", "c"])
    (True, False)
    """
    wanted = expected if isinstance(expected, list | tuple | Set) else [expected]
    if isinstance(output, str):
        text = output.casefold()
        return all(str(each).casefold() in text for each in wanted)
    if isinstance(output, Collection):
        return all(each in output for each in wanted)
    raise TypeError(f"`contains` looks into texts and collections; the output is {type(output).__name__}")


def similar(output: str, expected: str) -> float:
    """How much of two texts is the same: 1 where they are equal, 0 where they have nothing in common.

    It is the share of characters in pieces that both have, in the same order.

    >>> similar("abcd", "abxd"), similar("a", "a")
    (0.75, 1.0)
    """
    return difflib.SequenceMatcher(None, expected, output, autojunk=False).ratio()


def close(*, relative: float = 1e-6, absolute: float = 0.0) -> Callable[..., bool]:
    """Make a scorer: whether numbers are as expected, but for a tolerance.

    Numbers in lists and mappings are compared one by one.

    Args:
        relative: How far a number may be off, as a share of the larger of both.
        absolute: How far it may be off in any case.

    >>> close(absolute=0.1)(3.1, 3.14), close()([1, 2.0], [1.0, 2.1])
    (True, False)
    """

    def close(output: Any, expected: Any) -> bool:
        if isinstance(expected, Mapping) and isinstance(output, Mapping):
            return output.keys() == expected.keys() and all(close(output[key], expected[key]) for key in expected)
        if _is_sequence(expected) and _is_sequence(output):
            return len(output) == len(expected) and all(map(close, output, expected))
        if isinstance(output, int | float) and isinstance(expected, int | float):
            return math.isclose(output, expected, rel_tol=relative, abs_tol=absolute)
        return bool(output == expected)

    return close


def matches(pattern: str) -> Callable[..., bool]:
    """Make a scorer: whether a regular expression is found in the output, as text.

    >>> matches(r"^[A-Z]")("Paris"), matches(r"[0-9]+ km")("about 12 miles")
    (True, False)
    """
    compiled = re.compile(pattern)

    def matches(output: Any) -> bool:
        return compiled.search(str(output)) is not None

    return matches


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)
