"""A call of a skill that a command line describes, up to the request that it would send."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import json
import types
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn, cast

from effectful_agents.encoding import decode
from effectful_agents.errors import AgentsError, ConfigurationError, EncodingError
from effectful_agents.harness.launcher import one_line
from effectful_agents.harness.stack import Harness
from effectful_agents.messages import Request
from effectful_agents.operations.loop import completion, write_system
from effectful_agents.operations.prompt import PromptSection
from effectful_agents.runtime import Interpretation, Layers, fwd, handler
from effectful_agents.runtime.generics import has_type_variables
from effectful_agents.types import Skill

__all__ = ["Asked", "ask_nobody", "bind", "find", "names_of_skills"]


def find(module: types.ModuleType, name: str) -> Skill[..., Any]:
    """The skill of a module by its name, such as `ask` or `Agent.ask`; of a class an instance is made.

    Raises:
        ConfigurationError: There is no such skill, or the class cannot be made without arguments.
    """
    found: Any = module
    for part in name.split("."):
        owner, found = found, getattr(found, part, None)
        if isinstance(found, Skill) and isinstance(inspect.getattr_static(owner, part), Skill):
            found = getattr(_instance(owner, part), part) if isinstance(owner, type) else found
    if isinstance(found, Skill):
        return found
    skills = ", ".join(f"`{each}`" for each in names_of_skills(module.__dict__))
    there = f"has {skills}" if skills else "has no skill; one is defined with `@Skill.define`"
    what = f"`{name}` is no skill of the script" if name else "no skill is named: write SCRIPT:SKILL"
    raise ConfigurationError(f"{what}; the script {there}.")


def _instance(cls: type, method: str) -> Any:
    try:
        return cls()
    except Exception as error:
        name = cls.__name__
        example = f"{name.lower()} = {name}(…)"
        raise ConfigurationError(
            f"`{name}()` cannot be made ({one_line(error)}): make one in the script, `{example}`, and write "
            f"`{name.lower()}.{method}` for the skill."
        ) from error


def names_of_skills(namespace: Mapping[str, Any]) -> Iterator[str]:
    """The names of the skills in a namespace, as `find` takes them."""
    for name, value in namespace.items():
        if isinstance(value, Skill):
            yield name
        elif isinstance(value, type) and value.__module__ == "__main__":
            yield from (f"{name}.{each}" for each in names_of_skills(vars(value)))


class Placeholder:
    """Stands for an argument that was not given: wherever a prompt uses it, its name is written."""

    def __init__(self, name: str) -> None:
        self.__name = name

    def __str__(self) -> str:
        return f"<{self.__name}>"

    __repr__ = __str__

    def __format__(self, format_spec: str) -> str:
        return str(self)

    def __getattr__(self, name: str) -> Placeholder:
        if name.startswith("_"):  # whoever looks for a protocol shall not find it
            raise AttributeError(name)
        return Placeholder(f"{self.__name}.{name}")

    def __getitem__(self, key: object) -> Placeholder:
        return Placeholder(f"{self.__name}[{key}]")


def bind(skill: Skill[..., Any], given: Mapping[str, str]) -> inspect.BoundArguments:
    """The arguments of a call, read from their texts.

    One that is not given has its default, or else a placeholder: its name as text where the type takes that.

    Raises:
        ConfigurationError: The skill has no such parameter, a text does not fit it, or its type is what the type of
            the answer depends on and it is not given.
    """
    signature = skill.__signature__
    rest, arguments = dict(given), {}
    for name, one in signature.parameters.items():
        annotation = Any if one.annotation is one.empty else one.annotation
        if one.kind is one.VAR_KEYWORD:
            arguments[name] = {key: _value(skill, key, rest.pop(key), annotation) for key in list(rest)}
        elif one.kind is one.VAR_POSITIONAL:
            values = _value(skill, name, rest.pop(name), list.__class_getitem__(annotation)) if name in rest else ()
            arguments[name] = tuple(values)
        elif name in rest:
            arguments[name] = _value(skill, name, rest.pop(name), annotation)
        else:
            arguments[name] = _missing(skill, name, annotation) if one.default is one.empty else one.default
    if rest:
        names = ", ".join(f"`{name}`" for name in signature.parameters) or "none"
        raise ConfigurationError(f"`{skill.__name__}` has no parameter `{next(iter(rest))}`; it has {names}.")
    return inspect.BoundArguments(signature, cast(Any, arguments))


def _value(skill: Skill[..., Any], name: str, text: str, annotation: Any) -> Any:
    """The value of a text: as JSON, or else as the text itself."""
    try:
        return decode(text, annotation)
    except EncodingError as error:
        raise ConfigurationError(f"`{name}` of `{skill.__name__}` cannot be given here: {one_line(error)}") from error
    except ValueError as error:
        try:
            return decode(json.dumps(text), annotation)
        except ValueError:
            raise ConfigurationError(
                f"`{name}={text}` does not fit `{name}` of `{skill.__name__}`: {one_line(error)}"
            ) from error


def _missing(skill: Skill[..., Any], name: str, annotation: Any) -> Any:
    if has_type_variables(annotation):
        raise ConfigurationError(
            f"the types of `{skill.__name__}` depend on its argument `{name}`: give it as `{name}=JSON`."
        )
    placeholder = Placeholder(name)
    try:
        return decode(json.dumps(str(placeholder)), annotation)
    except (ValueError, EncodingError):
        return placeholder


@dataclasses.dataclass(frozen=True)
class Asked:
    """What a model would be asked.

    Attributes:
        request: The request, as `completion` gets it.
        document: The sections that its system message was written from; None for a conversation that went on.
    """

    request: Request
    document: PromptSection | None


class _Stop(BaseException):
    """A model would be asked now. No `except Exception` on the way may hold it up."""


def ask_nobody(stack: Harness, skill: Skill[..., Any], arguments: inspect.BoundArguments) -> Asked:
    """Make a call up to its first request; it ends there, and leaves no trace.

    Raises:
        ConfigurationError: The call cannot be made with these arguments, or asks no model.
    """
    requests: list[Request] = []
    documents: list[PromptSection] = []

    def see(document: PromptSection) -> Any:
        documents.append(document)
        return fwd()

    def stop(**request: Any) -> NoReturn:
        requests.append(cast(Request, request))
        raise _Stop

    with contextlib.suppress(_Stop):
        _call(Layers(stack, {write_system: see, completion: stop}), skill, arguments)
    if not requests:
        raise ConfigurationError(f"the call of `{skill.__name__}` ended without asking a model.")
    return Asked(requests[0], documents[0] if documents else None)


def _call(stack: Interpretation, skill: Skill[..., Any], arguments: inspect.BoundArguments) -> None:
    try:
        with handler(stack):
            value: Any = skill(*arguments.args, **arguments.kwargs)
            if inspect.isawaitable(value):
                import asyncio  # noqa: PLC0415 - slow, and seldom needed

                asyncio.run(cast(Any, value))
    except Exception as error:
        absent = [name for name, value in arguments.arguments.items() if isinstance(value, Placeholder)]
        mend = f" Give {', '.join(f'`{name}=JSON`' for name in absent)}." if absent else ""
        kind = "" if isinstance(error, AgentsError) else f"{type(error).__name__}: "
        raise ConfigurationError(
            f"the call of `{skill.__name__}` ended before a model was asked: {kind}{one_line(error)}{mend}"
        ) from error
