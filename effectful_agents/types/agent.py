"""Agents: objects whose skills share one conversation."""

from __future__ import annotations

import abc
from collections.abc import Iterable
from typing import Any

from effectful_agents.messages import Message
from effectful_agents.messages.mending import mended
from effectful_agents.runtime import Operation
from effectful_agents.types.history import History

__all__ = ["Agent", "load_state", "make_agent"]

_HISTORY = "__history__"


@Operation.define
def load_state(agent: Agent) -> None:
    """Bring an agent to what is kept of it: its history, and its fields where it is a dataclass.

    It is performed when a call of the agent begins that is not inside another one of its calls, and when the history is
    read for the first time. A handler that keeps agents changes `agent` in place: the list that is its history stays
    the same list, since running calls will add to it. By default nothing is kept and nothing happens.

    Args:
        agent: An agent with an `__agent_id__`; one without stays as it is.
    """


class Agent(abc.ABC):  # noqa: B024 - for `register`
    """A class whose instances remember: each has a history, and calls of its skills continue it.

    Any class that defines a `Skill` in its body is an agent, without deriving from this one; deriving makes
    `__history__` and `__agent_id__` known to a static type checker. Agents are ordinary classes otherwise: dataclasses,
    frozen or with slots, with a constructor of their own or none, copied and pickled with their history.

    Attributes:
        __agent_id__: A stable name under which a persistence handler keeps this instance, or None (the default) for one
            that lives as long as the process. Set it on the class or the instance, any time before the first call.
        __history__: The messages of all calls that succeeded. What is set is mended where a provider would refuse it.

    >>> from effectful_agents import NotHandled, Skill, handler, harness
    >>> from effectful_agents.testing import ScriptedModel
    >>> class Bot(Agent):
    ...     @Skill.define
    ...     def send(self, text: str) -> str:
    ...         '''Answer the user, who writes: {text}'''
    ...         raise NotHandled
    >>> bot = Bot()
    >>> with handler(harness()), handler(ScriptedModel("Hello!", "In France.")):
    ...     bot.send("Hi, I am in France."), bot.send("Where am I?")
    ('Hello!', 'In France.')
    >>> [message["role"] for message in bot.__history__]
    ['system', 'user', 'assistant', 'user', 'assistant']
    """

    # A text or None; a checker would not let a subclass declare that as `str`, since it can be set.
    __agent_id__: Any = None

    def __init__(self, *args: Any, __agent_id__: str | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if __agent_id__ is not None:
            self.__agent_id__ = __agent_id__

    @property
    def __history__(self) -> History:
        # Made at the first use, so that no constructor has to be called; kept in the instance, so that it is
        # collected, copied and pickled with it.
        history = self.__dict__.get(_HISTORY)
        if history is None:
            history = self.__dict__.setdefault(_HISTORY, History(owner=id(self)))
            if self.__persistent__:
                load_state(self)
            return history
        if history.owner != id(self):
            history = self.__dict__[_HISTORY] = History(history, owner=id(self))
        return history

    @__history__.setter
    def __history__(self, messages: Iterable[Message]) -> None:
        self.__dict__[_HISTORY] = History(mended(messages), owner=id(self))

    @property
    def __persistent__(self) -> bool:
        return self.__agent_id__ is not None

    def __getstate__(self) -> Any:
        # What `copy.copy` gives to the copy: the history as it is now, not the list that the original goes on with.
        state = object.__getstate__(self)
        attributes = state[0] if isinstance(state, tuple) else state
        if isinstance(attributes, dict) and _HISTORY in attributes:
            forked = {**attributes, _HISTORY: History(attributes[_HISTORY])}
            return (forked, state[1]) if isinstance(state, tuple) else forked
        return state


def make_agent(cls: type) -> None:
    """Turn a class that defines a skill into an agent, unless its instances have no place for a history."""
    if issubclass(cls, Agent) or cls.__dictoffset__ == 0:
        return
    for name in ("__agent_id__", "__history__", "__persistent__", "__getstate__"):
        if name == "__getstate__" and cls.__getstate__ is not object.__getstate__:
            continue  # the class says itself what is copied
        if name not in cls.__dict__:
            setattr(cls, name, Agent.__dict__[name])
    Agent.register(cls)
