"""What a tool has changed about the object whose method it is, so that a resumed run can make the same change."""

from __future__ import annotations

import contextlib
import typing
from collections.abc import Iterator, Mapping, Sequence
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

    unwritable: Sequence[str] = ()
    """The attributes that `changes` found to be changed, and that cannot be written down."""

    def __init__(self, receiver: Any) -> None:
        self._receiver = receiver
        self._before = self._now()

    def changes(self) -> dict[str, Any]:
        """What has changed since, as JSON for `restore`."""
        after = self._now()
        self.unwritable = [
            name
            for name, state in after.items()
            if state != self._before.get(name, _MISSING) and not isinstance(state, str)
        ]
        changed: dict[str, Any] = {}
        for name, state in after.items():
            if state == self._before.get(name, _MISSING) or name in self.unwritable:
                continue
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
    slots = {name: getattr(receiver, name) for name in _slots(type(receiver)) if hasattr(receiver, name)}
    own = {**getattr(receiver, "__dict__", {}), **slots}
    return {name: value for name, value in own.items() if not name.startswith("__")}


def _slots(kind: type) -> Iterator[str]:
    for cls in kind.__mro__:
        slots = vars(cls).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            is_private = name.startswith("__") and not name.endswith("__")
            yield f"_{cls.__name__.lstrip('_')}{name}" if is_private else name


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
    declared, own = _declared(receiver), _own(receiver)
    for name, written in changed.items():
        if not name:
            for gone in written:
                with contextlib.suppress(AttributeError):
                    object.__delattr__(receiver, gone)
            continue
        value = read_any(written, declared.get(name, Any))
        if not _changed_in_place(own.get(name), value):
            # As `self.name = value` would, past a class that is frozen.
            object.__setattr__(receiver, name, value)


def _changed_in_place(present: Any, value: Any) -> bool:
    """Give a collection other contents, if it is one: the program may have it under another name too."""
    if type(present) is not type(value):
        return False
    if isinstance(present, list):
        present[:] = value
    elif isinstance(present, dict | set):
        present.clear()
        present.update(value)
    else:
        return False
    return True
