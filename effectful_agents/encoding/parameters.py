"""The arguments of a call: the schema of a signature, and values bound to it."""

from __future__ import annotations

import inspect
import json
import typing
from collections.abc import Callable, Mapping
from inspect import Parameter
from typing import Any, NotRequired

from pydantic_core import ErrorDetails, from_json

from effectful_agents.encoding.adapters import Adapter, object_adapter
from effectful_agents.encoding.decoding import Misfit, explain, validate_text
from effectful_agents.encoding.forgiving import unpack
from effectful_agents.encoding.forms import Refused
from effectful_agents.encoding.names import type_name
from effectful_agents.encoding.schema import adapter_schema, json_schema
from effectful_agents.encoding.strict import admits_null
from effectful_agents.encoding.values import encode
from effectful_agents.errors import EncodingError
from effectful_agents.messages.text import safe_text

__all__ = ["Parameters", "PlainParameters", "json_schema_for"]


def json_schema_for(fn: Callable[..., Any]) -> dict[str, Any]:
    """The JSON schema of the parameters of a typed function: an object with a property for each.

    Raises:
        EncodingError: A parameter cannot be described; the message names the function and the parameter.

    >>> def order(dish: str, portions: int = 1) -> None: ...
    >>> json_schema_for(order)["properties"]
    {'dish': {'type': 'string'}, 'portions': {'type': 'integer', 'default': 1}}
    """
    name = getattr(fn, "__name__", type(fn).__name__)
    try:
        signature = inspect.signature(fn)
        hints = {} if hasattr(fn, "__signature__") else typing.get_type_hints(fn, include_extras=True)
    except (NameError, TypeError, ValueError) as error:
        raise EncodingError(f"the parameters of `{name}` cannot be described: {error}") from error
    parameters = [one.replace(annotation=hints.get(key, one.annotation)) for key, one in signature.parameters.items()]
    return Parameters(signature.replace(parameters=parameters), name).schema


class Parameters:
    """How the arguments of one signature travel: as one JSON object.

    `*args` is an array under its name, `**kwargs` are the further properties. Parameters may have any name: they are
    keys of a TypedDict, not fields of a model, where `schema`, `copy` or `_x` would clash.

    Args:
        signature: Its annotations are types, not text.
        owner: The name that errors say.

    Attributes:
        schema: The JSON schema of the object; shared, not to be changed.

    Raises:
        EncodingError: A parameter cannot be described; the message names the owner and the parameter.
    """

    __slots__ = ("_owner", "_signature", "_validate", "schema")

    def __init__(self, signature: inspect.Signature, owner: str) -> None:
        self._signature = signature
        self._owner = owner
        adapter = _arguments_adapter(signature, owner)
        self._validate = adapter.validate_json
        self.schema = adapter_schema("Arguments", adapter)
        self._show_defaults()

    def _show_defaults(self) -> None:
        for name, one in self._signature.parameters.items():
            shown = self.schema["properties"].get(name)
            if shown is None or one.default is Parameter.empty:
                continue
            try:
                default = encode(one.default, _annotation(one))
            except EncodingError:  # a sentinel: the parameter is optional, and that is all there is to say
                continue
            schema = json_schema(_annotation(one))
            if (
                default is not None or not schema or admits_null(schema)
            ):  # or the model would send a null that is refused
                shown["default"] = default

    def decode(self, arguments: Any, context: Any = None, *, strict: bool = False) -> inspect.BoundArguments:
        """Bind what a model sent.

        Args:
            arguments: A JSON object, as text or as a dictionary; JSON inside a JSON string; or nothing at all (None, an
                empty text, `null`), which is an object without properties.
            context: What validators of the types see as `info.context`.
            strict: Whether nothing is forgiven.

        Returns:
            The arguments, with defaults for those that were not sent.

        Raises:
            ValueError: They do not fit; the message lists every parameter that is missing, unknown or wrong.
        """
        try:
            values = validate_text(self._validate, _arguments_text(arguments, self._owner), context, strict=strict)
        except Misfit as error:
            raise _misfit(self._owner, explain(error.details, error.data, self._describe)) from error
        except ValueError as error:
            raise _misfit(self._owner, str(error)) from error
        return _bind(self._signature, values)

    def _describe(self, detail: ErrorDetails) -> str | None:
        match detail["type"], detail["loc"]:
            case "extra_forbidden", (name,):
                return f"`{name}` is not a parameter; {_names(self.schema)}"
            case "missing", (name,):
                return f"`{name}` is missing"
            case "dict_type", ():
                return f"they are not a JSON object; {_names(self.schema)}"
            case _:
                return None


