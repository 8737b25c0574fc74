"""Checking the arguments of a call against the constraints in the skill's annotations."""

from __future__ import annotations

import inspect
import typing
from typing import Any

import pydantic
from pydantic.fields import FieldInfo
from typing_extensions import Doc

from effectful_agents.encoding import type_adapter
from effectful_agents.encoding.names import TypeCache
from effectful_agents.errors import EncodingError
from effectful_agents.operations.legibility import PromptInjectingInterpretation
from effectful_agents.operations.loop import call_agent
from effectful_agents.runtime import fwd, implements
from effectful_agents.types import Scope, Skill
from effectful_agents.types.local_types import write_types

__all__ = ["PydanticSkillArgValidator"]


class PydanticSkillArgValidator(PromptInjectingInterpretation):
    """The arguments of this call were checked before you got them.

    Where the annotation of a parameter carries a constraint, the argument satisfies it: do not check it again. Your
    answer is checked in the same way against the constraints of the return type; if it fails, you are told why.
    """

    # Only parameters whose annotation is `Annotated[…]` with more than a description are looked at, so that other
    # arguments are not copied; those of `*args` and `**kwargs` one by one. What a validator makes of an argument takes
    # its place. A violation raises `pydantic.ValidationError`, and no model is asked. Put it outside of
    # `TenacityRetryer`: nothing is to be repeated.

    @implements(call_agent)
    def call_agent(self, skill: Skill, /, *args: Any, **kwargs: Any) -> Any:
        constrained = [one for one in skill.__signature__.parameters.values() if _is_constrained(one.annotation)]
        if not constrained:
            return fwd()
        bound = skill.arguments_of(*args, **kwargs)
        env = Scope.of_call(skill, bound)
        for parameter in constrained:
            bound.arguments[parameter.name] = _validated(parameter, bound.arguments[parameter.name], env)
        return fwd(skill, *bound.args, **bound.kwargs)


def _is_constrained(annotation: Any) -> bool:
    while typing.get_origin(annotation) is not typing.Annotated:
        alias = typing.get_origin(annotation) or annotation
        if not isinstance(alias, typing.TypeAliasType):  # `type Digit = Annotated[int, Le(9)]`
            return False
        annotation = alias.__value__
    return not all(map(_only_describes, annotation.__metadata__))


def _only_describes(metadata: Any) -> bool:
    return isinstance(metadata, str | Doc) or (isinstance(metadata, FieldInfo) and not metadata.metadata)


def _make_adapter(annotation: Any) -> Any:
    try:
        adapter = type_adapter(annotation)
        adapter.check()
    except EncodingError:
        # What a model never writes needs no form on the wire; its class is then all that is asked besides.
        write_types(annotation)
        return pydantic.TypeAdapter(annotation, config=pydantic.ConfigDict(arbitrary_types_allowed=True))
    return adapter


_adapter = TypeCache(_make_adapter)


def _validated(parameter: inspect.Parameter, value: Any, env: Scope) -> Any:
    adapter = _adapter(parameter.annotation)
    if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
        return tuple(adapter.validate_python(one, context=env) for one in value)
    if parameter.kind is inspect.Parameter.VAR_KEYWORD:
        return {name: adapter.validate_python(one, context=env) for name, one in value.items()}
    return adapter.validate_python(value, context=env)
