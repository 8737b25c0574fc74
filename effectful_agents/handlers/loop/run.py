"""Calling a skill for more than its value."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Coroutine, Iterable, MutableSequence
from typing import Any, overload

from effectful_agents.errors import ConfigurationError
from effectful_agents.messages import Message, Usage
from effectful_agents.messages.mending import mended
from effectful_agents.operations.history import admit_message, conversation
from effectful_agents.operations.loop import completion
from effectful_agents.operations.usage import RequestUsage, counted, tell_usage
from effectful_agents.runtime import bridged, fwd, handler, wait
from effectful_agents.runtime.bridge import named
from effectful_agents.types import History, Skill

__all__ = ["CallResult", "acall", "run"]


@dataclasses.dataclass(frozen=True)
class CallResult[T]:
    """What a call of a skill came to.

    Attributes:
        value: The value that the skill returned.
        messages: The whole conversation after the call; give it to the next `run` as `history` to go on with it.
        usage: Tokens of all requests of the call, those of nested calls and of refused replies included.
    """

    value: T
    messages: list[Message]
    usage: Usage


def run[**P, T](
    skill: Callable[P, T], /, *args: Any, history: Iterable[Message] | None = None, **kwargs: Any
) -> CallResult[T]:
    """Call a skill, and return its value with the conversation and the tokens used.

    In an event loop write `await acall(run, skill, …)`.

    Args:
        skill: The skill.
        args: Its arguments; one that is called `history` has to be given by position.
        history: Messages that the call continues. They are mended where a provider would refuse them; what users said
            and tools gave in them passes the rules of `Governance` as if it were new. Neither the
            sequence nor a message in it is changed. A method of an agent continues these instead of the agent's own,
            and the agent's history stays as it is. None: as an ordinary call.
        kwargs: Its arguments by keyword.

    Raises:
        ConfigurationError: `skill` is not a skill.

    >>> from effectful_agents import NotHandled, Skill, handler, harness
    >>> from effectful_agents.testing import ScriptedModel
    >>> @Skill.define
    ... def ask(question: str) -> str:
    ...     '''{question}'''
    ...     raise NotHandled
    >>> with handler(harness()), handler(ScriptedModel("Paris.", "About two million.")):
    ...     first = run(ask, "What is the capital of France?")
    ...     second = run(ask, "How many people live there?", history=first.messages)
    >>> second.value, len(second.messages)
    ('About two million.', 5)
    """
    if not isinstance(skill, Skill):
        raise ConfigurationError(f"`run` takes a skill, made with `Skill.define`; this is {type(skill).__name__}.")
    opened: list[MutableSequence[Message]] = []
    used: list[Usage] = []

    def continued(called: Skill) -> MutableSequence[Message]:
        if opened or called != skill:
            return fwd()
        opened.append(fwd() if history is None else History(map(_admitted, mended(history))))
        return opened[0]

    def count(request: RequestUsage) -> None:
        if not request.replayed:
            used.append(request.usage)

    def told(request: RequestUsage) -> None:
        count(request)
        fwd()

    with handler({conversation: continued, tell_usage: told, completion: lambda **request: counted(request, count)}):
        value = completed(skill, args, kwargs)
    return CallResult(value, list(opened[0]) if opened else [], sum(used, Usage()))


def _admitted(message: Message) -> Message:
    """A message from elsewhere, as rules for what enters a conversation leave it."""
    return admit_message(message) if message["role"] in ("user", "tool") else message


@overload
def acall[**P, T](
    skill: Callable[P, Coroutine[Any, Any, T]], /, *args: P.args, **kwargs: P.kwargs
) -> Coroutine[Any, Any, T]: ...
@overload
def acall[**P, T](skill: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, T]: ...
def acall(skill: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Coroutine[Any, Any, Any]:
    """Call a skill, whether `def` or `async def`, from asynchronous code.

    `await acall(skill, …)` is the same call as any other, but the event loop goes on while the model or an asynchronous
    tool is awaited. It has the handlers and context variables of the moment at which `acall` is called. Cancelling the
    task that awaits it ends it where it waits, and leaves no trace in any history. It works on asyncio and on trio, and
    needs no thread.

    >>> import asyncio
    >>> from effectful_agents import NotHandled, Skill, Tool, handler, harness
    >>> from effectful_agents.testing import ScriptedModel, calls
    >>> @Tool.define
    ... async def name() -> str:
    ...     '''The name of the user.'''
    ...     await asyncio.sleep(0)
    ...     return "Ann"
    >>> @Skill.define
    ... def greet() -> str:
    ...     '''Greet the user.'''
    ...     raise NotHandled
    >>> with handler(harness()), handler(ScriptedModel(calls("name"), "Hello Ann!")):
    ...     asyncio.run(acall(greet))
    'Hello Ann!'
    """
    return named(bridged(completed, skill, args, kwargs), getattr(skill, "__name__", "acall"))


def completed(skill: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The value of a call of a skill, whether `def` or `async def`."""
    value = skill(*args, **kwargs)
    return wait(value) if inspect.isawaitable(value) else value
