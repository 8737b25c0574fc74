"""The arguments of a call: the schema of a signature, and values bound to it."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from inspect import Parameter
from typing import Any, Unpack

import pydantic
from pydantic_core import ErrorDetails

from effectful_agents.encoding.adapters import Adapter, object_adapter
from effectful_agents.encoding.arguments import arguments_text, bind, misfit, names_of
from effectful_agents.encoding.decoding import Misfit, cut_name, explain, validate_text
from effectful_agents.encoding.docstrings import described
from effectful_agents.encoding.fields import type_hints
from effectful_agents.encoding.forms import Refused
from effectful_agents.encoding.functions import runs_code
from effectful_agents.encoding.names import type_name
from effectful_agents.encoding.schema import adapter_schema, json_schema
from effectful_agents.encoding.strict import StrictForm, admits_null, strict_form
from effectful_agents.encoding.values import encode
from effectful_agents.errors import EncodingError
from effectful_agents.types.local_types import hints_of, keep_names

__all__ = ["Parameters", "json_schema_for"]


def json_schema_for(fn: Callable[..., Any], *, localns: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The JSON schema of the parameters of a typed function: an object with a property for each.

    Args:
        fn: The function. Descriptions of its parameters are taken from its docstring.
        localns: Names that its annotations use and that are not those of its module.

    Raises:
        EncodingError: A parameter cannot be described; the message has the path of the part at fault.

    >>> def order(dish: str, portions: int = 1) -> None: ...
    >>> json_schema_for(order)["properties"]
    {'dish': {'type': 'string'}, 'portions': {'type': 'integer', 'default': 1}}
    """
    name = getattr(fn, "__name__", type(fn).__name__)
    names = None if localns is None else dict(localns)
    try:
        signature = inspect.signature(fn)
        hints = {} if hasattr(fn, "__signature__") else hints_of(fn, names)
    except Exception as error:  # an annotation that is a text may be any expression
        raise EncodingError(f"the parameters of `{name}` cannot be described: {error}") from error
    if names is not None:
        keep_names(names, getattr(fn, "__globals__", {}))
    parameters = [one.replace(annotation=hints.get(key, one.annotation)) for key, one in signature.parameters.items()]
    return Parameters(signature.replace(parameters=parameters), name, inspect.getdoc(fn) or "").schema


