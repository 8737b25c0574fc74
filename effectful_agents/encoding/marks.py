"""What this package writes into the metadata of core schemas, for itself to read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = ["ARGUMENTS", "CODEC", "FORMS", "MARK", "Writer", "shown"]

ARGUMENTS = "effectful_agents.arguments"
"""The key under which a generic class of the attrs library stands with its arguments."""

CODEC = "effectful_agents.codec"
"""The key under which a codec stands that is not the one of the class."""

FORMS = "effectful_agents.forms"
"""The key under which the written values stand that a core schema admits, where they are few."""

MARK = "effectful_agents"
"""The key in the metadata of a core schema under which a `Writer` stands."""


class Writer(NamedTuple):
    """How values are written whose core schema is not pydantic's.

    Attributes:
        kind: What values must be an instance of: a class, or an object with a method `holds`; None for anything.
        write: Makes the written value; for `inner` to write further where that is true.
        inner: Whether what `write` makes is written by the core schema inside.
        exact: Whether instances of subclasses are written by their own classes.
    """

    kind: Any
    write: Callable[[Any], Any]
    inner: bool
    exact: bool = False

    def holds(self, value: Any) -> bool:
        """Whether a value is of the kind."""
        own = getattr(self.kind, "holds", None)
        return self.kind is None or (isinstance(value, self.kind) if own is None else own(value))


def shown(schema: dict[str, Any]) -> dict[str, Any]:
    """Metadata that gives a core schema this JSON schema."""
    return {"pydantic_js_functions": [lambda _, __: dict(schema)]}
