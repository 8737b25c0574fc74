"""The body of a skill, as a model writes it: a type that is read like a function and held to the skill."""

from __future__ import annotations

import contextlib
import doctest
import inspect
import string
import typing
from collections.abc import Callable, Generator
from typing import Annotated, Any, override

import pydantic

from effectful_agents.encoding import EncodedFunction, signature_text
from effectful_agents.encoding.functions import made_function, source_of_function, told_as_problem
from effectful_agents.encoding.marks import CODEC
from effectful_agents.encoding.names import type_name
from effectful_agents.encoding.registry import Codec
from effectful_agents.encoding.splicing import splice_skill_body
from effectful_agents.operations import code
from effectful_agents.runtime import handler
from effectful_agents.types import Scope, Skill

__all__ = [
    "MethodSkillBody",
    "SkillBody",
    "SynthesizedMethodSkillBody",
    "SynthesizedSkillBody",
    "implemented_by",
]


class SynthesizedSkillBody(EncodedFunction):
    """The body of a skill as a model writes it: imports and helpers, and last the function itself.

    It has the parameters of the skill. Their annotations are those of the skill, whatever the model writes there.
    """


class SynthesizedMethodSkillBody(SynthesizedSkillBody):
    """The same for a method, whose function has the receiver as its first parameter."""


class SkillBody[**P, R]:
    """The type of a function that stands in for a skill: `SkillBody[[int], str]` for one that takes and gives these.

    A value of it is an ordinary function. It is written as source. Where it is read, the skill that is being answered
    is in the context: the function is type-checked as that skill's body, it gets the skill's docstring, and the
    examples in there are run, with all calls of the skill going to the function.
    """

    form: type[SynthesizedSkillBody] = SynthesizedSkillBody

    @classmethod
    def signature(cls, parameters: Any, result: Any) -> str:
        """What a model is told of the type."""
        function: Any = Callable
        return type_name(function[parameters, result])

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        parameters, result = typing.get_args(source) or (..., Any)
        about = (
            f"The source of a function of the type `{cls.signature(parameters, result)}`: imports and helpers, and "
            "last its `def`."
        )
        form: Any = Annotated
        codec = Codec(
            form[cls.form, pydantic.Field(description=about)],
            _write,
            lambda written, context: _read(written, context, cls),
            runs_code=True,
        )
        return {"type": "callable", "metadata": {CODEC: codec}}


class MethodSkillBody[**P, R](SkillBody[P, R]):
    """The type of a function that stands in for a skill which is a method; its first parameter is the receiver."""

    form = SynthesizedMethodSkillBody

    @classmethod
    @override
    def signature(cls, parameters: Any, result: Any) -> str:
        inner = ["self", *parameters] if isinstance(parameters, list | tuple) else parameters
        return super().signature(inner, result)


def _write(function: Any) -> SynthesizedSkillBody:
    return SynthesizedSkillBody.model_construct(code=source_of_function(function))


def _read(written: SynthesizedSkillBody, context: Any, cls: type[SkillBody]) -> Callable[..., Any]:
    if not isinstance(context, Scope):
        raise ValueError("no skill is being answered here.")
    skill: Skill = context.skill
    with told_as_problem():
        function, namespace = made_function(
            written.code,
            dict(context.items()),
            label=skill.__name__,
            splice=lambda: splice_skill_body(written.code, skill, context),
        )
        _check_takes(function, skill)
        with contextlib.suppress(AttributeError):  # what a decorator made may have no place for it
            function.__doc__ = examples_of(skill.prompt)
        with implemented_by(skill, function):
            code.run_doctests(function, namespace)
    return function


def _check_takes(function: Callable[..., Any], skill: Skill) -> None:
    """Refuse a function that cannot be called with the arguments of the skill."""
    kinds = skill.function.__signature__.parameters.values()
    by_place = [one.name for one in kinds if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    by_name = {one.name: None for one in kinds if one.kind is one.KEYWORD_ONLY}
    try:
        inspect.signature(function).bind(*by_place, **by_name)
    except TypeError as error:
        name, wanted = getattr(function, "__name__", "it"), signature_text(skill.function)
        raise ValueError(f"`{name}` cannot be called like `{wanted}`: {error}.") from error


@contextlib.contextmanager
def implemented_by(skill: Skill, function: Callable[..., Any]) -> Generator[None]:
    """Have calls of a skill go to a function for the time of the block, whoever makes them."""
    own = skill.function

    def call(*args: Any, **kwargs: Any) -> Any:
        # The defaults are those of the skill, whether or not the function has them too.
        bound = own.arguments_of(*args, **kwargs)
        return function(*bound.args, **bound.kwargs)

    with handler({own: call}):
        yield


# --- the examples of a skill ------------------------------------------------------------------------------------------

_FIELD = "\0"


def examples_of(prompt: str) -> str:
    """The docstring of a skill as one whose examples can be run.

    Braces that stand twice, since the docstring is a format string, stand once. An example with a field in it is left
    out: what stands there is different in every call.
    """
    pieces = string.Formatter().parse(prompt)
    text = "".join(literal + ("" if field is None else f"{_FIELD}{field}{_FIELD}") for literal, field, _, _ in pieces)
    if ">>>" not in text:
        return text.replace(_FIELD, "")
    parts = doctest.DocTestParser().parse(text)
    written = [_written(part) for part in parts if not (isinstance(part, doctest.Example) and _has_field(part))]
    return "".join(written).replace(_FIELD, "")


def _has_field(example: doctest.Example) -> bool:
    return _FIELD in example.source or _FIELD in example.want


def _written(part: str | doctest.Example) -> str:
    if isinstance(part, str):
        return part
    margin = " " * part.indent
    first, *rest = part.source.splitlines()
    lines = [f">>> {first}", *(f"... {line}" for line in rest), *part.want.splitlines()]
    return "".join(f"{margin}{line}\n" for line in lines)
