"""An agent of another process, as a tool with one parameter."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Self

import pydantic

from effectful_agents.errors import DefinitionError, OptionError, PeerError, Suspended
from effectful_agents.handlers.delegation.a2a.client import A2AClient
from effectful_agents.handlers.delegation.a2a.tasks import Task, TaskState
from effectful_agents.operations.asking import ask_person
from effectful_agents.operations.policy import Question
from effectful_agents.operations.steps import current_ids
from effectful_agents.operations.world import fresh_id, now, sleep
from effectful_agents.runtime import shielded
from effectful_agents.types import Risk, Tool

__all__ = ["RemoteDelegate"]

_ABOUT_THE_BRIEF = "What is to be done, with all that has to be known for it: the agent sees nothing else."
_FIRST_PAUSE = 0.1
_LONGEST_DESCRIPTION = 4_000


class RemoteDelegate(Tool[[str], Any]):
    """An agent that speaks A2A, to which a model can hand work: a tool with the one parameter `brief`.

    A call begins a task there, and waits for its end. What the task has made is the result: text, JSON data as its
    value, or content parts. In a run that has a journal the task belongs to a context that is named by the run and the
    step, so that a run which is resumed finds the task that it had begun, and begins no second one. Where the task
    wants input, or to be let in somewhere, a person is asked as for an approval, and the run may wait for them. A call
    that is cancelled cancels the task.

    Args:
        agent: The address of the agent, or an `A2AClient`.
        risk: What it could do to the world. Nobody else knows, and its card does not say.
        name: The name that the model knows it by; that of the card by default.
        description: What the model is told; by default what the card says, for which the agent is asked here.
        poll_every: Seconds between two looks at a task.
        timeout: Seconds that a task may take.
        headers: What each request carries, where `agent` is an address.

    Raises:
        DefinitionError: There is nothing to describe it by.
        OptionError: An option has a value that it cannot have.
        PeerError: The agent was to be asked for its card, and cannot be.
    """

    delegates = True

    def __init__(
        self,
        agent: str | A2AClient,
        *,
        risk: Risk,
        name: str | None = None,
        description: str | None = None,
        poll_every: float = 1.0,
        timeout: float = 600.0,
        headers: Mapping[str, str] | Callable[[], Mapping[str, str]] | None = None,
    ) -> None:
        if isinstance(agent, A2AClient) and headers is not None:
            raise OptionError("`headers` go with the address of an agent; a client has its own.")
        for option, value in (("poll_every", poll_every), ("timeout", timeout)):
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
                raise OptionError(f"`{option}` of a `RemoteDelegate` is {value!r}; it is a number of seconds above 0.")
        self.client = agent if isinstance(agent, A2AClient) else A2AClient(agent, headers=headers)
        if name is None or description is None:
            card = self.client.card()
            name = name or _as_name(card.name)
            skills = "".join(f"\n- {skill.name}: {skill.description}" for skill in card.skills)
            description = description or f"{card.description}{skills}".strip()[:_LONGEST_DESCRIPTION]
        if not description:
            raise DefinitionError(
                f"the card of `{self.client.peer}` says nothing; describe the agent by `description`."
            )
        super().__init__(_calling(self, name), description=description, risk=risk, concurrent=True)
        self.poll_every = poll_every
        self.most_seconds = timeout

    @property
    def resumes(self) -> bool:
        """A call finds the task again that an earlier one had begun."""
        return True

    def __set_name__(self, owner: type, name: str) -> None:
        pass  # in a class it is an attribute of the instances, and no method

    if not TYPE_CHECKING:

        def __get__(self, instance: Any, owner: type | None = None) -> Self:
            return self

    def work(self, brief: str) -> Any:
        """Have a task done, and wait for it.

        Raises:
            PeerError: The agent cannot be reached, the task failed, was rejected or canceled, or takes too long.
            Suspended: The run waits for somebody whom the task has asked for something.
        """
        context_id, is_named = _context(brief)
        task = self._found(context_id) if is_named else None
        if task is None:
            task = self.client.send(brief, context_id=context_id, message_id=_digest(context_id, brief))
        try:
            return _value(self._ended(task), self.client.peer)
        except (PeerError, Suspended):  # it has ended, or goes on when somebody has answered
            raise
        except BaseException:
            self._give_up(task)
            raise

    def _found(self, context_id: str) -> Task | None:
        """The task that an earlier call of the same step had begun."""
        try:
            tasks = self.client.list_tasks(context_id)
        except PeerError as error:
            if error.retryable:
                raise
            return None  # it lists none
        return tasks[-1] if tasks else None

    def _ended(self, task: Task) -> Task:
        deadline, pause = now() + self.most_seconds, min(_FIRST_PAUSE, self.poll_every)
        while not task.state.is_final:
            if task.state.waits:
                task = self._answered(task)
                continue
            if now() >= deadline:
                self._give_up(task)
                raise PeerError(f"the task took longer than {self.most_seconds:g} s", peer=self.client.peer)
            sleep(pause)
            pause = min(2 * pause, self.poll_every)
            task = self.client.get(task.task_id)
        return task

    def _answered(self, task: Task) -> Task:
        """Have a person answer what a task asks, and go on with it."""
        asks = "asks" if task.state is TaskState.INPUT_REQUIRED else "asks to be let in somewhere"
        text = f"The agent `{self.__name__}` {asks}: {task.message or 'it does not say what for'}"
        answer = ask_person(Question(text=text, reason_code=task.state.value))
        if answer.from_nobody or answer.approved is not True:
            self._give_up(task)
            raise PeerError(
                f"nobody answered what it asked{f': {answer.reason}' if answer.reason else ''}", peer=self.client.peer
            )
        return self.client.send(
            answer.text or "Go on.",
            context_id=task.context_id,
            task_id=task.task_id,
            message_id=_digest(task.task_id, task.message, answer.text),
        )

    def _give_up(self, task: Task) -> None:
        if not task.task_id:
            return
        try:
            with shielded():
                self.client.cancel(task.task_id)
        except PeerError:  # it has ended, or is gone
            pass


def _calling(delegate: RemoteDelegate, name: str) -> Callable[[str], Any]:
    def call(brief: str) -> Any:
        return delegate.work(brief)

    call.__name__ = call.__qualname__ = name
    call.__annotations__ = {"brief": Annotated[str, pydantic.Field(description=_ABOUT_THE_BRIEF)], "return": Any}
    return call


def _context(brief: str) -> tuple[str, bool]:
    """The name of what a task belongs to, and whether a resumed run would give it the same."""
    ids = current_ids()
    if ids is None or not ids.run_id:
        return fresh_id(), False
    return _digest(ids.run_id, ids.prefix, brief), True


def _digest(*parts: str) -> str:
    """A name that says nothing of what it is made of: runs may be called by what is private."""
    return hashlib.blake2b(json.dumps(parts).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _value(task: Task, peer: str) -> Any:
    """What a task has made.

    Raises:
        PeerError: It ended otherwise.
    """
    if task.state is not TaskState.COMPLETED:
        raise PeerError(f"the task was {task.state.value}{f': {task.message}' if task.message else ''}", peer=peer)
    parts = [part for artifact in task.artifacts for part in artifact.parts]
    if all(part["type"] == "text" for part in parts):
        return "\n\n".join(part["text"] for part in parts if part["type"] == "text") or task.message
    return parts


def _as_name(name: str) -> str:
    plain = re.sub(r"\W+", "_", name.lower(), flags=re.ASCII).strip("_")[:60]
    return plain if plain and plain[0].isalpha() else f"agent_{plain}".rstrip("_")
