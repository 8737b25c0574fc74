"""What the model is told: a reply that cannot be decoded, a tool that raised."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Any, override

from effectful_agents.errors.base import AgentsError
from effectful_agents.tracebacks import describe_exception, summary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from effectful_agents.messages import AssistantMessage, Message, Response, ToolCall, ToolMessage, UserMessage

__all__ = ["DecodingError", "ResultDecodingError", "ToolCallDecodingError", "ToolCallExecutionError"]


class DecodingError[E: BaseException](AgentsError, abc.ABC):
    """A reply of the model that cannot be turned into what was asked for.

    Attributes:
        original_error: What went wrong while decoding.
        response: All of the reply, where whoever received it refused it: nobody further inside has seen it, and it was
            paid for.
    """

    original_error: E
    response: Response | None = None
    # The model samples: asked again, it often gets it right.
    retryable = True

    @abc.abstractmethod
    def to_feedback_message(self, *, include_traceback: bool = True) -> Message:
        """The message that tells the model what was wrong with its reply."""


class ToolCallDecodingError[E: BaseException](DecodingError[E]):
    """A tool call that names no offered tool, or whose arguments do not fit.

    Attributes:
        original_error: What went wrong.
        raw_message: The assistant message that holds the call.
        raw_tool_call: The call itself.
        others: Errors of the other calls in the same message, when none of its calls could be decoded.
    """

    def __init__(
        self,
        original_error: E,
        raw_message: AssistantMessage,
        raw_tool_call: ToolCall,
        others: Sequence[ToolCallDecodingError] = (),
    ) -> None:
        name = raw_tool_call["function"]["name"]
        super().__init__(f"the model's call of `{name}` cannot be decoded: {summary(original_error)}")
        self.original_error = original_error
        self.raw_message = raw_message
        self.raw_tool_call = raw_tool_call
        self.others = tuple(others)

    @override
    def to_feedback_message(self, *, include_traceback: bool = True) -> ToolMessage:
        """The result of the call that could not be made: what was wrong with it."""
        problem = _misfit(self.original_error)
        return _tool_message(self.raw_tool_call["id"], f"This call was not made, it could not be decoded.\n{problem}")


class ResultDecodingError[E: BaseException](DecodingError[E]):
    """An answer that does not fit the declared return type.

    Attributes:
        original_error: What went wrong.
        raw_message: The assistant message that holds the answer.
    """

    def __init__(self, original_error: E, raw_message: AssistantMessage) -> None:
        super().__init__(f"the model's answer cannot be decoded: {summary(original_error)}")
        self.original_error = original_error
        self.raw_message = raw_message

    @override
    def to_feedback_message(self, *, include_traceback: bool = True) -> UserMessage:
        """A user message that says it is still the same call, and what to mend."""
        problem = _misfit(self.original_error)
        return {"role": "user", "content": f"Could not be decoded. Mend it, same call:\n{problem}"}


class ToolCallExecutionError[E: BaseException](AgentsError):
    """A tool was called rightly and raised.

    Attributes:
        original_error: What the tool raised.
        raw_tool_call: The decoded call (an `effectful_agents.operations.loop.DecodedToolCall`).
    """

    def __init__(self, original_error: E, raw_tool_call: Any) -> None:
        super().__init__(f"the tool `{raw_tool_call.name}` raised {summary(original_error)}")
        self.original_error = original_error
        self.raw_tool_call = raw_tool_call

    def to_feedback_message(self, *, include_traceback: bool = True) -> ToolMessage:
        """The result of the failed call: the exception, and where in the user's code it arose."""
        problem = describe_exception(self.original_error, include_traceback=include_traceback)
        return _tool_message(self.raw_tool_call.id, f"The tool raised an exception.\n{problem}")


def _misfit(error: BaseException) -> str:
    # That what does not fit is a ValueError says nothing that the text does not.
    return describe_exception(error, include_traceback=False).removeprefix("ValueError: ")


def _tool_message(tool_call_id: str, content: str) -> ToolMessage:
    return {"role": "tool", "tool_call_id": tool_call_id, "content": content}
