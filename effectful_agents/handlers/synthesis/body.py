"""Answering a skill with its body: the model writes the function, and its value is the answer."""

from __future__ import annotations

import collections.abc
import inspect
import types
import typing
import weakref
from collections.abc import Callable, Mapping, MutableMapping, Sequence, Set
from typing import Any

import pydantic

from effectful_agents.encoding import type_adapter
from effectful_agents.encoding.decoding import explain
from effectful_agents.encoding.names import plain_type, type_name
from effectful_agents.errors import MissingHandlerError, ToolCallDecodingError, ToolCallExecutionError
from effectful_agents.handlers.synthesis.implementation import MethodSkillBody, SkillBody, implemented_by
from effectful_agents.messages import AssistantMessage, Message
from effectful_agents.operations.history import CompactionScope, compact_, get_history
from effectful_agents.operations.legibility import PromptInjectingInterpretation
from effectful_agents.operations.loop import (
    AssistantResult,
    DecodedToolCall,
    ToolResult,
    call_agent,
    call_assistant,
    call_tool,
)
from effectful_agents.runtime import fwd, handler, implements, wait
from effectful_agents.types import Risk, Scope, Skill, Tool
from effectful_agents.types.walk import ToolSet

__all__ = ["SUBMISSION", "FinalBodySynthesizer"]


class FinalBodySynthesizer(PromptInjectingInterpretation):
    """There are two ways to answer a skill: to state the answer, or to submit a function that computes it.

    The latter is done with the tool `write_and_run_body`. Submit a function where the work is easier to get wrong by
    hand than in code, as in a search, a count or a long calculation, and where the skill's docstring has examples that
    the answer has to agree with. If you have the answer already, state it; a function that only returns a constant is
    no use.

    What to submit is said in the tool's own description: go by that, whatever other tools of the kind do. The function
    may use every name of the lexical scope. It is judged by the examples in the skill's docstring: it gets that
    docstring, and they are run, with calls of the skill going to your function. If one of them fails, or the function
    raises, you see why and may submit another.

    When the function has run, its value is the answer and the call is over. So submit it alone, in a turn without other
    tool calls; whatever you need from other tools, call them in turns before. A submission answers one call only: an
    earlier one in this conversation says nothing about the call of now.

    A skill that is to return a function is another matter. There the function is your answer, stated as such, and this
    tool is not offered. Its signature is the one in the return type of the skill, without `self`; it needs annotations
    on all parameters and on its result; and its own docstring stays. If you are asked for examples, write them there:
    they are run, and have to hold.
    """

    # Needs an executor (`effectful_agents.handlers.execution`). Put it inside `HistoryBuilder`, and outside of
    # `TenacityRetryer`, so that it sees whether a submission failed.

    def discover(self, env: Mapping[str, Any]) -> ToolSet:
        # The tools that it offers to a skill, for the manifest of a stack.
        if not isinstance(env, Scope) or _is_function(env.skill.__signature__.return_annotation):
            return ToolSet()
        return _submission(env.skill)

    @implements(call_agent)
    def call_agent(self, skill: Skill, /, *args: Any, **kwargs: Any) -> Any:
        [submit] = _submission(skill)

        def write_and_run_body(implementation: Callable[..., Any], compact: Any = None) -> Any:
            return _value(skill, implementation, args, kwargs)

        # A call of the same skill inside this one has arguments of its own.
        with handler({submit: write_and_run_body}):
            return fwd()

    @implements(call_assistant)
    def call_assistant(
        self,
        messages: Sequence[Message],
        response_type: Any,
        env: Mapping[str, Any],
        tools: Set[Tool] = frozenset(),
    ) -> AssistantResult[Any]:
        if not isinstance(env, Scope) or _is_function(response_type):
            return fwd()
        submit = _submission(env.skill)
        if submit <= tools:
            return fwd()
        message, tool_calls, answer = fwd(messages, response_type, env, submit.after(tools))
        return message, _alone(message, tool_calls), answer

    @implements(call_tool)
    def call_tool(self, tool_call: DecodedToolCall) -> ToolResult[Any]:
        message, value, is_final = fwd()
        if not _is_submission(tool_call) or isinstance(value, ToolCallExecutionError):
            return message, value, is_final
        # Now or never: the call ends here.
        compact_(get_history(), tool_call.id, tool_call.bound_args.arguments.get("compact", CompactionScope.NONE))
        return message, value, True


