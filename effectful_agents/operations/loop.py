"""The operations of the agent loop: how a call of a skill becomes messages, requests, tool calls and a value.

    call_agent        a skill is called                      (`Skill.__apply__`)
      skill_prompt      which text it is asked with          (`operations.templates`)
      call_system       the system message is put together
        write_system      its sections are written down
      call_user         the user message is written
      steer             what the program has said meanwhile joins in
      call_assistant    one turn: a request and its decoded reply
        completion        the request itself, as handlers see it
          send_request      the request on its way to a model
      call_tool         one tool call is carried out
      deliver           the value that the call is about to return

`handlers.loop.AgentLoop` gives a meaning to the five `call_*` operations and to `write_system`, a handler of
`handlers.provision` to `send_request`. Every other handler intercepts some of them and forwards with `fwd`. A handler
of `call_agent` takes the skill by position only, since a skill may have a parameter of any name:

    def call_agent(self, skill, /, *args, **kwargs): ...
"""

from __future__ import annotations

import dataclasses
import inspect
import os
from collections.abc import Mapping, Sequence, Set
from typing import Any, Unpack

from effectful_agents.errors import MissingHandlerError, ModelForbidden, ToolCallDecodingError, ToolCallExecutionError
from effectful_agents.messages import (
    AssistantMessage,
    Message,
    Request,
    Response,
    SystemMessage,
    ToolCallID,
    ToolMessage,
    UserMessage,
)
from effectful_agents.operations.counting import count_tokens
from effectful_agents.operations.prompt import PromptSection
from effectful_agents.runtime import Operation
from effectful_agents.types import Skill, Tool

__all__ = [
    "AssistantResult",
    "DecodedToolCall",
    "ToolResult",
    "call_agent",
    "call_assistant",
    "call_id",
    "call_system",
    "call_tool",
    "call_user",
    "completion",
    "count_tokens",
    "deliver",
    "model_in_use",
    "send_request",
    "steer",
    "tool_result",
    "write_system",
]

_LOOP = (
    "Install `AgentLoop()` of `effectful_agents.handlers.loop`, or the whole stack with `handler(harness(model=…))`."
)


@dataclasses.dataclass(frozen=True, eq=False)
class DecodedToolCall[T]:
    """A tool call of the model, with its arguments as Python values.

    Attributes:
        tool: The tool that is called.
        bound_args: Its arguments.
        id: Identifier of the call, unique in its conversation.
        name: The tool's name as the model knows it.
        source: The Python expression that the call was decoded from, if it was one.
    """

    tool: Tool[..., T]
    bound_args: inspect.BoundArguments
    id: ToolCallID
    name: str
    source: str | None = None

    @property
    def result_type(self) -> Any:
        """The return type that the tool declares."""
        return self.tool.__signature__.return_annotation


type AssistantResult[T] = tuple[AssistantMessage, Sequence[DecodedToolCall[Any] | ToolCallDecodingError], T | None]
"""The reply as it goes into the history, its tool calls in order (one that could not be decoded stands there as its
error), and the answer where there were no tool calls."""

type ToolResult[T] = tuple[ToolMessage, T | ToolCallExecutionError, bool]
"""The result for the model, the value (or the error that a handler caught), and whether it is the call's answer."""

call_agent = Skill.__apply__
"""A skill is called: `call_agent(skill, *args, **kwargs)` gives its value.

A call that raises leaves no trace in any history. Installing a handler here is how to wrap whole calls. One that looks
at the value and may refuse it goes outside of `HistoryBuilder`, which keeps the messages as soon as the call returns.
"""


@Operation.define
def call_system(harness_prompt: PromptSection, agent_prompt: PromptSection) -> SystemMessage:
    """Write the system message of a conversation.

    Args:
        harness_prompt: What the handlers say about themselves. It starts empty; a handler appends a section and
            forwards, so the innermost handler's section comes first.
        agent_prompt: The task: what the loop found out about the skill that is called.

    Returns:
        The message, with both halves, as `write_system` writes them.
    """
    raise MissingHandlerError("call_system", _LOOP)


@Operation.define
def write_system(document: PromptSection) -> SystemMessage:
    """Write down the sections of a system message, when all of them are there.

    The rule of `call_system` performs it. A handler of `call_system` sees what stands further inside only; one that
    wants to see every section, wherever it stands, handles this.

    Args:
        document: It has no title; its sections are the halves of the message.

    Returns:
        The message.
    """
    raise MissingHandlerError("write_system", _LOOP)


@Operation.define
def call_user(user_prompt: PromptSection) -> UserMessage:
    """Write the user message that opens a call.

    Args:
        user_prompt: Its title is the skill that is called, its content the formatted docstring.

    Returns:
        The message.
    """
    raise MissingHandlerError("call_user", _LOOP)


