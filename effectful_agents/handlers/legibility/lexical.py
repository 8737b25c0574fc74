"""Offering the tools of a skill's lexical scope."""

from __future__ import annotations

import logging
import operator
import types
from collections.abc import Mapping, Sequence, Set
from typing import Any

from effectful_agents.encoding import runs_code, tool_codec
from effectful_agents.errors import ConfigurationError, DefinitionError
from effectful_agents.generated import is_generated
from effectful_agents.messages import Message
from effectful_agents.operations.legibility import PromptInjectingInterpretation
from effectful_agents.operations.loop import AssistantResult, call_assistant
from effectful_agents.runtime import fwd, implements
from effectful_agents.types import Scope, Skill, Tool
from effectful_agents.types.kinds import attributes_of, is_a
from effectful_agents.types.walk import ToolSet, implicit_target, is_agent, is_tool, tools_in_scope

__all__ = ["LexicalToolExtractor"]

_log = logging.getLogger(__name__)


class LexicalToolExtractor(PromptInjectingInterpretation):
    """The tools that you are offered are those which the code around this skill has in view.

    They are the tools and skills of the enclosing functions and of the module, the methods of the skill's own agent,
    and those of other agents in view.

    So the choice tells you what the task is expected to need, and each tool's description is what you can rely on. What
    is not offered is not there: do not call it by name. If something seems to be missing, do what can be done without
    it and say what was missing.

    The tables of the lexical scope and of imported modules list the other names of the same scope.
    """

    # The only handler that discovers tools: have exactly one in a stack, near `AgentLoop`; a handler that calls tools
    # another way goes outside of this one, next to it.
    #
    # Args:
    #     json_only: Whether the tools go to the model with JSON schemas and nothing else. A tool whose types have no
    #         schema is then left out, with a warning that names it; otherwise it is for the handler outside to offer.

    widens = False
    """Whether functions that are no tools are offered as well."""

    def __init__(self, json_only: bool = True) -> None:
        self.json_only = json_only

    @implements(call_assistant)
    def call_assistant(
        self,
        messages: Sequence[Message],
        response_type: Any,
        env: Mapping[str, Any],
        tools: Set[Tool] = frozenset(),
    ) -> AssistantResult[Any]:
        if isinstance(env, Scope) and not env.skill.uses_tools:
            return fwd()
        discovered = self._discovered(env) if isinstance(env, Scope) else self.discover(env)
        return fwd(messages, response_type, env, discovered.after(tools))

    def wrap(self, function: types.FunctionType) -> Tool | None:
        # A tool that stands for a function which was not declared as one.
        return None

    def discover(self, env: Mapping[str, Any]) -> ToolSet:
        # The tools of a scope, for a turn and for the manifest of a stack.
        skill = env.skill if isinstance(env, Scope) else None
        if skill is not None and not skill.uses_tools:
            return ToolSet()
        found = tools_in_scope(env, skill.receiver if skill is not None else None, self.wrap if self.widens else None)
        return ToolSet(tool for tool in found if not self.json_only or tool == skill or self._has_schema(tool))

    def _has_schema(self, tool: Tool) -> bool:
        try:
            tool_codec(tool).definition()
        except DefinitionError:
            # An annotation of it is no type at all: a mistake, and not a type for Python only.
            raise
        except ConfigurationError as error:
            # A function that nobody declared may well have types that are for Python only.
            level = logging.WARNING if implicit_target(tool) is None else logging.DEBUG
            _log.log(level, "the tool `%s` is not offered to the model: %s", tool.__name__, error)
            return False
        return True

    def _discovered(self, env: Scope) -> ToolSet:
        """The tools of a call; looked for again only when something in its scope has changed.

        The same set is given out as long as it holds, so that whoever describes the tools can go by its identity.
        """
        of_this_call = env.skill.receiver is not None or any(
            map(_offers, (*env.arguments.values(), *env.bindings.values()))
        )
        # What belongs to one call goes with it: a tool of an agent keeps the agent alive.
        kept = env.memo if of_this_call else env.context.memo
        found: _Found | None = kept.get(self._key)
        if found is None or not found.holds(env):
            found = kept[self._key] = _Found(env, self.discover(env), _FUNCTIONS if self.widens else frozenset())
        return found.tools

    @property
    def _key(self) -> Any:
        # Without an executor there is no schema for what is code.
        return LexicalToolExtractor, type(self), self.json_only, runs_code()


_TOOLS = frozenset({Tool, Skill})

_FUNCTIONS = frozenset({types.FunctionType, types.MethodType})

# Kinds of values that hold no tools, and of which scopes are full.
_PLAIN = _FUNCTIONS | {
    *(bool, bytes, dict, float, int, list, set, str, tuple, type, type(None)),
    *(types.BuiltinFunctionType, types.ModuleType),
}


class _Found:
    """The tools of a scope, and the tools and agents in it by which they were found. It keeps nothing else alive.

    Args:
        env: The scope.
        tools: The tools.
        kinds: Kinds of values that may be offered besides.
    """

    __slots__ = ("_kinds", "_names", "_values", "tools")

    def __init__(self, env: Scope, tools: ToolSet, kinds: frozenset[type]) -> None:
        self.tools = tools
        self._kinds = _TOOLS | kinds
        self._names, self._values = _look(env, self._kinds)

    def holds(self, env: Scope) -> bool:
        names, values = _look(env, self._kinds)
        return names == self._names and all(map(operator.is_, values, self._values))


def _look(env: Scope, kinds: frozenset[type]) -> tuple[list[str], list[Any]]:
    """The values of these kinds and agents in a scope, with their names, and what was set on agents.

    It runs in each turn, over all names that the skill sees: hence the tests by kind, and no call for a tool.
    """
    seen: list[tuple[str, Any]] = []
    for namespace in env.context.namespaces():
        for pair in list(namespace.items()):
            try:
                kind = type(pair[1])
                if kind in kinds or (kind not in _PLAIN and _offers(pair[1])):
                    seen.append(pair)
            except RecursionError:
                raise
            except Exception:  # a metaclass may refuse even to be looked up; what it makes is no tool
                continue
    # Of what a session has bound, functions are no tools.
    seen += [pair for pair in env.bindings.items() if _offers(pair[1])]
    others = [value for _, value in seen if type(value) not in kinds]
    for holder in (*env.arguments.values(), *others):
        if is_agent(holder):
            attributes = list(attributes_of(holder).items())
            seen += [pair for pair in attributes if is_a(pair[1], *kinds) or is_generated(pair[1])]
    return [name for name, _ in seen], [value for _, value in seen]


def _offers(value: Any) -> bool:
    return is_tool(value) or is_agent(value)
