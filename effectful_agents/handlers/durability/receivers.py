"""What a tool has changed about the object whose method it is, so that a resumed run can make the same change."""

from __future__ import annotations

import typing
from collections.abc import Mapping
from typing import Any

from effectful_agents.encoding import dumps
from effectful_agents.errors import AgentsError
from effectful_agents.handlers.durability.written import read_any, write_any

__all__ = ["Attributes", "restore"]


class Attributes:
    """The attributes of an object as they are now.

    Args:
        receiver: The object; a class or None has none.
    """

    def __init__(self, receiver: Any) -> None:
        self._receiver = receiver
        self._before = self._now()

    def changes(self) -> dict[str, Any] | None:
        """What has changed since, as JSON for `restore`; None where a change cannot be written down."""
        after = self._now()
        changed: dict[str, Any] = {}
        for name, state in after.items():
            if state == self._before.get(name, _MISSING):
                continue
            if not isinstance(state, str):
                return None
            changed[name] = write_any(getattr(self._receiver, name), _declared(self._receiver).get(name, Any))
        gone = sorted(self._before.keys() - after.keys())
        return changed | ({"": gone} if gone else {})

    def _now(self) -> dict[str, Any]:
        names = {} if self._receiver is None or isinstance(self._receiver, type) else _own(self._receiver)
        declared = _declared(self._receiver) if names else {}
        return {name: _state(value, declared.get(name, Any)) for name, value in names.items()}


_MISSING = object()


def _own(receiver: Any) -> dict[str, Any]:
    """Its own attributes. A history is none of them: calls bring it back by themselves."""
    return {name: value for name, value in getattr(receiver, "__dict__", {}).items() if not name.startswith("__")}


def _declared(receiver: Any) -> Mapping[str, Any]:
    try:
        return typing.get_type_hints(type(receiver), include_extras=True)
    except Exception:  # an annotation may be anything
        return {}


def _state(value: Any, declared: Any) -> Any:
    """What tells one state of a value from another: its text, or else which object it is."""
    try:
        return dumps(write_any(value, declared))
    except AgentsError:
        return id(value)


def restore(receiver: Any, changed: Mapping[str, Any]) -> None:
    """Make changes again that `Attributes.changes` wrote."""
    declared = _declared(receiver)
    for name, written in changed.items():
        if not name:
            for gone in written:
                vars(receiver).pop(gone, None)
        else:
            # As `self.name = value` would, past a class that is frozen.
            object.__setattr__(receiver, name, read_any(written, declared.get(name, Any)))
