"""Having the model call tools by writing Python, all of them or those that JSON cannot say."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

from effectful_agents.encoding import tool_codec
from effectful_agents.errors import ConfigurationError, DefinitionError, ToolCallDecodingError
from effectful_agents.handlers.synthesis.expression import CallExpression, ExpressionTool, expression_tool
from effectful_agents.messages import Message
from effectful_agents.operations.legibility import PromptInjectingInterpretation
from effectful_agents.operations.loop import AssistantResult, DecodedToolCall, call_assistant
from effectful_agents.runtime import fwd, implements
from effectful_agents.runtime.generics import has_type_variables
from effectful_agents.types import Scope, Tool
from effectful_agents.types.walk import ToolSet, implicit_target, is_agent, is_tool, standing_for, tools_of

__all__ = ["ExpressionToolCaller", "MixedToolCaller"]


class ExpressionToolCaller(PromptInjectingInterpretation):
    """You call the tools of the lexical scope by writing Python.

    Each has one parameter, `call`, for an expression; its description says by what name to call it there, and with what
    signature. Go by that name, and not by one that you
    make up from the table of the lexical scope.

    The arguments in the call can be any expressions over the names of the lexical scope, and over what you have bound
    in a REPL session: `order(basket, discount=rate(customer) / 2)`. The expression has to be one call of that tool and
    nothing around it: no statement, no assignment, no `:=`. What needs a name is bound with `exec_code` before.
    """

    # Put it right outside of an extractor made with `json_only=False`, whose tools it replaces; tools of handlers
    # between the two are replaced as well if they are in the scope. Without an extractor further inside it has nothing
    # to do. Needs an executor (`effectful_agents.handlers.execution`).

    @implements(call_assistant)
    def call_assistant(
        self,
        messages: Sequence[Message],
        response_type: Any,
        env: Mapping[str, Any],
        tools: Set[Tool] = frozenset(),
    ) -> AssistantResult[Any]:
        message, tool_calls, answer = fwd(messages, response_type, env, self._offered(env, tools))
        return message, [_meant(call) for call in tool_calls], answer

    def wraps(self, tool: Tool) -> bool:
        # Whether a tool of the scope is called by an expression.
        return True

    def _offered(self, env: Mapping[str, Any], tools: Set[Tool]) -> Set[Tool]:
        """The tools of a request, the same set for the same tools: what is made of them is kept with it."""
        if not isinstance(tools, ToolSet):
            return self._replaced(env, tuple(tools))
        skill = env.skill if isinstance(env, Scope) else None
        key = ExpressionToolCaller, type(self), skill
        made = tools.memo.get(key)
        if made is None:
            made = tools.memo[key] = self._replaced(env, tools.order)
        return made

    def _replaced(self, env: Mapping[str, Any], tools: Sequence[Tool]) -> ToolSet:
        skill = env.skill if isinstance(env, Scope) else None
        paths = dict(_paths(env, tools))
        return ToolSet(
            expression_tool(tool, paths[tool]) if tool in paths and tool != skill and self.wraps(tool) else tool
            for tool in tools
        )


class MixedToolCaller(ExpressionToolCaller):
    """You call most tools by their names, with JSON arguments that fit their schemas.

    Some have signatures that no schema can say: with type variables, with `*args` or `**kwargs`, or with types that
    have no JSON form. Those you call by writing Python. They have one parameter, `call`, for an expression, and their
    description says by what name to call them there, and with what signature.

    Which way a tool is called is not for you to choose: its description and schema say it.

    The arguments in such a call can be any expressions over the names of the lexical scope, and over what you have
    bound in a REPL session: `order(basket, discount=rate(customer) / 2)`. The expression has to be one call of that
    tool and nothing around it: no statement, no assignment, no `:=`. What needs a name is bound with `exec_code`
    before.
    """

    # As `ExpressionToolCaller`, for those tools only that a JSON schema cannot describe faithfully.

    def wraps(self, tool: Tool) -> bool:
        if tool.parameters is not None:  # somebody has said what the schema is
            return False
        parameters = tool.__signature__.parameters.values()
        variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        if any(one.kind in variadic or has_type_variables(one.annotation) for one in parameters):
            return True
        try:
            tool_codec(tool).definition()
        except DefinitionError:  # a mistake, and no type for Python only
            raise
        except ConfigurationError:
            return True
        return False


def _meant(call: DecodedToolCall[Any] | ToolCallDecodingError) -> DecodedToolCall[Any] | ToolCallDecodingError:
    """The call that an expression says, under the name and identifier that the conversation has for it."""
    if isinstance(call, ToolCallDecodingError) or not isinstance(call.tool, ExpressionTool):
        return call
    expression: CallExpression = call.bound_args.arguments["call"]
    return dataclasses.replace(expression, id=call.id, name=call.name)


def _paths(env: Mapping[str, Any], tools: Sequence[Tool]) -> Iterator[tuple[Tool, str]]:
    """How code in the scope calls the tools that the scope holds; of several ways the nearest comes last."""
    wanted = set(tools)
    targets = {id(target): tool for tool in tools if (target := implicit_target(tool)) is not None}
    skill = env.skill if isinstance(env, Scope) else None
    receiver = skill.receiver if skill is not None else None
    for name, value in reversed(list(env.items())):
        if not isinstance(name, str) or not name.isidentifier() or (name[0] == "_" and value is not receiver):
            continue
        if is_tool(value):
            if value in wanted:
                yield value, name
        elif id(value) in targets:
            yield targets[id(value)], name
        elif value is not None and (value is receiver or is_agent(value)):
            for tool in tools_of(value, _known):
                if tool in wanted:
                    yield tool, f"{name}.{_attribute(value, tool)}"


def _known(function: Any) -> Tool | None:
    """The tool that an extractor has made of a function."""
    return standing_for(function) if "__implicit_tool__" in function.__dict__ else None


def _attribute(holder: Any, tool: Tool) -> str:
    """The name under which an object has a tool, which need not be the tool's own."""
    names = dict.fromkeys((tool.__name__, tool.__qualname__.rpartition(".")[2], *dir(holder)))
    return next((name for name in names if _is_named(holder, name, tool)), tool.__name__)


def _is_named(holder: Any, name: str, tool: Tool) -> bool:
    value = inspect.getattr_static(holder, name, None)
    value = getattr(value, "__func__", value) if isinstance(value, classmethod | staticmethod) else value
    return value is not None and (value is tool or value is tool.function or value is implicit_target(tool.function))
