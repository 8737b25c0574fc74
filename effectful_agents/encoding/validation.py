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

from effectful_agents.encoding.forgiving import ARM, DEFAULT, TAG, has_double_keys
from effectful_agents.encoding.functions import ENDS_CALL
from effectful_agents.encoding.marks import FORMS
from effectful_agents.encoding.names import without_addresses
from effectful_agents.encoding.shapes import Shape, chooser, recursive_refs, shape_of
from effectful_agents.encoding.trees import INSIDE, fields_inside, with_parts
from effectful_agents.tracebacks import summary

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
        outer, self._within = self._within, node.get("ref", self._within)
        made = _without_strictness(with_parts(node, self.of))
        kind = made["type"]
        if kind == "union":
            made = self._union(node, made)
        elif kind == "tagged-union":
            made = self._tagged_union(node, made)
        elif kind in _FIELDS:
            made = self._field(node, made)
        elif kind in _OF:
            made = _OF[kind](made)
        self._within = outer
        return made

    # --- alternatives ---

    def _union(self, given: Any, made: Any) -> Any:
        arms = {f"{ARM}{number}": arm for number, arm in enumerate(self._arms(given, frozenset()))}
        refs = {self._within, *(arm.get("schema_ref") for arm in arms.values())}
        choose = chooser(arms, self._definitions) if refs & self._recursive else None
        if choose is None:
            choices = map(_alternative, made["choices"])
            return {**made, "choices": [(one, f"{ARM}{number}") for number, one in enumerate(choices)]}
        schemas = {label: self.of(arm) for label, arm in arms.items()}
        outer = {key: made[key] for key in ("ref", "metadata") if key in made}
        plain = {key: part for key, part in made.items() if key not in outer}

        def together(labels: tuple[str, ...]) -> Any:
            return {**plain, "choices": [(schemas[label], label) for label in labels]}

        combined = {"+".join(labels): together(labels) for labels in choose.combinations}
        refused = {f"{ARM}{kind.__name__}": _refusing(reason) for kind, reason in choose.refusals.items()}
        choices = {ARM: together(tuple(arms)), **combined, **refused}

        def label(value: Any) -> str:
            chosen = choose(value)
            return f"{ARM}{chosen.__name__}" if isinstance(chosen, type) else "+".join(chosen or (ARM,))

        return {**core_schema.tagged_union_schema(choices, label), **outer}

    def _arms(self, union: Any, passed: frozenset[str]) -> list[Any]:
        """The alternatives of a union, and of those that stand for a union themselves."""
        arms: list[Any] = []
        for arm in map(_alternative, union["choices"]):
            ref = arm.get("schema_ref", "")
            meant = self._definitions.get(ref, arm)
            if meant["type"] == "union" and ref not in passed:
                arms += self._arms(meant, passed | {ref})
            else:
                arms.append(arm)
        return arms

    def _tagged_union(self, given: Any, made: Any) -> Any:
        # Its own labels are values of the discriminator, which keys of the data may be called as well.
        choices = {tag: one if isinstance(one, str) else _labelled(one, TAG) for tag, one in made["choices"].items()}
        made = {**made, "choices": choices}
        name = made["discriminator"]
        arms = [(tag, arm) for tag, arm in given["choices"].items() if not isinstance(arm, str)]
        shapes = [(tag, shape_of(arm, self._definitions)) for tag, arm in arms]
        without = {tag: shape for tag, shape in shapes if isinstance(shape, Shape) and name not in shape.required}
        if not isinstance(name, str) or not without:
            return made
        listed = ", ".join(repr(tag) for tag in choices)
        wanted = {"custom_error_type": "tag", "custom_error_message": f"Input should have as `{name}` one of {listed}"}
        return {**made, "discriminator": lambda value: _tag(name, without, value), **wanted}

    # --- fields ---

    def _field(self, given: Any, made: Any) -> Any:
        """A field whose errors say that it has a default, which null can stand for unless its type has null itself."""
        schema = given["schema"]
        has_default = schema["type"] == "default"
        if not has_default and given.get("required", True):
            return made
        if self._admits_null(schema, frozenset()):
            return made
        if has_default:
            inner = _labelled(made["schema"]["schema"], DEFAULT)
            return {**made, "schema": {**made["schema"], "schema": inner}}
        return {**made, "schema": _labelled(made["schema"], DEFAULT)}

    def _admits_null(self, node: Any, passed: frozenset[str]) -> bool:
        kind = node["type"]
        if kind in ("none", "any", "nullable"):
            return True
        if kind == "definition-ref":
            ref = node["schema_ref"]
            return ref not in passed and self._admits_null(self._definitions[ref], passed | {ref})
        if kind in ("union", "tagged-union"):
            choices = node["choices"].values() if kind == "tagged-union" else map(_alternative, node["choices"])
            return any(isinstance(one, dict) and self._admits_null(one, passed) for one in choices)
        if kind == "function-plain":
            return None in node.get("metadata", {}).get(FORMS, ())
        inner = node["schema"] if node.get("root_model") else node[INSIDE[kind]] if kind in INSIDE else None
        return inner is not None and self._admits_null(inner, passed)


