"""Prompts with fields: like `str.format`, but values that are not text keep their form."""

from __future__ import annotations

import string
from collections.abc import Mapping
from typing import Any

from effectful_agents.encoding.blocks import join, to_content_blocks
from effectful_agents.encoding.names import without_addresses
from effectful_agents.encoding.values import encode, written_down
from effectful_agents.errors import ConfigurationError, EncodingError
from effectful_agents.messages import ContentPart
from effectful_agents.messages.text import safe_text
from effectful_agents.types import Agent, Tool

__all__ = ["format_as_content_blocks"]

_FORMATTER = string.Formatter()


def format_as_content_blocks(template: str, env: Mapping[str, Any]) -> list[ContentPart]:
    """Fill the fields of a template.

    Everything that `str.format` knows is known here: `{x}`, `{x.attr}`, `{x[0]}`, `{x!r}`, `{x:>10}`, fields inside a
    format, and `{{` for a brace. A field with a conversion or a format is written by `str.format`. Any other is
    encoded: text bare, media as blocks of their own, the rest as JSON. What cannot be encoded is written by `str`, if
    its class says how; Python's own `<… object at 0x…>` never reaches a prompt.

    Args:
        template: The text.
        env: The names that fields may use.

    Returns:
        The blocks in order; neighbouring text is one block, an empty template has none.

    Raises:
        ConfigurationError: A field names something that is not there, or cannot be evaluated.
        EncodingError: A value has no form that a model could read.

    >>> format_as_content_blocks("{n:03d} of {names}", {"n": 7, "names": ["a", "b"]})
    [{'type': 'text', 'text': '007 of ["a", "b"]'}]
    """
    blocks: list[ContentPart] = []
    for text, field, spec, conversion in _parse(template):
        join(blocks, safe_text(text))
        if field is None:
            continue
        value = _look_up(field, env)
        if not spec and not conversion:
            _write(blocks, value, field)
        else:
            join(blocks, safe_text(_format(value, field, spec or "", conversion, env)))
    return blocks


def _parse(template: str) -> list[tuple[str, str | None, str | None, str | None]]:
    try:
        return list(_FORMATTER.parse(template))
    except ValueError as error:
        raise ConfigurationError(f"the template cannot be read: {error}; write `{{{{` for a brace itself") from error


def _look_up(field: str, env: Mapping[str, Any]) -> Any:
    try:
        return _FORMATTER.get_field(field, (), env)[0]
    except Exception as error:  # a property may raise anything
        name = field.partition(".")[0].partition("[")[0]
        if not name or name.isdigit():
            problem = "fields go by name, not by position"
        elif name not in env:
            problem = f"there is no `{name}`"
        else:
            problem = without_addresses(f"{type(error).__name__}: {error}")
        raise ConfigurationError(f"the field `{{{field}}}` of the template cannot be filled: {problem}") from error


def _format(value: Any, field: str, spec: str, conversion: str | None, env: Mapping[str, Any]) -> str:
    try:
        converted = _FORMATTER.convert_field(value, conversion)
        if conversion and not isinstance(value, str):
            converted = without_addresses(converted)
        return format(converted, _FORMATTER.vformat(spec, (), env))
    except Exception as error:  # `__repr__` and `__format__` are what users wrote, and may raise anything
        raise ConfigurationError(
            f"the field `{{{field}}}` of the template cannot be formatted with `{spec or conversion}`: {error}"
        ) from error


def _write(blocks: list[ContentPart], value: Any, field: str) -> None:
    try:
        with written_down(value):
            parts = to_content_blocks(encode(value))
    except EncodingError as error:
        text = _own_text(value)
        if text is None:
            raise EncodingError(f"the field `{{{field}}}` of the template cannot be filled: {error}") from error
        join(blocks, safe_text(text))
        return
    for part in parts:
        if part["type"] == "text":
            join(blocks, part["text"])
        else:
            blocks.append(part)


def _own_text(value: Any) -> str | None:
    """`str(value)` where its class says how; None where that would show an address.

    A tool, a skill and an agent are shown by their names: what they can do the model learns from the tools it is
    offered.
    """
    if isinstance(value, Tool):
        return value.__name__
    kind = type(value)
    if kind.__str__ is object.__str__ and kind.__repr__ is object.__repr__:
        return kind.__name__ if isinstance(value, Agent) else None
    try:
        text = str(value)
    except Exception:  # as above; the error that is raised then says why JSON is not possible
        return None
    return text if without_addresses(text) == text else None
