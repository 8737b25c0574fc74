"""Tools on the wire: their definitions, the arguments of a call, and its result."""

from __future__ import annotations

import inspect
import weakref
from typing import Any

from effectful_agents.encoding.arguments import PlainParameters
from effectful_agents.encoding.blocks import as_parts, holds_media, to_content_blocks
from effectful_agents.encoding.parameters import Parameters
from effectful_agents.encoding.schema import json_schema
from effectful_agents.encoding.values import encode, text_of, written_down
from effectful_agents.errors import EncodingError
from effectful_agents.messages import ContentPart, ToolDefinition
from effectful_agents.messages.text import safe_text
from effectful_agents.types import Tool

__all__ = ["ToolCodec", "encode_result", "tool_codec"]

type _Codecs = dict[int, tuple[weakref.ref[Any], ToolCodec]]

# By the identity of the function's operation, which they do not keep alive. A method that is bound to an instance has
# one parameter less than the same method of its class, hence two tables.
_of_functions: _Codecs = {}
_of_methods: _Codecs = {}


def tool_codec(tool: Tool[..., Any]) -> ToolCodec:
    """The codec of a tool, made at its first use and shared by all instances that the tool is a method of.

    Raises:
        EncodingError: A parameter cannot be described; the message names the tool and the parameter.
    """
    function = getattr(tool, "__func__", None)
    if function is None:
        function, codecs = tool, _of_functions
    else:
        codecs = _of_methods
    entry = codecs.get(id(function))
    if entry is not None and entry[0]() is function:
        return entry[1]
    return _make(tool, function, codecs)


def _make(tool: Tool[..., Any], function: Any, codecs: _Codecs) -> ToolCodec:
    key, codec = id(function), ToolCodec(tool)
    codecs[key] = (weakref.ref(function, lambda _: codecs.pop(key, None)), codec)
    return codec


class ToolCodec:
    """How one tool crosses the wire.

    It knows the tool's name, description and signature, and holds neither the tool nor an instance.
    """

    __slots__ = ("_definitions", "_description", "_name", "_parameters", "_result_type")

    def __init__(self, tool: Tool[..., Any]) -> None:
        self._name: str = tool.__name__
        signature = tool.__signature__
        self._result_type = _declared_result(signature)
        if tool.external:
            _check_described(self._result_type, self._name)
        self._definitions: dict[tuple[str, bool], ToolDefinition] = {}
        self._parameters: Parameters | PlainParameters = (
            Parameters(signature, self._name, tool.description)
            if tool.parameters is None
            else PlainParameters(tool.parameters, signature, self._name, tool.description)
        )
        self._description = safe_text(self._parameters.text)

    def definition(self, name: str | None = None, *, strict: bool = False) -> ToolDefinition:
        """The tool as a model is shown it; for one name always the same dictionary, which is not to be changed.

        Args:
            name: The name that the model calls it by, the tool's own by default.
            strict: Whether the provider is to hold the model to the schema, which then is in strict form: every
                parameter is required, and null stands for a default. A tool without a strict form is shown as it is.

        Raises:
            EncodingError: A parameter is code, and nothing here runs it.
        """
        self._parameters.check_executor()
        key = (self._name if name is None else name, strict)
        definition = self._definitions.get(key)
        return self._definitions.setdefault(key, self._defined(*key)) if definition is None else definition

    def _defined(self, name: str, strict: bool) -> ToolDefinition:
        definition: ToolDefinition = {
            "type": "function",
            "function": {"name": name, "description": self._description, "parameters": self._parameters.schema},
        }
        form = self._parameters.strict if strict else None
        if form is not None and form.reason is None:
            definition["function"] |= {"parameters": form.schema, "strict": True}
        return definition

    def decode(self, arguments: Any, *, context: Any = None, strict: bool = False) -> inspect.BoundArguments:
        """The arguments of a call, from whatever a model sent.

        A tool whose schema is written by hand gets the properties of the JSON object as they are, once they fit it.

        Args:
            arguments: A JSON object as text or as a dictionary; JSON inside a JSON string; None, an empty text and
                `null` for no arguments.
            context: What validators of the types see as `info.context`.
            strict: Whether nothing is forgiven.

        Raises:
            ValueError: The arguments do not fit; the message lists all that is wrong, and is short enough for a model.
        """
        return self._parameters.decode(arguments, context, strict=strict)

    def encode_result(self, value: Any) -> str | list[ContentPart]:
        """What a model is told of a result; see `encode_result`."""
        return _told_result(value, self._result_type, self._name)


def encode_result(tool: Tool[..., Any], value: Any) -> str | list[ContentPart]:
    """What a model is told of a result of a tool, whether or not the parameters of the tool have a form.

    Text is bare, and so is what is written as text (a date, a UUID, a member of an enum of texts). None is `null`: some
    providers refuse an empty result, and for a tool that may find nothing it is the JSON of its answer. Anything else
    is compact JSON, by the type that the tool declares, or by that of the value where it is not what was declared.
    Values in the shape of content parts become blocks.

    Raises:
        EncodingError: The result has no form on the wire; the message names the tool and the type.
    """
    return _told_result(value, _declared_result(tool.__signature__), tool.__name__)


def _check_described(result_type: Any, name: str) -> None:
    """Refuse a result of which nobody outside could be told what it is to be."""
    try:
        json_schema(result_type)
    except EncodingError as error:
        raise EncodingError(f"the result of the external tool `{name}` cannot be described: {error}") from error


def _declared_result(signature: inspect.Signature) -> Any:
    declared = signature.return_annotation
    return Any if declared is inspect.Signature.empty else declared


def _told_result(value: Any, result_type: Any, name: str) -> str | list[ContentPart]:
    if isinstance(value, str):
        return safe_text(str.__str__(value))
    try:
        encoded = _encoded(value, result_type)
        with written_down(value):
            return _told(encoded)
    except EncodingError as error:
        raise EncodingError(f"the result of the tool `{name}` cannot be written: {error}") from error


def _encoded(value: Any, result_type: Any) -> Any:
    try:
        return encode(value, result_type)
    except EncodingError:
        # Not what the tool declares, or a type that only its values can tell about.
        return encode(value)


def _told(encoded: Any) -> str | list[ContentPart]:
    """What a model is told of an encoded value."""
    parts = as_parts(encoded)
    if parts is not None:
        return parts
    if isinstance(encoded, str):
        return encoded
    return to_content_blocks(encoded) if holds_media(encoded) else text_of(encoded)
