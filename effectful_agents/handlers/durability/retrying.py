"""Asking again when a reply cannot be decoded, and telling the model when a tool raised."""

from __future__ import annotations

import contextvars
from collections.abc import Mapping, MutableSequence, Sequence, Set
from typing import Any

import tenacity

from effectful_agents.errors import DecodingError, ToolCallExecutionError
from effectful_agents.messages import Message
from effectful_agents.operations.history import get_history
from effectful_agents.operations.legibility import PromptInjectingInterpretation
from effectful_agents.operations.loop import AssistantResult, DecodedToolCall, ToolResult, call_assistant, call_tool
from effectful_agents.operations.world import sleep
from effectful_agents.runtime import fwd, implements
from effectful_agents.types import Tool
from effectful_agents.types.history import stand_in

__all__ = ["TenacityRetryer"]


# The turn or tool call that a retryer in this context is busy with. Of several retryers the innermost decides: attempts
# would multiply if the ones outside repeated its repetitions.
_taken_on: contextvars.ContextVar[Any] = contextvars.ContextVar("_taken_on", default=None)


class TenacityRetryer(PromptInjectingInterpretation):
    """A reply of yours that cannot be decoded is not the end of the call.

    If the answer does not fit the return type, or the arguments of your tool calls do not fit their parameters, you are
    shown your reply and the error, and asked again. The error stands in the place of the tool's result; for an answer
    it comes as a user message, which says that it is still the same call.

    You get a few attempts, then the call fails. So read the error and change what it complains about; the same reply in
    other words will be refused again. Once an attempt succeeds the failed ones are removed from the conversation.

    A tool that raises an exception is another matter: its traceback is the result of that call, it uses up no attempt,
    and the conversation goes on. Learn from it what to do next.
    """

    # Put it inside `HistoryBuilder`, which records the failed attempts that the next one reads. Of several the
    # innermost decides, and the others let everything pass.

    def __init__(
        self,
        catch_tool_errors: type[BaseException] | tuple[type[BaseException], ...] = Exception,
        stop: Any = None,
        **options: Any,
    ) -> None:
        # catch_tool_errors: what of a tool the model is told about; anything else that a tool raises ends the call.
        # stop, options: as `tenacity.Retrying` takes them; by default four attempts, without a pause.
        self.catch_tool_errors = catch_tool_errors
        rules: dict[str, Any] = {
            "stop": stop or tenacity.stop_after_attempt(4),
            "retry": tenacity.retry_if_exception_type(DecodingError),
            "reraise": True,
            "sleep": sleep,
        }
        self.call_assistant_retryer = tenacity.Retrying(**(rules | options))

    def manifest(self) -> Mapping[str, object]:
        # What the manifest of a stack says of it.
        stop = self.call_assistant_retryer.stop
        return {
            "limits": {"attempts": stop.max_attempt_number} if isinstance(stop, tenacity.stop_after_attempt) else {}
        }

    @implements(call_assistant)
    def call_assistant(
        self,
        messages: Sequence[Message],
        response_type: Any,
        env: Mapping[str, Any],
        tools: Set[Tool] = frozenset(),
    ) -> AssistantResult[Any]:
        history, outer = get_history(), _taken_on.get()
        if outer is history:
            return fwd()
        start = len(history)
        _taken_on.set(history)
        try:
            try:
                # Nearly every turn succeeds at once; tenacity, which takes longer than the rest of the turn, is for
                # others.
                return fwd()
            except Exception as error:
                return self._ask_again(error, history, start, (messages, response_type, env, tools))
        except BaseException:
            del history[start:]
            raise
        finally:
            _taken_on.set(outer)

    def _ask_again(
        self, failure: Exception, history: MutableSequence[Message], start: int, arguments: tuple[Any, ...]
    ) -> AssistantResult[Any]:
        messages, *rest = arguments
        pending: Exception | None = failure

        def attempt() -> AssistantResult[Any]:
            nonlocal pending
            if pending is not None:  # the first attempt, which has been made already
                pending, raised = None, pending
                raise raised
            if messages is history:
                return fwd(history, *rest)
            return fwd(stand_in([*messages, *history[start:]], messages, history), *rest)

        reply = self.call_assistant_retryer.copy()(attempt)
        del history[start:]
        return reply

    @implements(call_tool)
    def call_tool(self, tool_call: DecodedToolCall) -> ToolResult[Any]:
        outer = _taken_on.get()
        if outer is tool_call:
            return fwd()
        _taken_on.set(tool_call)
        try:
            return fwd()
        except ToolCallExecutionError as error:
            if isinstance(error.original_error, self.catch_tool_errors):
                return error.to_feedback_message(), error, False
            raise
        finally:
            _taken_on.set(outer)