def _is_function(response_type: Any) -> bool:
    plain = plain_type(response_type)
    return (typing.get_origin(plain) or plain) is collections.abc.Callable


def _value(skill: Skill, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What the function makes of the arguments of the call, as a value of the type that the skill returns."""
    bound = skill.arguments_of(*args, **kwargs)
    receiver = () if skill.receiver is None else (skill.receiver,)
    with implemented_by(skill, function):
        value = function(*receiver, *bound.args, **bound.kwargs)
        if inspect.isawaitable(value):
            value = wait(value)
    result_type = skill.result_type(*args, **kwargs)
    try:
        return type_adapter(result_type).validate_python(value)
    except pydantic.ValidationError as error:
        problem = explain(error.errors(include_url=False, include_context=False))
        raise ValueError(f"the value of the function is no `{type_name(result_type)}`: {problem}") from error


def _alone(
    message: AssistantMessage, tool_calls: Sequence[DecodedToolCall[Any] | ToolCallDecodingError]
) -> Sequence[DecodedToolCall[Any] | ToolCallDecodingError]:
    """The calls of a turn, a submission among others refused: each is answered, and the others are made."""
    if len(tool_calls) < 2:
        return tool_calls
    return [_refused(message, call) if _is_submission(call) else call for call in tool_calls]


def _refused(message: AssistantMessage, call: Any) -> ToolCallDecodingError:
    raw = next(one for one in message.get("tool_calls", ()) if one["id"] == call.id)
    error = ValueError(
        f"`{SUBMISSION}` ends the call, so it has to be the only tool call of its turn. Submit it alone."
    )
    return ToolCallDecodingError(error, message, raw)


def _is_submission(call: Any) -> bool:
    return isinstance(call, DecodedToolCall) and isinstance(call.tool, _Submission)


# --- the tool ---------------------------------------------------------------------------------------------------------

SUBMISSION = "write_and_run_body"
"""The name of the tool that answers a skill with its body."""


def _write_and_run_body(implementation: Any, compact: Any = CompactionScope.NONE) -> Any:
    """Answer this call with a function: it is run on the arguments of the call, and its value is the answer.

    Write `{signature}`: a function with the parameters of the skill, by their names. Annotations are not needed; those
    of the skill hold.{receiver} It is checked, and the examples in the skill's docstring are run, before it is run on
    the arguments. The call then ends: this has to be the only tool call of its turn.

    Args:
        implementation: The function.
        compact: What of the conversation to drop when the function has given the answer: `none`, nothing; `turn`, your
            earlier turns in this call; `conversation`, the earlier calls as well. The request and this turn stay.
    """
    raise MissingHandlerError(
        SUBMISSION, "Install `FinalBodySynthesizer()` of `effectful_agents.handlers.synthesis`, and an executor."
    )


_RECEIVER = " The first parameter is `{name}`, the object whose method the skill is."

# For a skill that is bound, and for the one that it was made from.
_submissions: MutableMapping[Tool, dict[bool, ToolSet]] = weakref.WeakKeyDictionary()


class _Submission(Tool):
    """A tool that answers the skill which it was made for."""

    runs_code = True


def _submission(skill: Skill) -> ToolSet:
    """The tool that answers a skill, as a set; made once, since its description takes longer than a call."""
    made = _submissions.setdefault(skill.function, {})
    bound = skill.receiver is not None
    if bound not in made:
        made[bound] = ToolSet((_made(skill),))
    return made[bound]


def _made(skill: Skill) -> _Submission:
    signature = skill.function.__signature__
    parameters = [one.annotation for one in signature.parameters.values()]
    bound = skill.receiver is not None
    kind: Any = MethodSkillBody if bound else SkillBody
    tp = kind[parameters[bound:], signature.return_annotation]
    function = types.FunctionType(_write_and_run_body.__code__, globals(), SUBMISSION, _write_and_run_body.__defaults__)
    function.__annotations__ = {"implementation": tp, "compact": CompactionScope, "return": signature.return_annotation}
    names = list(signature.parameters)
    text = inspect.cleandoc(_write_and_run_body.__doc__ or "").format(
        signature=f"def {skill.__name__}({', '.join(names)})",
        receiver=_RECEIVER.format(name=names[0]) if bound else "",
    )
    tool: Any = _Submission.define(function, description=text, risk=Risk.DESTRUCTIVE, rerun=True)
    return tool
