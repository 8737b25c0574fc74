"""Tools that the gateway holds, as tools of the program."""

from __future__ import annotations

import logging
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from typing import Any

from effectful_agents.encoding import dumps, tool_codec
from effectful_agents.errors import AgentsError
from effectful_agents.handlers.delegation.seam.failures import bounded
from effectful_agents.handlers.delegation.seam.refs import ref_of
from effectful_agents.operations.elsewhere import ToolDeclaration, Welcome
from effectful_agents.types import Tool
from effectful_agents.types.walk import ToolSet

__all__ = ["HeldTools"]

_log = logging.getLogger(__name__)
_MOST_PERMITS = 1_000
_LONGEST_DESCRIPTION = 20_000


class HeldTools:
    """The tools of a gateway: made once of what it says of them, and the permits for their calls.

    Args:
        call: Has the gateway call the tool with a reference: gets that, the arguments and a permit.
    """

    def __init__(self, call: Callable[[str, Mapping[str, Any], str], Any]) -> None:
        self._call = call
        self._tools = ToolSet()
        self._made: dict[str, Tool[..., Any]] = {}
        self._refs: dict[Tool[..., Any], str] = {}
        self._permits: OrderedDict[tuple[str, str], deque[str]] = OrderedDict()

    def of(self, welcome: Welcome) -> ToolSet:
        """The tools in an answer to a greeting; the same one for the same tools."""
        refs = [ref_of(one.definition) for one in welcome.tools]
        for ref, declared in zip(refs, welcome.tools, strict=True):
            if ref not in self._made and (tool := self._tool(ref, declared)) is not None:
                self._made[ref] = tool
                self._refs[tool] = ref
        tools = tuple(self._made[ref] for ref in refs if ref in self._made)
        if tools != self._tools.order:
            self._tools = ToolSet(tools)
        return self._tools

    def ref_of(self, tool: Tool[..., Any] | None) -> str:
        """The reference of a tool of the gateway; empty for any other."""
        return "" if tool is None else self._refs.get(tool, "")

    def has(self, ref: str, welcome: Welcome) -> bool:
        """Whether the gateway has the tool still as it was offered."""
        return any(ref_of(one.definition) == ref for one in welcome.tools)

    def permit(self, ref: str, arguments: Mapping[str, Any], permit: str) -> None:
        """Keep a permit until the call is made."""
        key = ref, dumps(dict(arguments))
        self._permits.setdefault(key, deque(maxlen=100)).append(permit)
        while len(self._permits) > _MOST_PERMITS:
            self._permits.popitem(last=False)

    def _taken(self, ref: str, arguments: Mapping[str, Any]) -> str:
        key = ref, dumps(dict(arguments))
        permits = self._permits.get(key)
        permit = permits.popleft() if permits else ""
        if not permits:
            self._permits.pop(key, None)
        return permit

    def _tool(self, ref: str, declared: ToolDeclaration) -> Tool[..., Any] | None:
        def call(**arguments: Any) -> Any:
            return self._call(ref, arguments, self._taken(ref, arguments))

        function = declared.definition["function"]
        try:
            tool = Tool.define(
                call,
                name=declared.name,
                description=function.get("description", "")[:_LONGEST_DESCRIPTION],
                parameters=function["parameters"],
                risk=declared.risk,
                effect=declared.effect,  # ty: ignore[invalid-argument-type]  # it was read as one of these
                concurrent=declared.concurrent,
                timeout=declared.timeout,
            )
            tool_codec(tool)  # a schema that is none shows here
        except AgentsError as error:
            _log.warning("a tool of the gateway is left out: %s", bounded(error))
            return None
        return tool
