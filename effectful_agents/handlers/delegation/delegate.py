"""Delegates: a skill, or an agent, as a tool with one parameter, of which only the result comes back."""

from __future__ import annotations

import contextlib
import inspect
import re
from collections.abc import Callable, Generator, Iterable, MutableSequence
from typing import TYPE_CHECKING, Annotated, Any, Self, overload

import pydantic

from effectful_agents.errors import DefinitionError, LimitExceeded, OptionError
from effectful_agents.messages import Message
from effectful_agents.operations.calls_by_code import carrying_out
from effectful_agents.operations.grants import granted_kinds, not_granted
from effectful_agents.operations.history import conversation
from effectful_agents.operations.policy import Decision, EffectKind, ProposedEffect, decide, strictest
from effectful_agents.runtime import Operation, fwd, handler, wait
from effectful_agents.types import History, Risk, Skill, Tool
from effectful_agents.types.kinds import is_a, name_of_type
from effectful_agents.types.walk import is_agent, tools_of

__all__ = ["Delegate"]

_ABOUT_THE_BRIEF = (
    "What is to be done, with all that has to be known for it: whoever does it sees nothing of this conversation."
)
_DEPTH, _MAX_BRIEF = 3, 32_000


@Operation.define
def _delegates() -> tuple[Delegate[Any], ...]:
    """The delegates that are at work where the code is, the outermost first."""
    return ()


class Delegate[T](Tool[[str], T]):
    """A skill, or an agent, that another one can hand work to: a tool with the one parameter `brief`.

    It is offered where any tool is: under a name in the scope of a skill, or as an attribute of an agent. The model
    that delegates sees this one tool, and none of those that the delegate works with. Each call is a conversation of
    its own: it begins empty, also where the delegate is an agent with a history, and leaves nothing in one; only the
    result comes back. What is installed where the delegate is called holds inside of it: usage and limits are counted
    together, observers hear its steps, policies decide about them.

    >>> from effectful_agents import NotHandled, harness
    >>> from effectful_agents.testing import ScriptedModel, calls
    >>> class Researcher:
    ...     '''Finds out facts.'''
    ...     @Skill.define
    ...     def research(self, question: str) -> str:
    ...         '''Find out: {question}'''
    ...         raise NotHandled
    >>> class Writer:
    ...     ask_researcher = Delegate(Researcher(), name="ask_researcher")
    ...     @Skill.define
    ...     def write(self, topic: str) -> str:
    ...         '''Write a sentence on {topic}; have the facts found out.'''
    ...         raise NotHandled
    >>> model = ScriptedModel(calls("ask_researcher", brief="How high is Mont Blanc?"), "4806 m.", "It has 4806 m.")
    >>> with handler(harness()), handler(model):
    ...     Writer().write("Mont Blanc")
    'It has 4806 m.'

    Args:
        to: The skill: a function, or a method of an agent. It takes one text, whatever that is called; other
            parameters have defaults. Of an agent, its only skill of that kind.
        name: The name that the model knows it by; by default that of the skill, or of the agent's class.
        description: What the model is told: what it can be asked for. By default what is told of the skill, or the
            docstring of the agent's class.
        depth: How many delegates may be at work in each other where this one is called, itself included. The lowest of
            those that are counts. What would go deeper is not done, and is an error that the model reads.
        grants: The kinds of effects that may happen inside it, of those that may happen where it is called; None for
            all of those. A skill needs `model_call`.
        max_brief: The longest brief, in characters; a longer one is an error that the model reads.
        risk: The least that it counts as. Policies see the highest of this and of what is behind it
            (`operations.effects.risk_of`).
        concurrent: Whether it may run beside other calls of the same turn. An asynchronous skill does in any case.
        timeout: Seconds that a call may take.

    Raises:
        DefinitionError: `to` cannot be asked with one text, or there is nothing to describe it by.
        OptionError: An option has a value that it cannot have.
    """

    delegates = True

    depth: int
    grants: frozenset[EffectKind] | None
    max_brief: int

    @overload
    def __init__(
        self,
        to: Skill[..., T],
        *,
        name: str | None = None,
        description: str | None = None,
        depth: int = ...,
        grants: Iterable[EffectKind | str] | None = None,
        max_brief: int = ...,
        risk: Risk = ...,
        concurrent: bool = False,
        timeout: float | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: Delegate[Any],
        to: object,
        *,
        name: str | None = None,
        description: str | None = None,
        depth: int = ...,
        grants: Iterable[EffectKind | str] | None = None,
        max_brief: int = ...,
        risk: Risk = ...,
        concurrent: bool = False,
        timeout: float | None = None,
    ) -> None: ...
    def __init__(
        self,
        to: Any,
        *,
        name: str | None = None,
        description: str | None = None,
        depth: int = _DEPTH,
        grants: Iterable[EffectKind | str] | None = None,
        max_brief: int = _MAX_BRIEF,
        risk: Risk = Risk.READ,
        concurrent: bool = False,
        timeout: float | None = None,
    ) -> None:
        skill = _skill_of(to)
        for option, value in (("depth", depth), ("max_brief", max_brief)):
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise OptionError(f"`{option}` of a `Delegate` is {value!r}; it is a whole number, at least 1.")
        if isinstance(grants, str):
            raise OptionError(f"`grants` of a `Delegate` is {grants!r}; it is a list of kinds: `[{grants!r}]`.")
        if skill is not to:
            name, description = name or _in_snake_case(type(to)), description or type(to).__doc__
        super().__init__(
            _calling(self, skill, name or skill.__name__),
            description=description or skill.description,
            risk=risk,
            concurrent=concurrent,
            timeout=timeout,
        )
        self._skill = skill
        self.depth = depth
        self.grants = None if grants is None else granted_kinds(grants)
        self.max_brief = max_brief

    @property
    def skill(self) -> Skill[..., T]:
        """The skill that does the work."""
        return self._skill

    def __set_name__(self, owner: type, name: str) -> None:
        pass  # in a class it is an attribute of the instances, and no method

    if not TYPE_CHECKING:

        def __get__(self, instance: Any, owner: type | None = None) -> Self:
            return self

    @contextlib.contextmanager
    def at_work(self, brief: str) -> Generator[None]:
        """Where the skill is called, which has been decided about as the call of this delegate.

        Raises:
            LimitExceeded: `brief` is too long, or too many delegates are at work in each other.
        """
        if len(brief) > self.max_brief:
            advice = f"The brief for `{self.__name__}` has {len(brief):,} characters; say it in fewer."
            raise LimitExceeded("max_brief", self.max_brief, advice=advice)
        chain = (*_delegates(), self)
        depth = min(delegate.depth for delegate in chain)
        if len(chain) > depth:
            way = " → ".join(delegate.__name__ for delegate in chain[-_SHOWN:])
            raise LimitExceeded("depth", depth, advice=f"Too many delegates hand on to each other ({way}); do it here.")
        rules: dict[Any, Any] = {_delegates: lambda: chain}
        if self.skill.agent is not None:
            rules[conversation] = _conversation_of(self.skill)
        if self.grants is not None:
            rules[decide] = self._decide
        with handler(rules), carrying_out(self.skill):
            yield

    def _decide(self, effect: ProposedEffect) -> Decision:
        assert self.grants is not None
        if effect.kind in self.grants:
            return fwd()
        mine = not_granted(effect, f"`grants` of the delegate `{self.__name__}` would have to name it")
        return strictest(mine.by("grants"), fwd())


