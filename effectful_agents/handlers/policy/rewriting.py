"""Values with other texts in them."""

from __future__ import annotations

import copy
import dataclasses
import enum
from collections.abc import Callable, Mapping
from types import CodeType
from typing import Any

import pydantic

from effectful_agents.encoding import EncodedFunction, decode, dumps, encode
from effectful_agents.errors import EncodingError, GovernanceRefused
from effectful_agents.handlers.policy.drafts import mapped
from effectful_agents.types.kinds import is_a, name_of_type, names_in

__all__ = ["Unfit", "rewritten"]

type Change = Callable[[str], str]

_PLAIN = (bool, int, float, complex, bytes, bytearray, type(None))
_CONTAINERS = (list, tuple, set, frozenset)


class Unfit(Exception):
    """With the other texts a value is none of its type any more."""

    def __init__(self, value: Any) -> None:
        super().__init__(f"what was made of it is no `{name_of_type(type(value))}`")


def rewritten(value: Any, change: Change) -> Any:
    """A value with its texts changed; the same object where none changes.

    Texts are changed in lists, dicts with their keys, dataclasses and models, and in what is made again, equal, from
    its JSON, as paths are. All else stays as it is: a secret, whose JSON does not have it, and above all **code**, such
    as a function: what is put into its source would run.

    Args:
        value: The value. It is not changed itself.
        change: What becomes of a text.

    Raises:
        Unfit: A text that is changed is not what a class allows there.
        GovernanceRefused: Two keys would become one.

    >>> rewritten({"to": ["ann"], "at": 3}, str.upper)
    {'TO': ['ANN'], 'AT': 3}
    """
    return _Rewriting(change).of(value)


class _Rewriting:
    def __init__(self, change: Change) -> None:
        self._change = change
        self._inside: set[int] = set()

    def of(self, value: Any) -> Any:
        if type(value) is str:
            return self._change(value)
        if type(value) in _PLAIN or id(value) in self._inside:
            return value
        self._inside.add(id(value))
        try:
            return self._of_parts(value)
        finally:
            self._inside.discard(id(value))

    def _of_parts(self, value: Any) -> Any:
        if type(value) in _CONTAINERS:
            parts = [self.of(one) for one in value]
            return value if _are_same(parts, value) else type(value)(parts)
        if is_a(value, tuple) and is_a(names_in(type(value)).get("_fields"), tuple):
            parts = [self.of(one) for one in value]
            return value if _are_same(parts, value) else type(value)._make(parts)
        if type(value) is dict:
            return self._of_dict(value)
        if is_a(value, EncodedFunction):
            return value
        if is_a(value, pydantic.BaseModel):
            return self._of_model(value)
        if dataclasses.is_dataclass(value) and not is_a(value, type):
            return self._of_dataclass(value)
        return self._of_other(value)

    def _of_dict(self, value: dict[Any, Any]) -> Any:
        keys = {key: self.of(key) for key in value}
        parts = {keys[key]: self.of(one) for key, one in value.items()}
        if len(parts) != len(value):
            raise GovernanceRefused("governance", "Two names in it would become one.")
        same = _are_same(keys.values(), value) and _are_same(parts.values(), value.values())
        return value if same else parts

    def _of_model(self, value: pydantic.BaseModel) -> Any:
        changed = self._changed({**value.__dict__, **(value.__pydantic_extra__ or {})})
        if not changed:
            return value
        made = value.model_copy(update=changed)
        if value.model_config.get("frozen"):
            return made
        try:
            for name, one in changed.items():
                type(value).__pydantic_validator__.validate_assignment(made, name, one)
        except pydantic.ValidationError as error:
            if any(problem["type"] == "frozen_field" for problem in error.errors()):
                return made
            raise Unfit(value) from error
        return made

    def _of_dataclass(self, value: Any) -> Any:
        fields = dataclasses.fields(value)
        changed = self._changed({one.name: getattr(value, one.name) for one in fields if hasattr(value, one.name)})
        if not changed:
            return value
        try:
            if all(one.init for one in fields):
                return dataclasses.replace(value, **changed)
            made = copy.copy(value)
            for name, one in changed.items():
                object.__setattr__(made, name, one)
        except Exception as error:  # what its `__post_init__` or a pydantic dataclass does not take
            raise Unfit(value) from error
        return made

    def _changed(self, parts: Mapping[str, Any]) -> dict[str, Any]:
        made = {name: self.of(one) for name, one in parts.items()}
        return {name: one for name, one in made.items() if not _is_same(one, parts[name])}

    def _of_other(self, value: Any) -> Any:
        kind = type(value)
        if callable(value) or is_a(value, CodeType, enum.Enum):
            return value
        try:
            encoded = encode(value, kind)
            amended = mapped(encoded, self._change, names=True)
            if amended == encoded or not _is_equal(decode(dumps(encoded), kind), value):
                return value
        except (EncodingError, ValueError):  # it has no texts that could be read, or put back
            return value
        try:
            return decode(dumps(amended), kind, strict=True)
        except ValueError as error:
            raise Unfit(value) from error


def _is_same(one: Any, other: Any) -> bool:
    return one is other or (type(one) is str and type(other) is str and one == other)


def _are_same(ones: Any, others: Any) -> bool:
    return all(_is_same(one, other) for one, other in zip(ones, others, strict=True))


def _is_equal(one: Any, other: Any) -> bool:
    """Whether two values are equal, where nobody says so part by part."""
    if type(one) is not type(other):
        return False
    try:
        if type(one).__eq__ is not object.__eq__:
            return bool(one == other)
        mine, theirs = vars(one), vars(other)
    except Exception:  # an array says it for each of its items
        return False
    return mine.keys() == theirs.keys() and all(_is_equal(part, theirs[name]) for name, part in mine.items())