class PlainParameters:
    """Parameters whose schema is written by hand: what a model sends becomes keyword arguments as it is.

    Args:
        schema: The JSON schema of the object.
        signature: What the arguments are bound to.
        owner: The name that errors say.

    Attributes:
        schema: The same schema.
    """

    __slots__ = ("_owner", "_signature", "schema")

    def __init__(self, schema: Mapping[str, Any], signature: inspect.Signature, owner: str) -> None:
        self.schema = dict(schema)
        self._signature = signature
        self._owner = owner

    def decode(self, arguments: Any, context: Any = None) -> inspect.BoundArguments:
        """Bind what a model sent; see `Parameters.decode`."""
        try:
            values = from_json(_arguments_text(arguments, self._owner))
        except ValueError as error:
            raise _misfit(self._owner, f"Invalid JSON: {error}") from error
        if not isinstance(values, dict):
            raise _misfit(self._owner, f"they are not a JSON object; {_names(self.schema)}")
        problems = [f"`{name}` is not a parameter; {_names(self.schema)}" for name in self._unknown(values)]
        problems += [f"`{name}` is missing" for name in self._missing(values)]
        if problems:
            raise _misfit(self._owner, "\n".join(problems))
        return _bind(self._signature, values)

    def _unknown(self, values: dict[str, Any]) -> list[str]:
        parameters = self._signature.parameters
        if any(one.kind is Parameter.VAR_KEYWORD for one in parameters.values()):
            return []
        return [name for name in values if name not in parameters]

    def _missing(self, values: dict[str, Any]) -> list[str]:
        variadic = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
        return [
            name
            for name, one in self._signature.parameters.items()
            if name not in values and one.default is Parameter.empty and one.kind not in variadic
        ]


def _bind(signature: inspect.Signature, values: dict[str, Any]) -> inspect.BoundArguments:
    """Bind values by name, positional-only parameters too; what is not there has its default. `values` is used up."""
    arguments: dict[str, Any] = {}
    for name, one in signature.parameters.items():
        if one.kind is Parameter.VAR_POSITIONAL:
            arguments[name] = tuple(values.pop(name, ()))
        elif one.kind is Parameter.VAR_KEYWORD:
            arguments[name] = values
        else:
            arguments[name] = values.pop(name, one.default)
    return inspect.BoundArguments(signature, arguments)


def _misfit(owner: str, problems: str) -> ValueError:
    return ValueError(f"the arguments of `{owner}` do not fit:\n{problems}")


def _names(schema: dict[str, Any]) -> str:
    names = ", ".join(f"`{name}`" for name in schema.get("properties", ()))
    return f"the parameters are {names}" if names else "it has no parameters"


def _arguments_text(arguments: Any, owner: str) -> str:
    """What a model sent as arguments, as the text of a JSON object where it can be told."""
    if arguments is None:
        return "{}"
    if isinstance(arguments, Mapping):
        try:
            return json.dumps(dict(arguments))
        except (TypeError, ValueError) as error:
            raise ValueError(f"the arguments of `{owner}` are not JSON: {error}") from error
    if not isinstance(arguments, str):
        raise ValueError(f"the arguments of `{owner}` are not a JSON object")
    text = safe_text(arguments.strip())
    if text.startswith('"'):
        text = (unpack(text) or text).strip() if text != '""' else ""
    return "{}" if text in ("", "null") else text


def _annotation(parameter: Parameter) -> Any:
    return Any if parameter.annotation is Parameter.empty else parameter.annotation


def _written(signature: inspect.Signature, owner: str) -> str:
    """A signature as it is written, without defaults: `plan(steps: list[Step])`."""
    stars = {Parameter.VAR_POSITIONAL: "*", Parameter.VAR_KEYWORD: "**"}
    written = [
        f"{stars.get(one.kind, '')}{name}: {type_name(_annotation(one))}" for name, one in signature.parameters.items()
    ]
    return f"{owner}({', '.join(written)})"


def _arguments_adapter(signature: inspect.Signature, owner: str) -> Adapter:
    fields: dict[str, Any] = {}
    further: dict[str, Any] = {}
    for name, one in signature.parameters.items():
        tp: Any = _annotation(one)
        try:
            json_schema(tp)
        except Refused as error:
            raise Refused(_written(signature, owner), f".{name}{error.path}", error.reason) from error
        except EncodingError as error:
            raise EncodingError(f"the parameter `{name}` of `{owner}` cannot be described: {error}") from error
        if one.kind is Parameter.VAR_KEYWORD:
            further = {"extra_items": tp}
        elif one.kind is Parameter.VAR_POSITIONAL:
            fields[name] = NotRequired[list.__class_getitem__(tp)]
        else:
            fields[name] = tp if one.default is Parameter.empty else NotRequired[tp]
    return object_adapter("Arguments", fields, **further)
