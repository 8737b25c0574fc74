"""One call of a tool, in a thread of its own: what it asks people meanwhile, how far it is, and what comes of it."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from collections.abc import Callable, Mapping, MutableSequence
from typing import Any

import mcp_types

from effectful_agents.encoding import tool_codec
from effectful_agents.errors import Cancelled, ToolCallExecutionError
from effectful_agents.harness.serving.mcp.answers import NOBODY, blocks_of, failed, refused
from effectful_agents.harness.serving.mcp.offered import Offered
from effectful_agents.messages import Message
from effectful_agents.operations.authority import authorize
from effectful_agents.operations.call_context import CallContext, current_call_context
from effectful_agents.operations.calls_by_code import carrying_out
from effectful_agents.operations.effects import bound_to, effect_of_call
from effectful_agents.operations.history import conversation
from effectful_agents.operations.loop import DecodedToolCall, call_tool
from effectful_agents.operations.policy import Answer, Question, is_decided, request_approval
from effectful_agents.operations.steps import Phase, StepEvent, ToolStep, emit
from effectful_agents.runtime import Interpretation, InThread, Layers, fwd, handler, pause
from effectful_agents.types import History, Skill

__all__ = ["Call", "Conversations", "Done"]


@dataclasses.dataclass(frozen=True, slots=True)
class Done:
    """A step of a call that is done.

    Attributes:
        text: Its place in the call, and what it was.
    """

    text: str


class Conversations:
    """The conversations of one client with the agents of the script."""

    def __init__(self) -> None:
        self._histories: dict[int, MutableSequence[Message]] = {}

    def of(self, skill: Skill[..., Any]) -> MutableSequence[Message] | None:
        """That with the agent of a skill; None for a skill that is of none."""
        agent = skill.agent
        return None if agent is None else self._histories.setdefault(id(agent), History())


class Call:
    """A call that has begun.

    Args:
        offered: The tool.
        arguments: What the client sends.
        stack: The handlers in which it is made.
        conversations: Those of the client.
        context: The trace that it belongs to.
        follows: Whether the client wants to know of each step that is done.
    """

    def __init__(
        self,
        offered: Offered,
        arguments: Mapping[str, Any],
        stack: Interpretation,
        conversations: Conversations,
        context: CallContext,
        follows: bool,
    ) -> None:
        self.name = offered.tool.__name__
        self._offered = offered
        self._arguments = dict(arguments)
        own: dict[Any, Callable[..., Any]] = {
            current_call_context: lambda: context,
            conversation: lambda skill: fwd() if (found := conversations.of(skill)) is None else found,
        }
        if follows:  # to handle it has replies asked for in pieces
            own[emit] = self._heard
        # Outermost: a script may bring somebody of its own who is asked.
        self._stack = Layers({request_approval: self._ask}, stack, own)
        self._loop = asyncio.get_running_loop()
        self._events: asyncio.Queue[Question | Done | Any] = asyncio.Queue()
        self._asking = threading.Lock()
        self._answered = threading.Event()
        self._answer: Answer = NOBODY
        self._thread = InThread(self._run, "effectful-agents-mcp")

    async def next(self) -> Question | Done | Any:
        """The next question that it asks or step that it has done, or else its result."""
        return await self._events.get()

    def answer(self, answer: Answer) -> None:
        """Let it go on with an answer."""
        self._answer = answer
        self._answered.set()

    def abandon(self) -> None:
        """Have it end at its next operation; nobody waits for it any more."""
        self._thread.abandon(Cancelled, lambda: None)
        self.answer(NOBODY)

    # --- in the thread ------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            result = self._result()
        except BaseException as error:  # a tool may end its process, and this is not the one that it means
            result = failed(self.name, error, by_tool=False)
        self._post(result)

    def _result(self) -> Any:
        tool = self._offered.tool
        try:
            bound = tool_codec(tool).decode(self._arguments)
        except ValueError as error:
            return refused(str(error))
        with handler(self._stack):
            effect = effect_of_call(tool, bound)
            if is_decided():
                effect = authorize(effect)
                bound = bound_to(bound.signature, effect.arguments)
            try:
                with carrying_out(tool):
                    message, value, _ = call_tool(DecodedToolCall(tool, bound, "call", self.name))
            except ToolCallExecutionError as error:
                return failed(self.name, error.original_error, by_tool=True)
            if isinstance(value, ToolCallExecutionError):
                return failed(self.name, value.original_error, by_tool=True)
            blocks = blocks_of(message["content"])
            return mcp_types.CallToolResult(content=blocks, structured_content=self._offered.structured(value))

    def _ask(self, question: Question) -> Answer:
        with self._asking:  # tools of one turn may ask at the same time
            self._answered.clear()
            self._post(question)
            pause(until=self._answered)
            return self._answer

    def _heard(self, event: Any) -> None:
        fwd()
        if isinstance(event, StepEvent) and event.phase is Phase.COMPLETED:
            what = event.tool_call.name if isinstance(event, ToolStep) else "model"
            self._post(Done(f"{event.step_id} {what}"))

    def _post(self, event: Any) -> None:
        self._loop.call_soon_threadsafe(self._events.put_nowait, event)
