"""Checking the arguments of a call against the constraints in the skill's annotations."""

from __future__ import annotations

import inspect
import typing
from typing import Any

from effectful_agents.encoding import type_adapter
from effectful_agents.operations.legibility import PromptInjectingInterpretation
from effectful_agents.operations.loop import call_agent
from effectful_agents.runtime import fwd, implements
from effectful_agents.types import Scope, Skill

__all__ = ["PydanticSkillArgValidator"]


class PydanticSkillArgValidator(PromptInjectingInterpretation):
    """The arguments of this call were checked before you got them.

    Where the annotation of a parameter carries a constraint, the argument satisfies it: do not check it again. Your
    answer is checked in the same way against the constraints of the return type; if it fails, you are told why.
    """

    # Only parameters whose annotation is `Annotated[…]` are looked at, so that other arguments are not copied; those of
    # `*args` and `**kwargs` one by one. What a validator makes of an argument takes its place. A violation raises
    # `pydantic.ValidationError`, and no model is asked. Put it outside of `TenacityRetryer`: nothing is to be repeated.

    @implements(call_agent)
    def call_agent(self, skill: Skill, /, *args: Any, **kwargs: Any) -> Any:
        signature = skill.__signature__
        constrained = [one for one in signature.parameters.values() if _is_constrained(one.annotation)]
        if not constrained:
            return fwd()
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        env = Scope.of_call(skill, bound)
        for parameter in constrained:
            bound.arguments[parameter.name] = _validated(parameter, bound.arguments[parameter.name], env)
        return fwd(skill, *bound.args, **bound.kwargs)


def _is_constrained(annotation: Any) -> bool:
    while isinstance(annotation, typing.TypeAliasType):  # `type Digit = Annotated[int, Le(9)]`
        annotation = annotation.__value__
    return typing.get_origin(annotation) is typing.Annotated


def _validated(parameter: inspect.Parameter, value: Any, env: Scope) -> Any:
    adapter = type_adapter(parameter.annotation)
    if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
        return tuple(adapter.validate_python(one, context=env) for one in value)
    if parameter.kind is inspect.Parameter.VAR_KEYWORD:
        return {name: adapter.validate_python(one, context=env) for name, one in value.items()}
    return adapter.validate_python(value, context=env)