class Parameters:
    """How the arguments of one signature travel: as one JSON object.

    `*args` is an array under its name, `**kwargs` are the further properties, or those that their `Unpack` names.
    Parameters may have any name: they are keys of a TypedDict, not fields of a model, where `schema`, `copy` or `_x`
    would clash.

    Args:
        signature: Its annotations are types, not text.
        owner: The name that errors say.
        doc: A docstring with descriptions of parameters.

    Attributes:
        schema: The JSON schema of the object; shared, not to be changed.
        text: What is left of the docstring.

    Raises:
        EncodingError: A parameter cannot be described; the message has the path of the part at fault.
    """

    __slots__ = ("_adapter", "_owner", "_signature", "_validate", "schema", "text")

    def __init__(self, signature: inspect.Signature, owner: str, doc: str = "") -> None:
        self._signature = signature
        self._owner = owner
        self._adapter = adapter = _arguments_adapter(signature, owner)
        self._validate = adapter.validate_json
        self.schema = adapter_schema("Arguments", adapter)
        about = described(doc, [*signature.parameters, *self.schema["properties"]])
        self.text = about.text if about.names else doc
        self._show_descriptions(about.names)
        self._show_defaults()

    def check_executor(self) -> None:
        """Refuse parameters of which one is code, where nothing runs it.

        Raises:
            EncodingError: There is such a parameter.
        """
        if self._adapter.code and not runs_code():
            _arguments_adapter(self._signature, self._owner)  # says which one

    @property
    def strict(self) -> StrictForm:
        """The schema in strict form, in which null stands for a default."""
        return strict_form(self.schema)

    def _show_descriptions(self, texts: Mapping[str, str]) -> None:
        for name, text in texts.items():
            shown = self.schema["properties"].get(name)
            if shown is None:  # `**kwargs` are no property
                continue
            annotation = _annotation(self._signature.parameters[name]) if name in self._signature.parameters else Any
            given = shown.get("description")
            if not given or typing.get_origin(annotation) is not typing.Annotated:
                self._show(name, description=f"{text} {given}" if given else text)

    def _show_defaults(self) -> None:
        for name, one in self._signature.parameters.items():
            if name not in self.schema["properties"] or one.default is Parameter.empty:
                continue
            if isinstance(one.default, _SECRETS):  # its stars would be taken for a value
                continue
            try:
                default = encode(one.default, _annotation(one))
            except EncodingError:  # a sentinel: the parameter is optional, and that is all there is to say
                continue
            schema = json_schema(_annotation(one))
            if default is not None or not schema or admits_null(schema):  # or the schema would contradict it
                self._show(name, default=default)

    def _show(self, name: str, **keywords: Any) -> None:
        shown = self.schema["properties"][name]
        if "$ref" in shown:  # providers refuse what stands beside a reference
            shown = {"anyOf": [shown]}
        kind = {"type": shown["type"]} if "type" in shown else {}
        first = {"description": keywords["description"]} if "description" in keywords else {}
        self.schema["properties"][name] = {**kind, **first, **shown, **keywords}

    def decode(self, arguments: Any, context: Any = None, *, strict: bool = False) -> inspect.BoundArguments:
        """Bind what a model sent.

        Args:
            arguments: A JSON object, as text or as a dictionary; JSON inside a JSON string; or nothing at all (None, an
                empty text, `null`), which is an object without properties.
            context: What validators of the types see as `info.context`.
            strict: Whether loose values are refused, and packaging around the object.

        Returns:
            The arguments, with defaults for those that were not sent.

        Raises:
            ValueError: They do not fit; the message lists every parameter that is missing, unknown or wrong.
        """
        text = arguments_text(arguments, self._owner, strict=strict)
        try:
            values = validate_text(self._validate, text, context, strict=strict)
        except Misfit as error:
            raise misfit(self._owner, explain(error.details, error.data, self._describe)) from error
        except ValueError as error:
            raise misfit(self._owner, str(error)) from error
        return bind(self._signature, values)

    def _describe(self, detail: ErrorDetails) -> str | None:
        match detail["type"], detail["loc"]:
            case "extra_forbidden", (name,):
                return f"`{cut_name(str(name))}` is not a parameter; {names_of(self.schema)}"
            case "missing", (name,):
                return f"`{name}` is missing"
            case "dict_type", ():
                return f"they are not a JSON object; {names_of(self.schema)}"
            case _:
                return None


_SECRETS = (pydantic.SecretStr, pydantic.SecretBytes, pydantic.Secret)


def _annotation(parameter: Parameter) -> Any:
    return Any if parameter.annotation is Parameter.empty else parameter.annotation


def _arguments_adapter(signature: inspect.Signature, owner: str) -> Adapter:
    fields: dict[str, Any] = {}
    optional: set[str] = set()
    further: dict[str, Any] = {}
    for name, one in signature.parameters.items():
        tp: Any = _annotation(one)
        unpacked = typing.get_args(tp)[0] if typing.get_origin(tp) is Unpack else None
        try:
            json_schema(tp if unpacked is None else unpacked)
        except Refused as error:
            raise Refused(_written(signature, owner), f".{name}{error.path}", error.reason) from error
        except EncodingError as error:
            raise EncodingError(f"the parameter `{name}` of `{owner}` cannot be described: {error}") from error
        if unpacked is not None:
            keys, left_out = _keys(unpacked)
            fields |= keys
            optional |= left_out
        elif one.kind is Parameter.VAR_KEYWORD:
            further = {"extra_items": tp}
        elif one.kind is Parameter.VAR_POSITIONAL:
            fields[name] = list.__class_getitem__(tp)
            optional.add(name)
        else:
            fields[name] = tp
            optional |= set() if one.default is Parameter.empty else {name}
    return object_adapter("Arguments", fields, optional=optional, **further)


def _keys(kind: Any) -> tuple[dict[str, Any], frozenset[str]]:
    """The keys of a typed dictionary that `**kwargs` are unpacked from, and those that may be left out."""
    return type_hints(kind), kind.__optional_keys__


def _written(signature: inspect.Signature, owner: str) -> str:
    """A signature as it is written, without defaults: `plan(steps: list[Step])`."""
    stars = {Parameter.VAR_POSITIONAL: "*", Parameter.VAR_KEYWORD: "**"}
    written = [
        f"{stars.get(one.kind, '')}{name}: {type_name(_annotation(one))}" for name, one in signature.parameters.items()
    ]
    return f"{owner}({', '.join(written)})"
