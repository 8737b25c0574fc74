"""Signatures as Python writes them, the same in every process."""

from __future__ import annotations

import ast
import inspect
import re
import reprlib
import weakref
from collections.abc import MutableMapping
from typing import Any

from effectful_agents.encoding.names import type_name
from effectful_agents.types import Tool

__all__ = ["Verbatim", "sets_in_order", "signature_text"]

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{6,}")


def signature_text(tool: Tool) -> str:
    """The name and signature of a tool or a skill as Python writes them, the same in every process.

    >>> from effectful_agents import Skill
    >>> @Skill.define
    ... def add(a: int, b: int = 2) -> int:
    ...     '''Add {a} and {b}.'''
    >>> signature_text(add)
    'add(a: int, b: int = 2) -> int'
    """
    texts = _signatures.setdefault(tool.function, {})
    bound = tool.receiver is not None
    if bound not in texts:
        texts[bound] = _written(tool)
    return tool.__name__ + texts[bound]


# For a bound tool and for the one it was made from.
_signatures: MutableMapping[Tool, dict[bool, str]] = weakref.WeakKeyDictionary()


def _written(tool: Tool) -> str:
    signature = tool.__signature__
    plain = signature.replace(
        parameters=[
            parameter.replace(annotation=_annotation(parameter.annotation), default=_default(parameter.default))
            for parameter in signature.parameters.values()
        ],
        return_annotation=_annotation(signature.return_annotation),
    )
    return _ADDRESS.sub("0x…", sets_in_order(str(plain)))


# A text in quotes, which stays, or what stands in braces.
_BRACED = re.compile(
    r"""('(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")|(\{(?:[^{}'"]|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")*\})"""
)


def sets_in_order(text: str) -> str:
    """What Python wrote, its sets in an order that is the same in every process.

    A set may stand anywhere in it: in the annotations, in what a class writes of itself.

    >>> sets_in_order("Plan(days=frozenset({3, 1, 2}), name='{b, a}')")
    "Plan(days=frozenset({1, 2, 3}), name='{b, a}')"
    """
    return _BRACED.sub(lambda found: found[1] or _sorted_set(found[2]), text)


def _sorted_set(text: str) -> str:
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        parts = text[1:-1].split(", ")
        # What is neither a set nor a dictionary is left alone.
        return text if any(":" in _POINTED.sub("", part) for part in parts) else "{" + ", ".join(sorted(parts)) + "}"
    if not isinstance(value, set):
        return text
    try:
        parts = sorted(value)
    except TypeError:
        parts = sorted(value, key=lambda one: (type(one).__name__, repr(one)))
    return "{" + ", ".join(map(repr, parts)) + "}"


_POINTED = re.compile("<[^<>]*>")


class Verbatim:
    """Something that `inspect` writes into a signature, as annotation or default, as the text that it is given."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _annotation(annotation: Any) -> Verbatim:
    return Verbatim("Any" if annotation is inspect.Parameter.empty else type_name(annotation, metadata=True))


def _default(value: Any) -> Any:
    return value if value is inspect.Parameter.empty else Verbatim(_SORTED.repr(value))


# Unlike `repr` it writes sets in a fixed order.
_SORTED = reprlib.Repr(
    maxlevel=20,
    maxdict=1000,
    maxlist=1000,
    maxtuple=1000,
    maxset=1000,
    maxfrozenset=1000,
    maxdeque=1000,
    maxarray=1000,
    maxlong=1000,
    maxstring=10000,
    maxother=10000,
)
