"""What restricted code hands to a tool: held to the types of the parameters, as what a model writes in a reply is."""

from __future__ import annotations

import collections.abc
import inspect
import typing
from types import BuiltinFunctionType, FunctionType, MethodType, UnionType
from typing import Any

from effectful_agents.encoding import decode, dumps, encode, json_schema
from effectful_agents.encoding.names import plain_type
from effectful_agents.errors import AgentsError
from effectful_agents.handlers.execution.kinds import is_own
from effectful_agents.operations.code import copied
from effectful_agents.runtime import Operation
from effectful_agents.types import Tool

__all__ = ["handed_over"]


def handed_over(tool: Tool[..., Any], bound: inspect.BoundArguments) -> inspect.BoundArguments:
    """The arguments as values of the declared types, made anew: none of them is of a class of the code.

    A function where one is asked for, and a value of a type that has no form in JSON, such as a table, is handed over
    as it is. That a value of another kind can be called as well does not make it a function.

    Raises:
        TypeError: One does not fit its parameter.
    """
    parameters = bound.signature.parameters
    made: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        one = parameters[name]
        if tool.parameters is not None:
            made[name] = _plain(value, Any, name)
        elif one.kind is inspect.Parameter.VAR_POSITIONAL:
            made[name] = tuple(_plain(each, one.annotation, name) for each in value)
        elif one.kind is inspect.Parameter.VAR_KEYWORD:
            made[name] = {key: _plain(each, one.annotation, key) for key, each in value.items()}
        else:
            made[name] = value if value is one.default else _plain(value, one.annotation, name)
    return inspect.BoundArguments(bound.signature, made)


def _plain(value: Any, tp: Any, name: str) -> Any:
    if isinstance(value, _FUNCTIONS) and _takes_functions(tp):
        return value
    exact = copied(value)
    if tp is Any or tp is object or tp is inspect.Parameter.empty:
        return exact
    if callable(exact) and _takes_functions(tp):
        return _as_function(exact)
    try:
        json_schema(tp)
    except AgentsError:  # only code can give such a value
        return exact
    try:
        return decode(dumps(encode(exact, tp)), tp, strict=True)
    except AgentsError as error:
        if type(exact) is tp:  # a picture, say: it has a form to be shown, and none to be read
            return exact
        raise TypeError(f"the argument `{name}` does not fit: {error}") from None


_FUNCTIONS = (FunctionType, MethodType, BuiltinFunctionType, Operation, type)


def _takes_functions(tp: Any) -> bool:
    """Whether a type has functions, tools or classes among its values."""
    plain = plain_type(tp)
    origin = typing.get_origin(plain) or plain
    if origin in (Any, object, inspect.Parameter.empty, collections.abc.Callable, type):
        return True
    if isinstance(origin, type) and issubclass(origin, _FUNCTIONS):
        return True
    return origin in (typing.Union, UnionType) and any(map(_takes_functions, typing.get_args(plain)))


def _as_function(value: Any) -> Any:
    """A function in the place of an object of the code that can be called: such a one says of itself what it likes."""
    return (lambda *args, **kwargs: value(*args, **kwargs)) if is_own(type(value)) else value
