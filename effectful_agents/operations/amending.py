"""Arguments that a policy or a person has changed: whether the tool can be called with them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Collection, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, get_args, get_origin

import pydantic

from effectful_agents.runtime import Operation
from effectful_agents.types.local_types import write_types

if TYPE_CHECKING:
    from effectful_agents.operations.policy import ProposedEffect

__all__ = ["check_amended", "declare_arguments", "fits"]


def check_amended(effect: ProposedEffect, changed: Mapping[str, Any], who: str) -> None:
    """Hold amended arguments to the names and types of the parameters. Values are of these types, and not their JSON.

    Args:
        effect: The call.
        changed: The arguments that were changed.
        who: Who changed them, in the error.

    Raises:
        ValueError: One is none of the call, or not of its type.

    >>> from effectful_agents.operations.policy import ProposedEffect
    >>> from effectful_agents.types import Tool
    >>> @Tool.define
    ... def pay(amount: float) -> None:
    ...     '''Pay.'''
    >>> effect = ProposedEffect(kind="tool_call", name="pay", arguments={"amount": 1.0}, tool=pay)
    >>> check_amended(effect, {"amount": 2}, "Ann")
    >>> check_amended(effect, {"amount": "much"}, "Ann")
    Traceback (most recent call last):
    ValueError: Ann amended the argument `amount` of `pay`: Input should be a valid number; it is a value of `str`.
    """
    for name, value in changed.items():
        if name not in effect.arguments:
            known = ", ".join(f"`{one}`" for one in effect.arguments) or "none"
            raise ValueError(
                f"{who} amended the argument `{name}`, which `{effect.name}` does not have; it has {known}."
            )
        before = effect.arguments[name]
        if value is before:
            continue
        problem = _problem(effect, name, value)
        # Code of the program may call with what no type allows, and who amends that makes it no worse.
        if problem and not (type(value) is type(before) and _problem(effect, name, before)):
            kind = type(value).__name__
            raise ValueError(
                f"{who} amended the argument `{name}` of `{effect.name}`: {problem}; it is a value of `{kind}`."
            )


def declare_arguments(kind: str, operation: Operation[..., Any]) -> None:
    """Say which types the arguments of an effect have that is no call of a tool, but of an operation of this package.

    Args:
        kind: The kind of the effect; its name is that of the operation.
        operation: The operation.
    """
    declared = inspect.signature(operation, eval_str=True)
    parameters = [one.replace(annotation=_with_members(one.annotation)) for one in declared.parameters.values()]
    _declared[kind, operation.__name__] = declared.replace(parameters=parameters)


def _with_members(tp: Any) -> Any:
    """A type for which the members of a collection are held to theirs: pydantic does not look into a `Collection`."""
    (member,) = get_args(tp) if get_origin(tp) is Collection else (None,)
    return tp if member is None else Sequence[member] | Set[member]


_declared: dict[tuple[str, str], inspect.Signature] = {}


def _problem(effect: ProposedEffect, name: str, value: Any) -> str | None:
    tool = effect.tool
    if tool is not None and tool.parameters is not None:
        return _misfit(tool.parameters, name, value)
    declared = _declared.get((effect.kind, effect.name)) if tool is None else tool.__signature__
    if declared is None:
        return None
    parameters = declared.parameters
    parameter = parameters.get(name)
    if parameter is None:  # one of `**kwargs`, which stand beside the others
        parameter = next((one for one in parameters.values() if one.kind is one.VAR_KEYWORD), None)
    elif parameter.kind is parameter.VAR_KEYWORD:
        return None
    if parameter is None or parameter.annotation is inspect.Parameter.empty:
        return None
    annotation = parameter.annotation
    return _unlike(value, tuple[annotation, ...] if parameter.kind is parameter.VAR_POSITIONAL else annotation)


def fits(value: Any, tp: Any) -> bool:
    """Whether a value is one of a type, and not its JSON; so is any of a type that nobody can say that of.

    >>> from typing import Literal
    >>> fits(["a"], list[Literal["a"]]), fits(["b"], list[Literal["a"]])
    (True, False)
    """
    return _unlike(value, tp) is None


def _unlike(value: Any, tp: Any) -> str | None:
    """What keeps a value from being one of a type."""
    adapter = _adapter(tp)
    if adapter is None:
        return None
    try:
        adapter.validate_python(value, strict=True)
    except pydantic.ValidationError as error:
        return error.errors(include_url=False, include_input=False, include_context=False)[0]["msg"]
    return None


def _adapter(tp: Any) -> pydantic.TypeAdapter[Any] | None:
    """What holds values to a type; None for a type that nobody can say that of."""
    try:
        return _adapter_of(tp)
    except TypeError:  # it cannot be hashed
        return _adapter_of.__wrapped__(tp)


@functools.lru_cache(maxsize=256)
def _adapter_of(tp: Any) -> pydantic.TypeAdapter[Any] | None:
    for config in (pydantic.ConfigDict(arbitrary_types_allowed=True), None):
        try:
            write_types(tp)
            return pydantic.TypeAdapter(tp, config=config)
        except Exception:  # models have a config of their own; other types have no schema, or one that raises
            continue
    return None


def _misfit(schema: Mapping[str, Any], name: str, value: Any) -> str | None:
    """What keeps a value from fitting a schema that was written by hand."""
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - slow to load, and rarely needed

    part = schema.get("properties", {}).get(name)
    if part is None:
        return None
    whole = {"type": "object", "properties": {name: part}, **{key: schema[key] for key in ("$defs",) if key in schema}}
    error = next(iter(Draft202012Validator(whole).iter_errors({name: value})), None)
    return None if error is None else error.message
