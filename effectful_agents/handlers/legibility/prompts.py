"""Prompts that are kept as data, and the handler that has skills asked with them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Protocol, runtime_checkable

from effectful_agents.errors import OptionError, PromptError, UnknownPromptError
from effectful_agents.operations.templates import PromptTemplate, skill_prompt
from effectful_agents.runtime import ObjectInterpretation, fwd, implements
from effectful_agents.types import Skill

__all__ = ["InMemoryPrompts", "PromptProvider", "PromptRegistry"]


@runtime_checkable
class PromptProvider(Protocol):
    """A source of prompts.

    One that can be read again may have a method `prepare_reload()` as well. It reads, and returns a function that puts
    what was read in the place of what was there; `PromptRegistry.reload` calls those when all have been read.
    """

    def find(self, name: str) -> PromptTemplate | None:
        """The prompt of this name, or None."""
        ...

    def names(self) -> Collection[str]:
        """The names of all prompts."""
        ...


class InMemoryPrompts:
    """Prompts in a dictionary: for tests, and to try another text.

    Args:
        prompts: Texts or templates by name. Empty lines around a text are dropped.

    Raises:
        PromptError: A name or a text is empty, or is no text.

    >>> prompts = InMemoryPrompts({"triage": "Which queue is this for? {ticket}"})
    >>> prompts.find("triage").text, prompts.find("else")
    ('Which queue is this for? {ticket}', None)
    """

    def __init__(self, prompts: Mapping[str, PromptTemplate | str] | None = None) -> None:
        self._prompts = {name: _as_template(name, prompt) for name, prompt in (prompts or {}).items()}

    def find(self, name: str) -> PromptTemplate | None:
        """The prompt of this name, or None."""
        return self._prompts.get(name)

    def names(self) -> Collection[str]:
        """The names of all prompts."""
        return self._prompts.keys()


def _as_template(name: str, prompt: Any) -> PromptTemplate:
    if isinstance(prompt, PromptTemplate):
        return prompt
    return PromptTemplate(name, without_empty_lines(prompt) if isinstance(prompt, str) else prompt, source="memory")


class PromptRegistry(ObjectInterpretation[Any, Any]):
    """Have skills asked with prompts that are kept as data, in the place of their docstrings.

    As a handler it replaces the docstring of each skill whose name it knows: `triage`, or `Desk.triage` for a method.
    The program stays as it is. Other skills are asked as before, by their docstrings or by a registry further out. It
    may stand anywhere in a stack.

    A text is held to the skill before a model is asked: its fields are parameters or names that the skill sees, and it
    shows each argument without a default that the docstring shows.

    Args:
        providers: Where prompts come from. Of two that have a prompt of the same name the first wins.

    Raises:
        OptionError: Something is no provider.
        PromptError: From a call: a provider found something that is no `PromptTemplate`, or the text does not fit.

    >>> from effectful_agents import NotHandled, handler, harness, steps
    >>> from effectful_agents.testing import ScriptedModel
    >>> @Skill.define
    ... def triage(ticket: str) -> str:
    ...     '''Sort {ticket}.'''
    ...     raise NotHandled
    >>> mine = InMemoryPrompts({"triage": PromptTemplate("triage", "Which queue? {ticket}", version="2")})
    >>> stack = harness(system_prompt="brief")
    >>> with handler(stack), handler(PromptRegistry(mine)), handler(ScriptedModel("billing")) as model:
    ...     first, *_ = steps(triage, "No invoice")
    >>> first.prompt.version, model.requests[0]["messages"][-1]["content"].splitlines()[-1]
    ('2', 'Which queue? No invoice')
    """

    def __init__(self, *providers: PromptProvider) -> None:
        for provider in providers:
            if isinstance(provider, type) or not isinstance(provider, PromptProvider):
                raise OptionError(
                    f"{provider!r} is no provider of prompts, which has `find` and `names`: write "
                    "`InMemoryPrompts({…})` or `FilePrompts(path)`."
                )
        self.providers = providers

    @implements(skill_prompt)
    def skill_prompt(self, skill: Skill[..., Any]) -> PromptTemplate:
        template = self._of(skill)
        if template is not None:
            return template
        try:
            return fwd()
        except UnknownPromptError as error:
            raise UnknownPromptError(error.name, (*error.available, *self.names()), skill=error.skill) from None

    def find(self, name: str) -> PromptTemplate | None:
        """The prompt of this name, of the first provider that has it, or None."""
        return _first(_found(provider, name) for provider in self.providers)

    def _of(self, skill: Skill[..., Any]) -> PromptTemplate | None:
        return _first(map(self.find, skill.prompt_names))

    def names(self) -> Collection[str]:
        """The names of all prompts, sorted."""
        return sorted({name for provider in self.providers for name in provider.names()})

    def prompt(self, name: str) -> PromptTemplate:
        """The prompt of this name.

        Raises:
            UnknownPromptError: There is none; the message lists those that there are.
        """
        template = self.find(name)
        if template is None:
            raise UnknownPromptError(name, self.names())
        return template

    def check(self, *skills: Skill[..., Any]) -> None:
        """Hold the prompts of skills to them, as a call would: for a test, or the start of a program.

        Raises:
            PromptError: A prompt does not fit its skill.
            UnknownPromptError: There is none for a skill.
        """
        for skill in skills:
            template = self._of(skill)
            if template is None:
                raise UnknownPromptError(skill.prompt_names[0], self.names(), skill=skill.__name__)
            skill.prompted(template)

    def reload(self) -> None:
        """Read all prompts again that come from files; the next call has them.

        Raises:
            PromptError: One of them cannot be read. Then every provider has what it had.
        """
        self.prepare_reload()()

    def prepare_reload(self) -> Callable[[], None]:
        """Read again, and return the function that puts what was read in place."""
        prepared = [getattr(provider, "prepare_reload", None) for provider in self.providers]
        puts = [prepare() for prepare in prepared if prepare is not None]

        def put_all() -> None:
            for put in puts:
                put()

        return put_all


def _first(templates: Iterable[PromptTemplate | None]) -> PromptTemplate | None:
    return next((one for one in templates if one is not None), None)


def _found(provider: PromptProvider, name: str) -> PromptTemplate | None:
    template: Any = provider.find(name)
    if template is not None and not isinstance(template, PromptTemplate):
        raise PromptError(
            f"`find({name!r})` of the provider {provider!r} gave {type(template).__name__}; it gives a "
            "`PromptTemplate`, or None."
        )
    return template


def without_empty_lines(text: str) -> str:
    """A text without the empty lines at its beginning and its end."""
    lines = text.split("\n")
    full = [place for place, line in enumerate(lines) if line.strip()]
    return "\n".join(lines[full[0] : full[-1] + 1]) if full else ""
