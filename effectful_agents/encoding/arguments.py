"""What a model sends as arguments, bound to a signature; and parameters whose schema is written by hand."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from inspect import Parameter
from typing import Any

from pydantic_core import from_json

from effectful_agents.encoding.decoding import cut_name, cut_text, refuse_double_keys
from effectful_agents.encoding.forgiving import unpack, well_formed
from effectful_agents.encoding.handwritten import held_to
from effectful_agents.encoding.strict import StrictForm
from effectful_agents.messages.text import safe_text

__all__ = ["PlainParameters", "arguments_text", "bind", "misfit", "names_of"]


class PlainParameters:
    """Parameters whose schema is written by hand: what a model sends is held to it, and handed on as it is.

    Args:
        schema: The JSON schema of the object.
        signature: What the arguments are bound to.
        owner: The name that errors say.
        doc: The docstring.

    Attributes:
        schema: The same schema.
        text: The docstring.

    Raises:
        EncodingError: The schema is none.
    """

    __slots__ = ("_check", "_owner", "_signature", "schema", "text")

    def __init__(self, schema: Mapping[str, Any], signature: inspect.Signature, owner: str, doc: str = "") -> None:
        self.schema = dict(schema)
        self.text = doc
        self._signature = signature
        self._owner = owner
        self._check = held_to(self.schema, f"the `parameters` of the tool `{owner}`")

    def check_executor(self) -> None:
        """What a model sends arrives as it is: nothing of it is run."""

    @property
    def strict(self) -> StrictForm:
        """The schema as it is: whoever wrote it decides about its form."""
        return StrictForm(self.schema, "it is written by hand")

    def decode(self, arguments: Any, context: Any = None, *, strict: bool = False) -> inspect.BoundArguments:
        """Bind what a model sent; see `Parameters.decode`. Values are not read loosely."""
        text = well_formed(arguments_text(arguments, self._owner, strict=strict))
        inside = None if strict else unpack(text)
        text = text if inside is None else inside
        try:
            values = from_json(text)
        except ValueError as error:
            raise misfit(self._owner, f"Invalid JSON: {error}") from error
        if not isinstance(values, dict):
            raise misfit(self._owner, f"they are not a JSON object; {names_of(self.schema)}")
        try:
            refuse_double_keys(text)
        except ValueError as error:
            raise misfit(self._owner, str(error)) from error
        if problems := self._problems(values):
            raise misfit(self._owner, "\n".join(problems))
        return bind(self._signature, values)

    def _problems(self, values: dict[str, Any]) -> list[str]:
        problems = [f"`{cut_name(name)}` is not a parameter; {names_of(self.schema)}" for name in self._unknown(values)]
        problems += [f"`{name}` is missing" for name in self._missing(values)]
        return problems or self._check(values)

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


def bind(signature: inspect.Signature, values: dict[str, Any]) -> inspect.BoundArguments:
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


def misfit(owner: str, problems: str) -> ValueError:
    """The error for arguments that do not fit."""
    return ValueError(f"the arguments of `{owner}` do not fit:\n{cut_text(problems)}")


def names_of(schema: dict[str, Any]) -> str:
    """The parameters of a schema, in a sentence."""
    names = ", ".join(f"`{name}`" for name in schema.get("properties", ()))
    return f"the parameters are {names}" if names else "it has no parameters"


def arguments_text(arguments: Any, owner: str, *, strict: bool = False) -> str:
    """What a model sent as arguments, as the text of a JSON object where it can be told.

    Raises:
        ValueError: It is nothing that could be one.
    """
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
    if text.startswith('"') and not strict:
        text = (unpack(text) or text).strip() if text != '""' else ""
    return "{}" if text in ("", "null") else text
