"""The core schema as the validator gets it.

What is added here is of no matter to the JSON schema and to writing: labels that tell the parts of an error's location
which are no keys of the data, errors of users' code that become errors with a place, and the choice of an alternative
by its shape where trying them all would take time without end.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from pydantic_core import PydanticCustomError, PydanticOmit, PydanticUseDefault, core_schema

from effectful_agents.encoding.forgiving import ARM, ENTRY, TAG
from effectful_agents.encoding.functions import ENDS_CALL
from effectful_agents.encoding.marks import NO_SCHEMAS
from effectful_agents.encoding.names import without_addresses
from effectful_agents.encoding.shapes import chooser, recursive_refs

__all__ = ["for_validation"]


def for_validation(schema: Any) -> Any:
    """A core schema with what its validator needs beyond it."""
    definitions = {one["ref"]: one for one in schema.get("definitions", ())}
    return _Pass(definitions).of(schema)


class _Pass:
    def __init__(self, definitions: dict[str, Any]) -> None:
        self._definitions = definitions
        self._recursive = recursive_refs(definitions)
        self._within: str | None = None  # the definition that is being gone through

    def of(self, node: Any) -> Any:
        if isinstance(node, list | tuple):
            return type(node)([self.of(part) for part in node])
        if not isinstance(node, dict):
            return node
        if not isinstance(node.get("type"), str):  # schemas by name
            return {name: self.of(part) for name, part in node.items()}
        outer, self._within = self._within, node.get("ref", self._within)
        made = {key: part if key in NO_SCHEMAS else self.of(part) for key, part in node.items()}
        special = _OF.get(made["type"])
        if special is not None:
            made = special(made)
        if made["type"] == "union":
            made = self._union(node, made)
        for key in ("values_schema", "extras_schema"):
            if made.get(key) and made[key]["type"] != "any":
                made[key] = _labelled(made[key], ENTRY)
        self._within = outer
        return made

    def _union(self, given: Any, made: Any) -> Any:
        choices = {f"{ARM}{number}": _alternative(one) for number, one in enumerate(made["choices"])}
        plain = {**made, "choices": [(one, label) for label, one in choices.items()]}
        arms = dict(zip(choices, map(_alternative, given["choices"]), strict=True))
        refs = {self._within, *(arm.get("schema_ref") for arm in arms.values())}
        choose = chooser(arms, self._definitions) if refs & self._recursive else None
        if choose is None:
            return plain
        outer = {key: plain.pop(key) for key in ("ref", "metadata") if key in plain}
        choices |= {ARM: plain, "": _refusing(choose.refusal)}

        def label(value: Any) -> str:
            chosen = choose(value)
            return ARM if chosen is None else chosen

        return {**core_schema.tagged_union_schema(choices, label), **outer}


def _alternative(choice: Any) -> Any:
    return choice[0] if isinstance(choice, tuple) else choice


def _refusing(reason: str | None) -> Any:
    def refuse(_: Any) -> Any:
        raise PydanticCustomError("union_tag_invalid", "{reason}", {"reason": reason})

    return core_schema.no_info_plain_validator_function(refuse)


def _labelled(node: Any, label: str) -> Any:
    """The node as the only choice of a union: its label stands in the locations of errors."""
    return core_schema.union_schema([(node, label)], auto_collapse=False, mode="left_to_right")


def _tagged_union(node: Any) -> Any:
    # Its own labels are values of the discriminator, which keys of the data may be called as well.
    choices = {tag: one if isinstance(one, str) else _labelled(one, TAG) for tag, one in node["choices"].items()}
    return {**node, "choices": choices}


def _function(node: Any) -> Any:
    return {**node, "function": {**node["function"], "function": guarded(node["function"]["function"])}}


def _class(node: Any) -> Any:
    if not node.get("post_init") and not node.get("custom_init"):
        return node
    outer = {key: node[key] for key in ("ref",) if key in node}
    inner: Any = {key: part for key, part in node.items() if key not in outer}
    return {**core_schema.no_info_wrap_validator_function(_construct, inner), **outer}


_OF: dict[str, Callable[[Any], Any]] = {
    "tagged-union": _tagged_union,
    "dataclass": _class,
    "model": _class,
    **dict.fromkeys(("function-before", "function-after", "function-wrap", "function-plain"), _function),
}


def guarded[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """A validator whose errors of any kind are about the value that it was given.

    Pydantic knows ValueError and AssertionError as such. A `KeyError` would go through it, and neither a model nor a
    person would be told where it happened.
    """

    @functools.wraps(function, assigned=("__name__", "__qualname__", "__module__"), updated=())
    def guard(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except (ValueError, AssertionError, PydanticOmit, PydanticUseDefault, *ENDS_CALL):
            raise
        except Exception as error:  # what users wrote may raise anything
            raise ValueError(without_addresses(f"{type(error).__name__}: {error}")) from error

    return guard


@guarded
def _construct(value: Any, construct: Callable[[Any], Any]) -> Any:
    """Let a class be made whose own code runs then."""
    return construct(value)
