"""The agent loop: the terminal rule of the operations that a call of a skill consists of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any, Literal

from effectful_agents.encoding import answer_codec, encode_result, render_section
from effectful_agents.errors import (
    AgentsError,
    ConfigurationError,
    EncodingError,
    LimitExceeded,
    OptionError,
    ToolCallExecutionError,
)
from effectful_agents.handlers.loop.offer import offer
from effectful_agents.handlers.loop.prompts import brief_task, full_task, is_one_of_several, user_section
from effectful_agents.handlers.loop.reply import decode_answer, decode_tool_calls, read_reply
from effectful_agents.handlers.loop.timing import tool_value
from effectful_agents.handlers.loop.tool_calls import carry_out
from effectful_agents.messages import Message, Request, SystemMessage, ToolMessage, UserMessage
from effectful_agents.operations.history import append_message, get_history
from effectful_agents.operations.legibility import PromptInjectingInterpretation, with_section
from effectful_agents.operations.loop import (
    AssistantResult,
    DecodedToolCall,
    ToolResult,
    call_agent,
    call_assistant,
    call_system,
    call_tool,
    call_user,
    deliver,
    steer,
    write_system,
)
from effectful_agents.operations.prompt import PromptSection, section
from effectful_agents.operations.steps import ids_of_call
from effectful_agents.operations.telling import ask, tell_end
from effectful_agents.operations.templates import prompted, prompted_tools
from effectful_agents.runtime import SignalScope, Term, check_stopped, implements
from effectful_agents.types import Scope, Skill, Tool
from effectful_agents.types.kinds import is_a

__all__ = ["AgentLoop"]


class AgentLoop(PromptInjectingInterpretation):
    """You answer calls of Python functions. This is how the conversation is put together.

    A *call* is one invocation of a skill by the program. It opens with one user message, which names the skill and
    holds the request. A *turn* is one request to you and your reply. In a turn you do one of two things. You call
    tools: their results are added to the conversation, and you get another turn. Or you answer: the call ends, and the
    program gets your answer as the value of the call. A turn that calls tools is no answer, whatever text stands beside
    the calls. So call all the tools you need first, and answer in a turn of its own.

    If the skill returns `str`, the program receives your message as it stands, to the letter. Write the value itself:
    no introduction, no closing words, no remark on how you found it. For every other return type your answer is JSON in
    the form that you are given, and it is decoded into a Python value of that type.

    A new user message means that the earlier call is over and that this is another question. There is one exception,
    and it says so itself: a message that your answer could not be decoded belongs to the same call. Earlier calls are
    in view only where an agent remembers them.

    What outlasts a call is what the program owns: the agent (`self`) and the other objects in the lexical scope. The
    user message, not the heading of this system message, says which skill is called now.
    """

    # Outermost in a stack: it forwards to nothing. `HistoryBuilder` has to be inside it.
    #
    # Args:
    #     turns: Turns that a call may take, at least 1.
    #     depth: Calls that a call may be nested in. Two skills that see each other may call each other for ever.
    #     tools_at_once: Tool calls of one turn that may run at the same time, at least 1.
    #     system_prompt: "full" writes both halves of the system message. "brief" has nothing in it but the docstring of
    #         the agent; where there is none, the conversation has no system message. And its user messages are the
    #         docstrings of the skills, without their signatures unless an agent has several.
    #     strict_tools: Send the tools in the strict form of their schemas, those that have one: a service that knows
    #         it holds the model to it. Every parameter is then required, and null stands for a default.
    #     strict_decoding: Forgive nothing of what is listed in `encoding/forgiving.py`.

    def __init__(
        self,
        *,
        turns: int = 50,
        depth: int = 16,
        tools_at_once: int = 8,
        system_prompt: Literal["full", "brief"] = "full",
        strict_tools: bool = False,
        strict_decoding: bool = False,
    ) -> None:
        if not isinstance(turns, int) or turns < 1:
            raise OptionError(f"`turns` is {turns!r}; it is a number of turns, at least 1.")
        if not isinstance(depth, int) or depth < 0:
            raise OptionError(f"`depth` is {depth!r}; it is a number of calls, 0 for none.")
        if not isinstance(tools_at_once, int) or tools_at_once < 1:
            raise OptionError(f"`tools_at_once` is {tools_at_once!r}; it is a number of calls, at least 1.")
        if system_prompt not in ("full", "brief"):
            raise OptionError(f"`system_prompt` is {system_prompt!r}; it can be 'full' or 'brief'.")
        self.turns = turns
        self.depth = depth
        self.tools_at_once = tools_at_once
        self.brief = system_prompt == "brief"
        self.strict_tools = strict_tools
        self.strict_decoding = strict_decoding

    def manifest(self) -> Mapping[str, object]:
        # What the manifest of a stack says of it.
        limits = {"turns": self.turns, "depth": self.depth, "tools_at_once": self.tools_at_once}
        strict = {"tools": self.strict_tools, "decoding": self.strict_decoding}
        return {"limits": limits, "system_prompt": "brief" if self.brief else "full", "strict": strict}

    @implements(call_agent)
    def call_agent(self, skill: Skill, /, *args: Any, **kwargs: Any) -> Any:
        skill = prompted(skill)
        scope = _open_scope(skill, args, kwargs)
        response_type = _response_type(skill, args, kwargs)
        ids = ids_of_call(skill)
        if ids.depth > self.depth:
            error = LimitExceeded(
                "depth",
                self.depth,
                advice=f"`{skill.__name__}` was called by a call inside a call, and so on. Do two skills offer each "
                "other? Give one a name that begins with an underscore, or allow more with `AgentLoop(depth=…)`.",
            )
            error.ends_call = True
            raise error
        with SignalScope(skill), ids:
            value = deliver(self._answer(skill, scope, response_type), response_type)
            tell_end(ids, value)
            check_stopped()
            return value

    def _answer(self, skill: Skill, scope: Scope, response_type: Any) -> Any:
        history = get_history()
        if not history or history[0]["role"] != "system":
            task = brief_task(skill) if self.brief else full_task(skill, scope)
            system = call_system(section("Harness"), task)
            if system["content"]:  # some providers refuse an empty one
                history.insert(0, system)
        heading = not self.brief or is_one_of_several(skill)
        append_message(call_user(user_section(skill, scope, heading=heading)))

        for _ in range(self.turns):
            for steering in steer():
                append_message(steering)
            message, tool_calls, answer = call_assistant(get_history(), response_type, scope, frozenset())
            append_message(message)
            if not tool_calls:
                return answer
            final = carry_out(message, tool_calls, self.tools_at_once)
            if final is not None:
                return final[0]
        raise LimitExceeded(
            "turns",
            self.turns,
            messages=get_history(),
            advice=f"`{skill.__name__}` was not answered; give `harness(turns=…)` a higher one if it needs more.",
        )

    @implements(call_system)
    def call_system(self, harness_prompt: PromptSection, agent_prompt: PromptSection) -> SystemMessage:
        if self.brief:
            return write_system(section("", agent_prompt))
        return write_system(section("", with_section(harness_prompt, self.prompt_section()), agent_prompt))

    @implements(write_system)
    def write_system(self, document: PromptSection) -> SystemMessage:
        return {"role": "system", "content": _text(document)}

    @implements(call_user)
    def call_user(self, user_prompt: PromptSection) -> UserMessage:
        return {"role": "user", "content": _text(section("", user_prompt))}

    @implements(call_assistant)
    def call_assistant(
        self,
        messages: Sequence[Message],
        response_type: Any,
        env: Mapping[str, Any],
        tools: Set[Tool] = frozenset(),
    ) -> AssistantResult[Any]:
        offered = offer(prompted_tools(tools), getattr(env, "skill", None), strict=self.strict_tools)
        request: Request = {"messages": list(messages)}
        if offered.definitions:
            request["tools"] = offered.definitions
        response_format = answer_codec(response_type).response_format
        if response_format is not None:
            request["response_format"] = response_format
        response = ask(request)

        reply = read_reply(response, messages)
        if reply.arguments:
            calls = decode_tool_calls(reply, offered.tools, env, strict=self.strict_decoding)
            return reply.message, calls, None
        return reply.message, [], decode_answer(reply, response_type, env, strict=self.strict_decoding)

    @implements(call_tool)
    def call_tool(self, tool_call: DecodedToolCall) -> ToolResult[Any]:
        try:
            value = tool_value(tool_call)
        except Exception as error:
            if isinstance(error, AgentsError) and error.ends_call:
                raise
            raise ToolCallExecutionError(error, tool_call) from error
        try:
            content = encode_result(tool_call.tool, value)
        except EncodingError as error:
            raise ToolCallExecutionError(error, tool_call) from error
        message: ToolMessage = {"role": "tool", "tool_call_id": tool_call.id, "content": content}
        return message, value, False


def _response_type(skill: Skill, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The type of the answer; one that no model could write is told before anything is asked."""
    response_type = skill.result_type(*args, **kwargs)
    try:
        answer_codec(response_type)
    except EncodingError as error:
        raise EncodingError(f"the skill `{skill.__name__}` cannot be answered by a model: {error}") from error
    return response_type


def _open_scope(skill: Skill, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Scope:
    bound = skill.arguments_of(*args, **kwargs)
    for name, value in bound.arguments.items():
        if is_a(value, Term):
            raise ConfigurationError(
                f"the argument `{name}` of the skill `{skill.__name__}` is an uninterpreted term, not a value: the "
                "operation it is made of has no handler here."
            )
    return Scope.of_call(skill, bound)


def _text(document: PromptSection) -> Any:
    """A rendered prompt: plain text where there is nothing but text, which every provider accepts."""
    parts = render_section(document)
    texts = [part["text"] for part in parts if part["type"] == "text"]
    return "".join(texts) if len(texts) == len(parts) else parts
