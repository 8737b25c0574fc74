"""Skills: functions whose bodies a language model supplies."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Concatenate, Self, overload

from effectful_agents.errors import DefinitionError, MissingHandlerError, PromptError
from effectful_agents.runtime import bridged, wait
from effectful_agents.runtime.bridge import named
from effectful_agents.runtime.generics import has_type_variables, result_type
from effectful_agents.types.agent import Agent, make_agent
from effectful_agents.types.docstring import fields, validate_prompt
from effectful_agents.types.template import PromptTemplate
from effectful_agents.types.tool import Tool, is_method

if TYPE_CHECKING:
    from effectful_agents.types.risk import Risk
    from effectful_agents.types.tool import Effect

__all__ = ["Skill", "Template"]

_DOCSTRING = "its docstring"
_KEPT = 16
"""Prompts that a skill was given, and that it keeps what was made of: its schema among others."""


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

    # Not above, where the model would be told of it:
    #
    # uses_tools: Whether the tools that it sees are offered (`define(tools=False)` keeps them back).
    # prompt_name: The prompt of a registry that it asks for (`define(prompt=…)`), else None.
    # template: The prompt with its version.
    # documented: The docstring as a prompt.

    recursive: bool
    delegates = True

    uses_tools: bool
    prompt_name: str | None
    template: PromptTemplate
    documented: PromptTemplate

    def __init__(
        self,
        default: Callable[P, T],
        name: str | None = None,
        *,
        recursive: bool = False,
        tools: bool = True,
        prompt: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(default, name, **options)
        self.recursive = recursive
        self.uses_tools = tools
        self.prompt_name = prompt
        if prompt is not None and not (isinstance(prompt, str) and prompt):
            raise DefinitionError(f"the skill `{self.__name__}` has prompt={prompt!r}; it is the name of a prompt.")
        docstring = inspect.getdoc(default) or ""
        if not docstring.strip():
            raise DefinitionError(f"the skill `{self.__name__}` has no docstring, and it is the prompt. Write one.")
        self._parameters = inspect.signature(default).parameters
        validate_prompt(docstring, self._resolves, f"the docstring of the skill `{self.__name__}`")
        self.template = self.documented = PromptTemplate(
            _name_of_prompt(default, self.__name__), docstring, source=_DOCSTRING
        )
        self._others: dict[PromptTemplate, Self] = {}
        # The body is what a model supplies; where no handler does, say so instead of returning the library's term.
        self.__default__ = _unhandled(self.__name__)

    @property
    def prompt(self) -> str:
        """The text that is formatted at a call."""
        return self.template.text

    @property
    def prompt_names(self) -> tuple[str, ...]:
        """The names under which a registry may have its prompt; the first that it has counts.

        That is the name that the skill asks for, or else its own. A method has that of its class before it, `Desk.ask`;
        one that is inherited goes by the name of the heir first.
        """
        if self.prompt_name is not None:
            return (self.prompt_name,)
        own = self.documented.name
        written_in, _, attribute = own.rpartition(".")
        receiver = self.receiver
        if receiver is None or not written_in:
            return (own,)
        cls = receiver if isinstance(receiver, type) else type(receiver)
        names = []
        for base in cls.__mro__:
            names.append(f"{base.__name__}.{attribute}")
            # A class method with `@classmethod` outside is not told which class it is in.
            if base is self.owner or (self.owner is None and base.__name__ == written_in):
                return tuple(names)
        return names[0], own

    def prompted(self, template: PromptTemplate) -> Skill[P, T]:
        """The skill with another prompt; equal to the first, and the same for whoever handles it.

        It is as if the text stood in the place of the docstring, which is what other skills are told of this one too,
        unless it has a `description`. The docstring of a skill that asks for its prompt by name goes on describing it.

        Raises:
            PromptError: The text does not fit the parameters, or what the skill sees.
        """
        if template == self.template:
            return self
        function: Skill[..., Any] = self.function  # ty: ignore[invalid-assignment]
        other: Any = (function._original or function)._with(template)
        if self.receiver is not None:
            other = other.__get__(self.receiver)
        return other if other.__name__ == self.__name__ else other.named(self.__name__)

    def _with(self, template: PromptTemplate) -> Self:
        if template == self.documented:
            return self
        made = self._others.get(template)
        if made is None:
            self._check(template)
            made = self.alias()
            made.template = template
            if self.prompt_name is None and self.description == self.prompt:
                made.description = template.text
            if len(self._others) >= _KEPT:
                self._others.clear()
            self._others[template] = made
        return made

    def _check(self, template: PromptTemplate) -> None:
        what = f"{template}, which the skill `{self.__name__}` takes for its docstring,"
        validate_prompt(template.text, self._resolves, what, PromptError)
        shown = set(fields(template.text))
        for field in fields(self.documented.text):
            parameter = self._parameters.get(field)
            if field not in shown and parameter is not None and parameter.default is parameter.empty:
                raise PromptError(
                    f"{what} lacks the field `{{{field}}}`: the docstring shows this argument, which has no default, "
                    "and the model would not see it."
                )

    def _resolves(self, name: str) -> bool:
        return name in self._parameters or self.__context__.will_bind(name)

    @property
    def skill(self) -> Self:
        return self

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
        self.template = self.documented = dataclasses.replace(self.documented, name=f"{owner.__name__}.{name}")
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
            tools: bool = True,
            prompt: str | None = None,
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
            tools: bool = True,
            prompt: str | None = None,
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


def _name_of_prompt(default: Callable[..., Any], name: str) -> str:
    """The name of a skill, behind that of the class that it is written in."""
    outside = getattr(inspect.unwrap(default), "__qualname__", "").rpartition(".")[0]
    return f"{outside.rpartition('.')[2]}.{name}" if is_method(default) else name


def _unhandled(name: str) -> Callable[..., Any]:
    def no_model(*args: Any, **kwargs: Any) -> Any:
        raise MissingHandlerError(
            name,
            f'A skill needs a model: `with handler(harness(model="gpt-5-mini")): {name}(…)`, or run the script with '
            "`python -m effectful_agents.harness SCRIPT`.",
        )

    return no_model
