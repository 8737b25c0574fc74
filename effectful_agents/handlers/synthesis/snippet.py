"""Offering a session to the model, in which it runs Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from types import CodeType
from typing import Any

from effectful_agents.errors import ToolCallExecutionError
from effectful_agents.handlers.synthesis.session import ReplSession
from effectful_agents.messages import Message, UserMessage
from effectful_agents.operations.history import CompactionScope, compact_, get_history
from effectful_agents.operations.legibility import PromptInjectingInterpretation, with_section
from effectful_agents.operations.loop import (
    AssistantResult,
    DecodedToolCall,
    ToolResult,
    call_agent,
    call_assistant,
    call_tool,
    call_user,
)
from effectful_agents.operations.prompt import PromptSection, section
from effectful_agents.operations.session import exec_code, repl_env, repl_history
from effectful_agents.runtime import Operation, fwd, handler, implements
from effectful_agents.types import Scope, Skill, Tool
from effectful_agents.types.walk import ToolSet

__all__ = ["StatefulReplSynthesizer"]

_SECTION = section(
    "REPL session",
    "This message opens a new session of `exec_code`. The arguments of this call are bound in it by their names, and "
    "so are the names of the lexical scope. What an earlier session had bound is gone.",
)


@Operation.define
def _bindings() -> Mapping[str, Any]:
    """What the session of the running call has bound so far."""
    return {}


class StatefulReplSynthesizer(PromptInjectingInterpretation):
    """With the tool `exec_code` you run Python in a session.

    What it sees, returns and refuses is said in its own description: go by that, whatever other tools of the kind do.

    There is one session for each call. It begins with the user message that opens the call, and ends with your answer;
    no later call sees anything of it, even where the messages of this one are still in view. What has to last goes onto
    an object that the program owns: `self`, where there is one, or another object in the scope.

    After `self.rooms["attic"] = "dry"` a later call finds the value there. After `self.double = double`, with a
    function that you have defined and that has types on all its parameters, you are offered it as a tool from your
    next turn on, and later calls can call `self.double("la")`.
    """

    # Needs an executor (`effectful_agents.handlers.execution`). Anywhere inside the loop; inside of what reads the
    # scope for tools, so that it sees what the session has bound.

    def discover(self, env: Mapping[str, Any]) -> ToolSet:
        # The tools that it offers to a skill, for the manifest of a stack.
        return _TOOL

    @implements(call_agent)
    def call_agent(self, skill: Skill, /, *args: Any, **kwargs: Any) -> Any:
        session = ReplSession(Scope.of_call(skill, skill.arguments_of(*args, **kwargs)))

        def run(code: CodeType, compact: CompactionScope = CompactionScope.NONE) -> str:
            return session.exec_code(code)

        # Of a call inside this one these are others, so a session belongs to one call and ends with it.
        operations = {
            exec_code: run,
            repl_env: lambda: dict(session.locals),
            repl_history: lambda: session.prior_snippets,
            _bindings: lambda: session.bindings,
        }
        try:
            with handler(operations):
                return fwd()
        finally:
            session.close()

    @implements(call_user)
    def call_user(self, user_prompt: PromptSection) -> UserMessage:
        return fwd(with_section(user_prompt, _SECTION))

    @implements(call_assistant)
    def call_assistant(
        self,
        messages: Sequence[Message],
        response_type: Any,
        env: Mapping[str, Any],
        tools: Set[Tool] = frozenset(),
    ) -> AssistantResult[Any]:
        bound = _bindings()
        if bound:
            env = env.with_bindings(bound) if isinstance(env, Scope) else {**env, **bound}
        return fwd(messages, response_type, env, _TOOL.after(tools))

    @implements(call_tool)
    def call_tool(self, tool_call: DecodedToolCall) -> ToolResult[Any]:
        result = fwd()
        if tool_call.tool == exec_code and not isinstance(result[1], ToolCallExecutionError):
            # Only now: of code that raised the model needs what a compaction would drop.
            scope = tool_call.bound_args.arguments.get("compact", CompactionScope.NONE)
            compact_(get_history(), tool_call.id, scope)
        return result


_TOOL = ToolSet((exec_code,))