@Operation.define
def call_assistant[T](
    messages: Sequence[Message],
    response_type: type[T],
    env: Mapping[str, Any],
    tools: Set[Tool] = frozenset(),
) -> AssistantResult[T]:
    """Take one turn: ask the model, decode its reply.

    The arguments say all there is to the request; no history is read behind the caller's back. A handler that offers
    more tools adds them to `tools` and forwards.

    Args:
        messages: The conversation that is sent.
        response_type: The type of the answer.
        env: The names that the skill sees: its arguments, then its lexical scope.
        tools: The tools that the model may call.

    Returns:
        The reply, its decoded tool calls, and the answer. A reply with tool calls has no answer.

    Raises:
        ToolCallDecodingError: There were tool calls, and none of them could be decoded.
        ResultDecodingError: The answer does not fit `response_type`.
        RefusalError: The model declined.
    """
    raise MissingHandlerError("call_assistant", _LOOP)


@Operation.define
def call_tool[T](tool_call: DecodedToolCall[T]) -> ToolResult[T]:
    """Carry out one tool call.

    Returns:
        The result for the model, the value, and whether the value is the answer of the whole call. That is False here,
        and True where a handler that offers a finalizing tool says so for its own.

    Raises:
        ToolCallExecutionError: The tool raised. A handler may catch it and return it in the place of the value.
    """
    raise MissingHandlerError("call_tool", _LOOP)


def tool_result(tool_call: DecodedToolCall[Any], content: str, value: Any = None) -> ToolResult[Any]:
    """What a handler of `call_tool` returns that answers a call itself: to deny it, or from a cache.

    Args:
        tool_call: The call.
        content: What the model is told.
        value: The value, for handlers further inside.

    >>> from effectful_agents import NotHandled, Skill, Tool, fwd, handler, harness
    >>> from effectful_agents.testing import ScriptedModel, calls
    >>> @Tool.define
    ... def delete(path: str) -> str:
    ...     '''Delete a file.'''
    ...     return "deleted"
    >>> @Skill.define
    ... def tidy() -> str:
    ...     '''Tidy up.'''
    ...     raise NotHandled
    >>> def deny(tool_call):
    ...     return tool_result(tool_call, "Nothing may be deleted.") if tool_call.tool == delete else fwd()
    >>> with handler(harness()), handler({call_tool: deny}):
    ...     with handler(ScriptedModel(calls("delete", path="/"), "I left everything.")):
    ...         tidy()
    'I left everything.'
    """
    return {"role": "tool", "tool_call_id": tool_call.id, "content": content}, value, False


@Operation.define
def steer() -> Sequence[UserMessage]:
    """The messages that the program hands to the running call, asked for before each turn; by default none.

    The loop appends them to the history, in order, so that the turn which begins already reads them.
    """
    return ()


@Operation.define
def deliver[T](value: T, response_type: type[T]) -> T:
    """Say what a call returns in the place of a value; by default the value itself.

    The loop performs it when there is an answer, before anything is told or kept of it: a handler that raises has the
    call leave no trace.

    Args:
        value: The answer, of a call that the program made or of one inside it.
        response_type: Its type.
    """
    return value


@Operation.define
def completion(**request: Unpack[Request]) -> Response:
    """Ask a model, and return its reply. Nothing else in the system does.

    This is what handlers intercept: to fill in settings, to count, to show, to answer in the place of a model
    (`effectful_agents.testing.ScriptedModel`). By default the request goes on its way as `send_request`, so that a
    handler of `completion` sees it wherever it stands.

    Where the environment has the variable `EFFECTFUL_AGENTS_FORBID_MODELS`, with any value but `0`, it does not.

    Raises:
        ProviderError: The service failed; see the branches of it in `effectful_agents.errors`.
        ModelForbidden: It would go on its way, and may not.
    """
    if os.environ.get("EFFECTFUL_AGENTS_FORBID_MODELS", "0") not in ("", "0"):
        raise ModelForbidden(_forbidden())
    return send_request(**request)


def _forbidden() -> str:
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
    asker = f" by the test `{test}`" if test else ""
    return (
        f"a real model would be asked{asker}, which is forbidden, by `forbid_models` of pytest or by the variable "
        "EFFECTFUL_AGENTS_FORBID_MODELS. Let a `ScriptedModel`, a `SchemaModel` or a `Cassette` of "
        "`effectful_agents.testing` answer, or mark the test with `@pytest.mark.allow_models`."
    )


@Operation.define
def send_request(**request: Unpack[Request]) -> Response:
    """Carry a request to a model, when every handler of `completion` has seen it.

    Only the default rule of `completion` performs it. A handler of `handlers.provision` takes the requests that are for
    the models it knows, and forwards others.

    Raises:
        ProviderError: The service failed.
    """
    raise MissingHandlerError(
        "completion",
        "No model is given: say which one answers, with `handler(harness(model=…))`, "
        "`handler(LiteLLMConfigurer(model=…))`, `handler(LocalModel())`, or in a test `handler(ScriptedModel(…))`.",
    )


@Operation.define
def model_in_use() -> str | None:
    """The model that requests go to which name none; None where nobody knows."""
    return None


@Operation.define
def call_id(position: int, index: int) -> ToolCallID:
    """Name a tool call that came without an identifier, or with one that is taken.

    Args:
        position: Place of the assistant message in the conversation.
        index: Place of the call in that message.

    Returns:
        A name made of the two, so that the same replies give the same names in every process.

    >>> call_id(4, 0)
    'call_4_0'
    """
    return f"call_{position}_{index}"
