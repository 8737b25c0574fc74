"""Skills: functions whose bodies a language model supplies."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Concatenate, Self, overload

from effectful_agents.errors import DefinitionError, MissingHandlerError
from effectful_agents.runtime import bridged, wait
from effectful_agents.runtime.bridge import named
from effectful_agents.runtime.generics import has_type_variables, result_type
from effectful_agents.types.agent import Agent, make_agent
from effectful_agents.types.docstring import validate_prompt
from effectful_agents.types.tool import Tool

if TYPE_CHECKING:
    from effectful_agents.types.risk import Risk
    from effectful_agents.types.tool import Effect

__all__ = ["Skill", "Template"]


class Skill[**P, T](Tool[P, T]):
    """A function that a language model carries out: its docstring is the prompt, its return type the answer's form.

    Define one with `Skill.define`, on an annotated function whose body is `raise NotHandled` (or empty: it is never
    run). The `{…}` fields of the docstring are filled with the arguments, and with names that the function sees, when
    the skill is called. A skill is a tool as well: other skills that see it may call it.

    >>> from effectful_agents import NotHandled, handler, harness
    >>> from effectful_agents.testing import ScriptedModel
    >>> @Skill.define
    ... def limerick(theme: str) -> str:
    ...     '''Write a limerick of five lines about {theme}.'''
    ...     raise NotHandled
    >>> with handler(harness()), handler(ScriptedModel("There was an old man with a beard…")):
    ...     limerick("beards")
    'There was an old man with a beard…'

    Attributes:
        prompt: The docstring, without its indentation: a format string.
        recursive: Whether the skill is offered to the model that answers it.
    """

    prompt: str
    recursive: bool

    def __init__(
        self, default: Callable[P, T], name: str | None = None, *, recursive: bool = False, **options: Any
    ) -> None:
        super().__init__(default, name, **options)
        self.prompt = inspect.getdoc(default) or ""
        self.recursive = recursive
        if not self.prompt:
            raise DefinitionError(f"the skill `{self.__name__}` has no docstring, and it is the prompt. Write one.")
        parameters = inspect.signature(default).parameters
        validate_prompt(
            self.__name__, self.prompt, lambda field: field in parameters or self.__context__.will_bind(field)
        )
        # The body is what a model supplies; where no handler does, say so instead of returning the library's term.
        self.__default__ = _unhandled(self.__name__)

    @property
    def agent(self) -> Agent | None:
        """The agent whose method this is, where it was taken from an instance of one."""
        instance = self.receiver
        return instance if isinstance(instance, Agent) else None

    def result_type(self, /, *args: Any, **kwargs: Any) -> Any:
        """The type of the value of a call with these arguments: type variables are solved by them."""
        declared = self.__signature__.return_annotation
        return result_type(self, *args, **kwargs) if has_type_variables(declared) else declared

    def __set_name__(self, owner: type, name: str) -> None:
        super().__set_name__(owner, name)
        make_agent(owner)

    if TYPE_CHECKING:

        @overload
        @classmethod
        def define[**Q, V](
            cls,
            default: Callable[Q, V],
            *,
            name: str | None = None,
            description: str | None = None,
            recursive: bool = False,
            risk: Risk = ...,
            idempotent: bool = False,
            effect: Effect | None = None,
            concurrent: bool = False,
            timeout: float | None = None,
        ) -> Skill[Q, V]: ...
        @overload
        @classmethod
        def define[**Q, V](
            cls,
            *,
            name: str | None = None,
            description: str | None = None,
            recursive: bool = False,
            risk: Risk = ...,
            idempotent: bool = False,
            effect: Effect | None = None,
            concurrent: bool = False,
            timeout: float | None = None,
        ) -> Callable[[Callable[Q, V]], Skill[Q, V]]: ...
        @classmethod
        def define(cls, *args: Any, **kwargs: Any) -> Any: ...  # ty: ignore[incompatible-method-override]  # more options

        @overload
        def __get__(self, instance: None, owner: type | None = None) -> Self: ...
        @overload
        def __get__[S, **R](
            self: Skill[Concatenate[S, R], T], instance: S, owner: type | None = None
        ) -> Skill[R, T]: ...
        def __get__(self, instance: Any, owner: type | None = None) -> Any: ...

    else:

        def __call__(self, /, *args, **kwargs):
            if self.is_async:
                return named(bridged(self._perform, args, kwargs), self.__name__)
            return super().__call__(*args, **kwargs)

        def _perform(self, args, kwargs):
            value = super().__call__(*args, **kwargs)
            return wait(value) if inspect.isawaitable(value) else value


Template = Skill
"""Another name for `Skill`."""


def _unhandled(name: str) -> Callable[..., Any]:
    def no_model(*args: Any, **kwargs: Any) -> Any:
        raise MissingHandlerError(
            name,
            f'A skill needs a model: `with handler(harness(model="gpt-5-mini")): {name}(…)`, or run the script with '
            "`python -m effectful_agents.harness SCRIPT`.",
        )

    return no_model
