"""What is about to happen, as an effect that is decided about: a call of a tool or skill, a request to a model."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from effectful_agents.messages import Request
from effectful_agents.operations.code import risk_of_code
from effectful_agents.operations.policy import EffectKind, ProposedEffect, callers
from effectful_agents.types import Agent, Risk, Skill, Tool
from effectful_agents.types.walk import tools_in_scope

__all__ = ["arguments_by_name", "bound_to", "effect_of_call", "effect_of_code", "effect_of_request", "risk_of"]


def effect_of_call(
    tool: Tool, bound: inspect.BoundArguments, *, offered_as: str = "", by_code: bool = False
) -> ProposedEffect:
    """What a call of a tool is, to be decided about."""
    return ProposedEffect(
        kind=EffectKind.DELEGATE if tool.delegates else EffectKind.TOOL_CALL,
        name=tool.own_name,
        arguments=arguments_by_name(bound),
        tool=tool,
        receiver=_whose(tool, offered_as),
        risk=risk_of(tool),
        callers=callers(),
        by_code=by_code,
    )


def _whose(tool: Tool, offered_as: str) -> str:
    receiver = tool.receiver
    if receiver is None:
        return ""
    cls = receiver if isinstance(receiver, type) else type(receiver)
    known = getattr(receiver, "__agent_id__", "") if isinstance(receiver, Agent) else ""
    name = known or offered_as.removesuffix(tool.own_name).removesuffix("__")
    return f"{cls.__name__} {name}" if isinstance(name, str) and name else cls.__name__


def arguments_by_name(bound: inspect.BoundArguments) -> dict[str, Any]:
    """Arguments by the names that the caller used: those of `**kwargs` beside the others."""
    whole = inspect.BoundArguments(bound.signature, dict(bound.arguments))
    whole.apply_defaults()
    arguments = dict(whole.arguments)
    variadic = _keywords(bound.signature)
    if variadic is not None and not arguments.keys() & arguments[variadic].keys():
        arguments |= arguments.pop(variadic)
    return arguments


def bound_to(signature: inspect.Signature, arguments: Mapping[str, Any]) -> inspect.BoundArguments:
    """Arguments as `ProposedEffect` has them, bound to the parameters again."""
    variadic = _keywords(signature)
    if variadic is None or variadic in arguments:
        return inspect.BoundArguments(signature, dict(arguments))
    own = {name: arguments[name] for name in signature.parameters if name in arguments}
    others = {name: value for name, value in arguments.items() if name not in own}
    return inspect.BoundArguments(signature, {**own, variadic: others})


def _keywords(signature: inspect.Signature) -> str | None:
    """The name of the parameter that takes all other keywords, if there is one."""
    kind = inspect.Parameter.VAR_KEYWORD
    return next((name for name, one in signature.parameters.items() if one.kind is kind), None)


def effect_of_request(request: Request, model: str = "") -> ProposedEffect:
    """What a request to a model is, to be decided about.

    Args:
        request: The request.
        model: The model that is asked where the request names none.
    """
    name = request.get("model") or model
    return ProposedEffect(kind=EffectKind.MODEL_CALL, name=name, request=request, callers=callers())


def effect_of_code() -> ProposedEffect:
    """What it is to run code of a model: it counts as a tool call without a tool, called `code`."""
    return ProposedEffect(kind=EffectKind.TOOL_CALL, name="code", risk=risk_of_code(), callers=callers(), by_code=True)


def risk_of(tool: Tool) -> Risk:
    """What a tool can do to the world; of a skill, the highest of what it declares and of all that it could call.

    That of a delegate is the highest of what it declares and of its skill's. It is looked up each time: a scope can
    have got another tool meanwhile.

    >>> from effectful_agents import NotHandled
    >>> @Tool.define(risk=Risk.HARD_WRITE)
    ... def send(text: str) -> None:
    ...     '''Send a mail.'''
    >>> @Skill.define
    ... def inform(topic: str) -> str:
    ...     '''Inform everybody of {topic}.'''
    ...     raise NotHandled
    >>> risk_of(inform)
    <Risk.HARD_WRITE: 2>
    """
    highest, seen, left = Risk.READ, set[Tool](), [tool]
    while left:
        one = left.pop()
        if one in seen:
            continue
        seen.add(one)
        highest = max(highest, risk_of_code() if one.runs_code else one.risk)
        if one.skill is not None and one.skill is not one:
            left.append(one.skill)
        if isinstance(one, Skill) and one.uses_tools:
            left += tools_in_scope(one.__context__, one.receiver)
    return highest
