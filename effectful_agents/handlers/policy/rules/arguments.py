"""Rules about the arguments of tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from effectful_agents.encoding import to_jsonable
from effectful_agents.encoding.handwritten import held_to
from effectful_agents.errors import OptionError
from effectful_agents.handlers.policy.rules.rule import Rule
from effectful_agents.handlers.policy.rules.values import exact, spread
from effectful_agents.handlers.policy.tools import Tools, chosen_tools, is_call_of
from effectful_agents.operations.policy import Decision, Disposition, ProposedEffect

__all__ = ["ArgumentRule"]


class ArgumentRule(Rule):
    """Let tools be called with some arguments only.

    Args:
        tools: The tool, or the tools, that it is for, a method for all that override it, too; None: all.
        allow: Gets the decoded arguments by name, and says whether the call may be made. What a tool takes with `**` is
            among them by its own name.
        schema: A JSON schema of the arguments, as an object with a property for each.
        message: What the model is told.
        name: What refusals and the decision log call it.

    Raises:
        OptionError: There is neither `allow` nor `schema`, or `tools` are none.
        EncodingError: `schema` is no JSON schema.

    >>> from effectful_agents import Tool
    >>> @Tool.define
    ... def pay(amount: int) -> str:
    ...     '''Pay.'''
    ...     return "paid"
    >>> rule = ArgumentRule(pay, schema={"properties": {"amount": {"maximum": 100}}})
    >>> rule.tool_call(ProposedEffect(kind="tool_call", name="pay", tool=pay, arguments={"amount": 500})).message
    'amount: 500 is greater than the maximum of 100'
    """

    def __init__(
        self,
        tools: Tools = None,
        allow: Callable[[Mapping[str, Any]], Any] | None = None,
        *,
        schema: dict[str, Any] | None = None,
        message: str = "",
        name: str = "",
    ) -> None:
        if allow is None and schema is None:
            raise OptionError("an `ArgumentRule` has `allow`, a function, or `schema`, or both.")
        super().__init__(name or getattr(allow, "__name__", "").strip("<>") or "arguments")
        self.tools = chosen_tools(tools)
        self._allow = allow
        self._problems = None if schema is None else held_to(schema, f"the `schema` of the rule `{self.name}`")
        self._message = message

    def tool_call(self, effect: ProposedEffect, /) -> Decision | None:
        if not is_call_of(effect, self.tools):
            return None
        arguments = {name: exact(value) for name, value in spread(effect.tool, effect.arguments).items()}
        problems = [] if self._problems is None else self._problems(to_jsonable(arguments))
        if not problems and (self._allow is None or self._allow(arguments)):
            return None
        message = self._message or "; ".join(problems) or f"`{effect.name}` may not be called with these arguments."
        return Decision(Disposition.DENY_STEP, "arguments", message)
