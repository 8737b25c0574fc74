"""Names of parametrized tests that are the same in every process, without which workers cannot share the tests."""

from __future__ import annotations

import re


def shown(value: object) -> str:
    """The `repr` of a value with its sets in order and without the address of an object."""
    if isinstance(value, set | frozenset):
        parts = "{" + ", ".join(sorted(map(shown, value))) + "}" if value else ""
        return parts if parts and type(value) is set else f"{type(value).__name__}({parts})"
    return re.sub(r" at 0x[0-9A-Fa-f]+", "", repr(value))
