"""Tools and skills of a script as the protocol describes them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import mcp_types

from effectful_agents.encoding import encode, json_schema, tool_codec
from effectful_agents.errors import ConfigurationError, EncodingError
from effectful_agents.operations.effects import risk_of
from effectful_agents.types import Risk, Tool

__all__ = ["Offered", "offered"]


@dataclasses.dataclass(frozen=True)
class Offered:
    """A tool that is published.

    Attributes:
        tool: The tool, with the name by which it is offered.
        described: What clients are told of it.
        wraps: Whether its value is put into an object, since clients of older versions know no others.
    """

    tool: Tool[..., Any]
    described: mcp_types.Tool
    wraps: bool

    def structured(self, value: Any) -> Any:
        """The value as JSON that fits the schema of the output; None where there is no schema."""
        if self.described.output_schema is None:
            return None
        encoded = encode(value, self.tool.__signature__.return_annotation)
        return {"result": encoded} if self.wraps else encoded


def offered(tools: Iterable[Tool[..., Any]]) -> dict[str, Offered]:
    """What is published of these tools, by name.

    Raises:
        ConfigurationError: A tool cannot be described.
    """
    return {tool.__name__: _offered(tool) for tool in tools}


def _offered(tool: Tool[..., Any]) -> Offered:
    try:
        function = tool_codec(tool).definition(tool.__name__)["function"]
    except EncodingError as error:
        raise ConfigurationError(f"`{tool.__name__}` cannot be published: {error}") from error
    schema, wraps = _output(tool)
    described = mcp_types.Tool(
        name=tool.__name__,
        description=function["description"],
        input_schema={"type": "object", **function["parameters"]},
        output_schema=schema,
        annotations=_annotations(tool),
    )
    return Offered(tool, described, wraps)


def _annotations(tool: Tool[..., Any]) -> mcp_types.ToolAnnotations:
    risk = risk_of(tool)
    if risk is Risk.READ:
        return mcp_types.ToolAnnotations(read_only_hint=True, idempotent_hint=tool.idempotent)
    return mcp_types.ToolAnnotations(
        read_only_hint=False,
        destructive_hint=risk is Risk.DESTRUCTIVE,
        idempotent_hint=tool.idempotent,
        open_world_hint=risk is not Risk.SOFT_WRITE,
    )


def _output(tool: Tool[..., Any]) -> tuple[dict[str, Any] | None, bool]:
    """The schema of the value, and whether it is put into an object; None for text, and for what has no schema."""
    declared = tool.__signature__.return_annotation
    if declared in (str, Any, None, type(None)):
        return None, False
    try:
        schema: Mapping[str, Any] = json_schema(declared)
    except (EncodingError, ConfigurationError):
        return None, False
    if _is_media(schema):
        return None, False
    if schema.get("type") == "object" and "$ref" not in schema:
        return dict(schema), False
    definitions = {"$defs": schema["$defs"]} if "$defs" in schema else {}
    inner = {name: part for name, part in schema.items() if name != "$defs"}
    return {"type": "object", "properties": {"result": inner}, "required": ["result"], **definitions}, True


def _is_media(schema: Any) -> bool:
    """Whether values of the schema are pictures, sounds or files, which go as content of their own."""
    if isinstance(schema, Mapping):
        properties = schema.get("properties")
        kinds = {"image_url", "input_audio", "file"}
        if isinstance(properties, Mapping) and "type" in properties and kinds & properties.keys():
            return True
        return any(map(_is_media, schema.values()))
    return isinstance(schema, list) and any(map(_is_media, schema))
