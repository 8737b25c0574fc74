"""What a reply may look like: an answer, a call of a tool, or either, as one JSON schema.

A model whose chat template knows no tools is held to an envelope: `{"tool": name, "arguments": …}` is a call,
`{"answer": …}` an answer. What was said already in this call of the skill is left out, a tool call that was answered
and an answer that was sent back: a small model repeats itself for ever.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from effectful_agents.errors import ConfigurationError
from effectful_agents.handlers.provision.local.schema import free_schema, narrowed
from effectful_agents.messages import ResponseFormat, ToolChoice, ToolDefinition

__all__ = ["NOTHING", "Said", "SaidCall", "answer_schema", "envelope_schema", "with_separators"]

_MOST_VALUES = 64
"""Up to so many possible values are written down one by one when some of them are struck."""

_TEXT = {"type": "string"}


class SaidCall(NamedTuple):
    """A tool call: its name, and its arguments as a JSON value."""

    name: str
    arguments: Any


class Said(NamedTuple):
    """What the model said before and need not say again.

    Attributes:
        calls: Tool calls that were answered.
        answers: Answers that were sent back, as JSON values.
    """

    calls: Sequence[SaidCall] = ()
    answers: Sequence[Any] = ()


NOTHING = Said()


def with_separators(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema that admits JSON in one way of writing only: that of `json.dumps`.

    White space would otherwise be free, and a model can spend most of its tokens on it. Written in one way, a reply
    also has the same bytes as the message that it becomes, so that the prefix cache serves it on the next turn.
    """
    style = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": ", "lenient": True}
    return {**schema, "x-guidance": style}


def answer_schema(form: ResponseFormat | None, said: Said = NOTHING) -> dict[str, Any] | None:
    """The schema of an answer without tools around; None where it is free text."""
    schema = _wanted(form)
    if schema is None:
        return None
    body, definitions = narrowed(schema)
    return _with_definitions(_without(body, definitions, said.answers) or body, definitions)


def envelope_schema(
    tools: Sequence[ToolDefinition], choice: ToolChoice, form: ResponseFormat | None, said: Said = NOTHING
) -> dict[str, Any]:
    """The schema of a reply where tools are offered.

    Args:
        tools: The tools on offer.
        choice: What is allowed: any of them or the answer, only the answer, one of them, or a named one.
        form: The form of the answer.
        said: What may not be said again. Where that leaves nothing that the choice allows, it may.

    Raises:
        ConfigurationError: The choice names a tool that is not offered, or asks for one where there is none.
    """
    allowed = _allowed(tools, choice)
    definitions: dict[str, Any] = {}
    calls = [
        _call(tool["function"]["name"], arguments)
        for tool, arguments in zip(allowed, _arguments(allowed, tools, definitions), strict=True)
    ]
    left = [
        _call(tool["function"]["name"], arguments)
        for tool, arguments in zip(allowed, _arguments(allowed, tools, definitions, said.calls), strict=True)
        if arguments is not None
    ]
    if choice.mode in ("auto", "none"):
        body, others = narrowed(_wanted(form) or _TEXT, "answer_{}".format)
        definitions |= others
        left.append(_closed({"answer": _without(body, others, said.answers) or body}))
    choices = left or calls
    return _with_definitions(choices[0] if len(choices) == 1 else {"anyOf": choices}, definitions)


def _wanted(form: ResponseFormat | None) -> Any:
    match form:
        case {"type": "json_schema", "json_schema": {"schema": schema}}:
            return schema
        case {"type": "json_object"}:
            return {"type": "object"}
        case _:
            return None


def _allowed(tools: Sequence[ToolDefinition], choice: ToolChoice) -> Sequence[ToolDefinition]:
    names = [tool["function"]["name"] for tool in tools]
    if choice.mode == "none":
        return []
    if choice.mode != "named":
        return tools
    if choice.name not in names:
        raise ConfigurationError(f"`tool_choice` names `{choice.name}`; the tools on offer are {', '.join(names)}")
    return [tools[names.index(choice.name)]]


def _arguments(
    allowed: Sequence[ToolDefinition],
    tools: Sequence[ToolDefinition],
    definitions: dict[str, Any],
    said: Sequence[SaidCall] = (),
) -> list[dict[str, Any] | None]:
    """The schemas of the tools' arguments without those said before; None where none is left. Fills `definitions`."""
    schemas: list[dict[str, Any] | None] = []
    for tool in allowed:
        place = tools.index(tool)
        body, own = narrowed(tool["function"].get("parameters") or _closed({}), f"tool_{place}_{{}}".format)
        definitions |= own
        name = tool["function"]["name"]
        schemas.append(_without(body, own, [call.arguments for call in said if call.name == name]))
    return schemas


def _call(name: str, arguments: dict[str, Any] | None) -> dict[str, Any]:
    return _closed({"tool": {"const": name}, "arguments": free_schema() if arguments is None else arguments})


def _closed(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _with_definitions(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    return {**schema, "$defs": definitions} if definitions else schema


# --- leaving out what was said before ---------------------------------------------------------------------------------


def _without(schema: dict[str, Any], definitions: Mapping[str, Any], said: Sequence[Any]) -> dict[str, Any] | None:
    """The schema of an object without the values in `said`; None where nothing is left.

    Where an object can have few values, they are struck one by one. Others (with a text, a number) cannot be taken out
    of a grammar: there nothing is left once the same was said twice.
    """
    if not said:
        return schema
    done = [_key(one) for one in said]
    possible = _possible(schema, definitions)
    if possible is None:
        return None if len(set(done)) < len(done) else schema
    left = [one for one in possible if _key(one) not in done]
    if not left:
        return None
    if len(left[0]) == 1:
        [name] = left[0]
        return _closed({name: {"enum": [one[name] for one in left]}})
    return {"anyOf": [_closed({name: {"const": value} for name, value in one.items()}) for one in left]}


def _possible(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """All objects that a schema admits, where they are few and no member is optional."""
    if schema.get("type") != "object" or schema["additionalProperties"]:
        return None
    possible: list[dict[str, Any]] = [{}]
    for name, value in schema["properties"].items():
        values = _values(value, definitions)
        if values is None or len(possible) * len(values) > _MOST_VALUES or name not in schema.get("required", ()):
            return None
        possible = [{**one, name: value} for one, value in itertools.product(possible, values)]
    return possible


def _values(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> list[Any] | None:
    """Every value that a schema admits, where it lists them."""
    if "$ref" in schema:
        return _values(definitions.get(schema["$ref"].removeprefix("#/$defs/"), {}), definitions)
    if "const" in schema:
        return [schema["const"]]
    if "enum" in schema:
        return schema["enum"]
    match schema:
        case {"type": "boolean"}:
            return [False, True]
        case {"type": "integer", "minimum": low, "maximum": high} if high - low < _MOST_VALUES:
            return [value for value in range(low, high + 1) if value % schema.get("multipleOf", 1) == 0]
    return None


def _key(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
