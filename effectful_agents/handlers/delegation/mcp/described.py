"""What a server says of its tools, as tools of the program. None of it is believed more than it has to be."""

from __future__ import annotations

import hashlib
import inspect
import keyword
import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from effectful_agents.encoding import tool_codec
from effectful_agents.errors import AgentsError
from effectful_agents.handlers.delegation.mcp.schemas import tamed
from effectful_agents.messages.text import printable_lines, printable_text
from effectful_agents.types import Risk, Tool

__all__ = ["Call", "made_tool", "mcp_risk", "names_for"]

_log = logging.getLogger(__name__)

_LONGEST_NAME = 64
_DIGEST = 6
# Characters.
_LONGEST_DESCRIPTION = 8_000
_TYPES: Mapping[str, Any] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "array": list,
    "object": dict,
}

type Call = Callable[[str, dict[str, Any]], Any]
"""Calls a tool of the server by its own name there."""


def mcp_risk(annotations: Any) -> Risk:
    """What a tool of an MCP server can do to the world, by its annotations.

    Where they are silent the specification takes the worst, and so does this: a tool without annotations is
    destructive. They are hints of whoever wrote the server; for one that is not trusted give `MCPTools` a `risk` of
    your own.

    Args:
        annotations: `ToolAnnotations`, or None.

    >>> mcp_risk(None)
    <Risk.DESTRUCTIVE: 3>
    """
    if annotations is None:
        return Risk.DESTRUCTIVE
    if annotations.read_only_hint is True:
        return Risk.READ
    if annotations.destructive_hint is not False:
        return Risk.DESTRUCTIVE
    # It only adds something: to what is the server's own, or to the world, where nobody takes it back.
    return Risk.SOFT_WRITE if annotations.open_world_hint is False else Risk.HARD_WRITE


def names_for(names: Iterable[str], prefix: str) -> dict[str, str]:
    """The names by which a model knows tools, by those that the server gives them: short, unique, and identifiers.

    >>> names_for(["read-file", "read.file", "list"], "fs")
    {'read-file': 'fs_read_file_a00b4b', 'read.file': 'fs_read_file_dd32cd', 'list': 'fs_list'}
    """
    plain = {name: _plain(f"{prefix}_{name}" if prefix else name) for name in names}
    counted = Counter(one[: _LONGEST_NAME - _DIGEST - 1] for one in plain.values())
    made: dict[str, str] = {}
    for name, one in plain.items():
        # By itself, and not by its place in the list: that may be another one the next time.
        if len(one) > _LONGEST_NAME or counted[one[: _LONGEST_NAME - _DIGEST - 1]] > 1:
            digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]
            one = f"{one[: _LONGEST_NAME - _DIGEST - 1]}_{digest}"
        if one not in made.values():
            made[name] = one
    return made


def _plain(name: str) -> str:
    plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return plain if plain and plain[0].isalpha() and not keyword.iskeyword(plain) else f"mcp_{plain}"


def made_tool(described: Any, name: str, call: Call, risk: Callable[[Any], Risk], peer: str) -> Tool[..., Any] | None:
    """A tool of the program for one of a server; None, and a line in the log, for one that cannot be offered.

    Args:
        described: A `Tool` of the SDK.
        name: The name by which it is offered.
        call: Calls it.
        risk: Makes a risk of its annotations.
        peer: The server.
    """
    own, annotations = described.name, described.annotations

    def function(**arguments: Any) -> Any:
        return call(own, _given(arguments, schema))

    reads = annotations is not None and annotations.read_only_hint is True
    repeats = reads or (annotations is not None and annotations.idempotent_hint is True)
    try:
        schema = tamed(described.input_schema)
        function.__signature__ = _signature(schema)  # ty: ignore[missing-attribute]
        function.__annotations__ = {"return": Any}
        tool = Tool.define(
            function,
            name=name,
            description=_description(described),
            parameters=schema,
            risk=risk(annotations),
            effect="idempotent" if repeats else "once",
            concurrent=reads,
        )
        tool_codec(tool)  # a schema that is none shows here
    except (AgentsError, ValueError, RecursionError) as error:
        _log.warning("`%s` has a tool `%s` that is not offered: %s", peer, printable_text(own[:80]), _short(error))
        return None
    return tool


def _description(described: Any) -> str:
    text = described.description or described.title or f"The tool {described.name}, of which nothing is said."
    text = printable_lines(text.strip())
    return text if len(text) <= _LONGEST_DESCRIPTION else text[:_LONGEST_DESCRIPTION] + "…"


def _short(error: Exception) -> str:
    return printable_text(" ".join(str(error).split())[:300])


def _signature(schema: Mapping[str, Any]) -> inspect.Signature:
    """The parameters as Python has them, for code that calls the tool; as keywords of any name where they cannot be."""
    properties = schema.get("properties", {})
    required = schema.get("required", [])
    names = list(properties) if isinstance(properties, dict) else []
    kind = inspect.Parameter
    if not all(name.isidentifier() and not keyword.iskeyword(name) for name in names):
        return inspect.Signature([kind("arguments", kind.VAR_KEYWORD, annotation=Any)], return_annotation=Any)
    parameters = [
        kind(
            name,
            kind.KEYWORD_ONLY,
            default=kind.empty if name in required else None,
            annotation=_annotation(properties[name], optional=name not in required),
        )
        for name in names
    ]
    if schema.get("additionalProperties", True) is not False:
        rest = "further" if "further" not in names else "further_"
        parameters.append(kind(rest, kind.VAR_KEYWORD, annotation=Any))
    return inspect.Signature(parameters, return_annotation=Any)


def _annotation(schema: Any, *, optional: bool) -> Any:
    declared = schema.get("type") if isinstance(schema, dict) else None
    found = _TYPES.get(declared) if isinstance(declared, str) else None
    if found is None:
        return Any
    return found | None if optional else found


def _given(arguments: dict[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments without those that were left out: None stands for these, unless the schema admits null."""
    properties, required = schema.get("properties", {}), schema.get("required", [])
    return {
        name: value
        for name, value in arguments.items()
        if value is not None or name in required or _admits_null(properties.get(name))
    }


def _admits_null(schema: Any) -> bool:
    if not isinstance(schema, dict):
        return False
    declared = schema.get("type")
    kinds = declared if isinstance(declared, list) else [declared]
    return "null" in kinds or any(map(_admits_null, [*schema.get("anyOf", []), *schema.get("oneOf", [])]))