_SHOWN = 6
"""Delegates that an error names."""


def _calling(delegate: Delegate[Any], skill: Skill[..., Any], name: str) -> Callable[[str], Any]:
    """The function that a delegate is: of the name, the parameter and the result that the model is shown."""

    def call(brief: str) -> Any:
        with delegate.at_work(brief):
            value = skill(brief)
            return wait(value) if inspect.isawaitable(value) else value

    async def call_async(brief: str) -> Any:
        with delegate.at_work(brief):
            return await skill(brief)

    function: Any = call_async if skill.is_async else call
    function.__name__ = function.__qualname__ = name
    function.__module__ = skill.__module__
    about = pydantic.Field(description=_ABOUT_THE_BRIEF)
    function.__annotations__ = {"brief": Annotated[str, about], "return": skill.__signature__.return_annotation}
    return function


def _conversation_of(skill: Skill[..., Any]) -> Callable[[Skill[..., Any]], MutableSequence[Message]]:
    """A rule of `conversation` that gives the agent of a skill one of its own, which begins empty."""
    own, agent = History(), skill.agent
    own.passing = True

    def own_conversation(called: Skill[..., Any]) -> MutableSequence[Message]:
        return own if called.agent is agent else fwd()

    return own_conversation


# --- what can be a delegate -------------------------------------------------------------------------------------------


def _skill_of(to: Any) -> Skill[..., Any]:
    if is_a(to, Skill):
        if problem := _problem(to):
            raise DefinitionError(f"`{to.__name__}` cannot be a delegate, which is given one text: {problem}.")
        return to
    if not is_agent(to):
        kind = f"the class `{name_of_type(to)}`; make an instance" if is_a(to, type) else f"{name_of_type(type(to))}"
        raise DefinitionError(f"a `Delegate` stands for a skill or an agent; this is {kind}.")
    skills = [tool for tool in tools_of(to) if is_a(tool, Skill)]
    fitting = [skill for skill in skills if not _problem(skill)]  # ty: ignore[invalid-argument-type]
    if len(fitting) == 1:
        return fitting[0]  # ty: ignore[invalid-explicit-return]
    agent = name_of_type(type(to))
    if not fitting:
        raise DefinitionError(f"no skill of the agent `{agent}` takes one text, as a delegate has to: define one.")
    names = " or ".join(f"`Delegate(agent.{skill.own_name})`" for skill in fitting)
    raise DefinitionError(f"the agent `{agent}` has several skills that take one text; name the one: {names}.")


def _problem(skill: Skill[..., Any]) -> str:
    """What keeps a skill from being called with one text."""
    parameters = list(skill.__signature__.parameters.values())
    first = parameters[0] if parameters else None
    if first is None or first.kind not in (first.POSITIONAL_ONLY, first.POSITIONAL_OR_KEYWORD):
        return "it has no parameter for that"
    # That of `Annotated[str, …]` is `str`.
    if getattr(first.annotation, "__origin__", first.annotation) not in (str, Any, object):
        return f"its parameter `{first.name}` is no `str`"
    required = [one.name for one in parameters[1:] if one.default is one.empty and one.kind not in _OPTIONAL]
    return f"its parameter `{required[0]}` has no default" if required else ""


_OPTIONAL = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def _in_snake_case(cls: type) -> str:
    """The name of a class as a function would have it: `WebSearcher` becomes `web_searcher`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name_of_type(cls)).lower().strip("_") or "delegate"
