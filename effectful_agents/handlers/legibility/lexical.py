"""Offering the tools of a skill's lexical scope."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence, Set
from typing import Any

from effectful_agents.encoding import tool_codec
from effectful_agents.errors import ConfigurationError
from effectful_agents.messages import Message
from effectful_agents.operations.legibility import PromptInjectingInterpretation
from effectful_agents.operations.loop import AssistantResult, call_assistant
from effectful_agents.runtime import fwd, implements
from effectful_agents.types import Scope, Tool
from effectful_agents.types.walk import tools_in_scope

__all__ = ["LexicalToolExtractor"]

_log = logging.getLogger(__name__)


class LexicalToolExtractor(PromptInjectingInterpretation):
    """The tools that you are offered are the tools and skills which the code around this skill has in view: those of the
    enclosing functions and of the module, the methods of the skill's own agent, and those of other agents in view.

    So the choice tells you what the task is expected to need, and each tool's description is what you can rely on. What
    is not offered is not there: do not call it by name. If something seems to be missing, do what can be done without
    it and say what was missing.

    The tables of the lexical scope and of imported modules list the other names of the same scope.
    """

    # The only handler that discovers tools: have exactly one in a stack, right inside `AgentLoop`; a handler that calls
    # tools another way goes inside this one.
    #
    # Args:
    #     json_only: Whether the tools go to the model with JSON schemas and nothing else. A tool whose types have no
    #         schema is then left out, with a warning that names it; otherwise it is for the handler inside to offer.

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
        return fwd(messages, response_type, env, frozenset((*tools, *self.discover(env))))

    def discover(self, env: Mapping[str, Any]) -> list[Tool]:
        receiver = env.skill.receiver if isinstance(env, Scope) else None
        found = tools_in_scope(env, receiver)
        return [tool for tool in found if _has_schema(tool)] if self.json_only else found


def _has_schema(tool: Tool) -> bool:
    try:
        tool_codec(tool).definition()
    except ConfigurationError as error:
        _log.warning("the tool `%s` is not offered to the model: %s", tool.__name__, error)
        return False
    return True