def _without_strictness(node: Any) -> Any:
    """A node that reads what Python code hands on as it would read JSON, where a tuple is a list.

    Scalars are strict by themselves.
    """
    if node.get("strict") and node["type"] in _CONTAINERS:
        node = {**node, "strict": False}
    config: Any = node.get("config")
    if config and config.get("strict"):
        node = {**node, "config": {**config, "strict": False}}
    return node


_CONTAINERS = frozenset({"list", "tuple", "set", "frozenset", "dict", "model-fields", "typed-dict", "model",
                         "dataclass"})  # fmt: skip
_FIELDS = frozenset({"model-field", "dataclass-field", "typed-dict-field"})


def _alternative(choice: Any) -> Any:
    return choice[0] if isinstance(choice, tuple) else choice


def _tag(name: str, without: dict[Any, Shape], value: Any) -> Any:
    """The tag of a value; where it says none, that of the one alternative which has it as a default and fits best."""
    if not isinstance(value, dict):
        return getattr(value, name, None)
    tag = value.get(name)
    if tag is not None:
        return tag if isinstance(tag, str | int) else None
    faults = {tag: shape.faults(value) for tag, shape in without.items()}
    nearest = [tag for tag, number in faults.items() if number == min(faults.values())]
    return nearest[0] if len(nearest) == 1 else None


def _refusing(reason: str) -> Any:
    def refuse(_: Any) -> Any:
        raise PydanticCustomError("tag", "{reason}", {"reason": reason})

    return core_schema.no_info_plain_validator_function(refuse)


def _labelled(node: Any, label: str) -> Any:
    """The node as the only choice of a union: its label stands in the locations of errors."""
    return core_schema.union_schema([(node, label)], auto_collapse=False, mode="left_to_right")


# --- users' code ------------------------------------------------------------------------------------------------------


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
            raise PydanticCustomError("raised", "{said}", {"said": without_addresses(summary(error))}) from error

    return guard


def _function(node: Any) -> Any:
    return {**node, "function": {**node["function"], "function": guarded(node["function"]["function"])}}


def _json(node: Any) -> Any:
    return core_schema.no_info_before_validator_function(_without_doubles, node)


def _without_doubles(text: Any) -> Any:
    if isinstance(text, str):
        try:
            double = has_double_keys(text)
        except (ValueError, RecursionError):  # it is no JSON, and will be told to be none
            return text
        if double:
            raise ValueError("a key stands twice in an object of it")
    return text


def _class(node: Any) -> Any:
    """A class whose own code runs when an instance is made."""
    if not node.get("post_init") and not node.get("custom_init"):
        return node
    outer = {key: node[key] for key in ("ref",) if key in node}
    inner: Any = {key: part for key, part in node.items() if key not in outer}
    wrapped = core_schema.no_info_wrap_validator_function(_construct, inner)
    if node.get("custom_init") or _init_only(node):
        return {**wrapped, **outer}
    # Wrapped, it would be given Python data, of which dates and the like are read otherwise than of JSON.
    plain: Any = {key: part for key, part in inner.items() if key != "post_init"}
    complete = guarded(_complete)
    completed = core_schema.with_info_after_validator_function(lambda value, info: complete(value, info, node), plain)
    return {**core_schema.json_or_python_schema(completed, wrapped), **outer}


def _init_only(node: Any) -> bool:
    fields = fields_inside(node).get("fields", ())
    return not isinstance(fields, dict) and any(field.get("init_only") for field in fields)


def _complete(value: Any, info: Any, node: Any) -> Any:
    if node["type"] == "model":
        getattr(value, node["post_init"])(info.context)
    else:
        value.__post_init__()
    return value


@guarded
def _construct(value: Any, construct: Callable[[Any], Any]) -> Any:
    """Let a class be made whose own code runs then."""
    return construct(value)


_OF: dict[str, Callable[[Any], Any]] = {
    "dataclass": _class,
    "model": _class,
    "json": _json,
    **dict.fromkeys(("function-before", "function-after", "function-wrap", "function-plain"), _function),
}
