"""What a tool has changed about the object whose method it is, so that a resumed run can make the same change."""

from __future__ import annotations

import contextlib
import pickle
import typing
from collections.abc import Iterator, Mapping
from typing import Any

from effectful_agents.encoding import dumps
from effectful_agents.errors import AgentsError
from effectful_agents.handlers.durability.written import read_any, write_any

__all__ = ["Attributes", "Restored"]


class Attributes:
    """The attributes of an object as they are now.

    Args:
        receiver: The object; a class or None has none.
    """

    unwritable: list[str]
    """The attributes that `changes` found to be changed, and that cannot be written down."""

    def __init__(self, receiver: Any) -> None:
        self._receiver = receiver
        self.unwritable = []
        self._before = self._now()

    def changes(self) -> dict[str, Any]:
        """What has changed since, as JSON for `Restored`."""
        after = self._now()
        changed: dict[str, Any] = {}
        self.unwritable = []
        for name, state in after.items():
            if state == self._before.get(name, _MISSING):
                continue
            try:
                changed[name] = write_any(getattr(self._receiver, name), _declared(self._receiver).get(name, Any))
            except AgentsError:
                self.unwritable.append(name)
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
    """What tells one state of a value from another: its text, or all that it consists of, or which object it is."""
    try:
        return dumps(write_any(value, declared))
    except AgentsError:
        pass
    try:
        return pickle.dumps(value)  # compared in this process, and neither kept nor read
    except Exception:  # it may consist of anything: a lock, a connection
        return id(value)


class Restored:
    """Which attributes have been given what a step made of them, and when that step had ended.

    Of steps that ran side by side the one that began first may have ended last, and seen what the others did.
    """

    def __init__(self) -> None:
        # The objects are kept so that their identities stay their own.
        self._latest: dict[tuple[int, str], tuple[int, Any]] = {}

    def restore(self, receiver: Any, changed: Mapping[str, Any], ended: int) -> None:
        """Make changes again that `Attributes.changes` wrote, unless a step that ended later made its own.

        Args:
            receiver: The object.
            changed: The changes.
            ended: The place in the journal where the step ended.
        """
        fresh = {}
        for name, written in changed.items():
            key = id(receiver), name
            if name and ended < self._latest.get(key, (0, None))[0]:
                continue
            self._latest[key] = ended, receiver
            fresh[name] = written
        _restore(receiver, fresh)


def _restore(receiver: Any, changed: Mapping[str, Any]) -> None:
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
