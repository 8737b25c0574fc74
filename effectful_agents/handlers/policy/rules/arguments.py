"""Rules about the arguments of tools."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from effectful_agents.encoding import to_jsonable
from effectful_agents.encoding.handwritten import held_to
from effectful_agents.errors import OptionError
from effectful_agents.handlers.policy.rules.options import forget_coroutine, plain_function
from effectful_agents.handlers.policy.rules.parameters import check_schema
from effectful_agents.handlers.policy.rules.rule import Refuse, Rule
from effectful_agents.handlers.policy.rules.settings import named, tool_names
from effectful_agents.handlers.policy.rules.values import exact, spread
from effectful_agents.handlers.policy.tools import Tools, chosen_tools, is_call_of
from effectful_agents.operations.policy import Decision, Disposition, ProposedEffect

__all__ = ["ArgumentRule"]


class ArgumentRule(Rule):
    """Let tools be called with some arguments only.

    Args:
        tools: The tool, or the tools, that it is for, a method for all that override it, too; None: all.
        allow: Gets the decoded arguments by name, and says whether the call may be made: True or False, `Refuse(…)`, a
            `Decision` or a `Disposition`. Anything else denies, and the log says so. What a tool takes with `**` is
            among them by its own name.
        schema: A JSON schema of the arguments, as an object with a property for each.
        message: What the model is told.
        name: What refusals and the decision log call it.

    Raises:
        OptionError: There is neither `allow` nor `schema`, `tools` are none, `allow` is an `async def`, or `schema`
            says nothing of any argument, or something of one that none of `tools` has.
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
        if allow is not None:
            plain_function(allow, "`allow` of an `ArgumentRule`")
        super().__init__(name or getattr(allow, "__name__", "").strip("<>") or "arguments")
        self.tools = chosen_tools(tools)
        self._allow, self._schema = allow, copy.deepcopy(schema)
        self._problems = None if schema is None else held_to(schema, f"the `schema` of the rule `{self.name}`")
        if schema is not None:
            check_schema(schema, self.tools, self.name)
        self._message = message

    def settings(self) -> Mapping[str, Any]:
        allow = None if self._allow is None else named(self._allow)
        return {**super().settings(), "tools": tool_names(self.tools), "allow": allow, "schema": self._schema}

    def tool_call(self, effect: ProposedEffect, /) -> Decision | None:
        # What a run did before it was resumed has no tool either; code has no arguments that could be held to anything.
        if not is_call_of(effect, self.tools) or (effect.tool is None and effect.by_code and not effect.arguments):
            return None
        arguments = {name: exact(value) for name, value in spread(effect.tool, effect.arguments).items()}
        problems = [] if self._problems is None else self._problems(to_jsonable(arguments))
        if problems:
            return self._denied(effect, "; ".join(problems))
        said = True if self._allow is None else self._allow(arguments)
        if said is True:
            return None
        if said is False:
            return self._denied(effect)
        if isinstance(said, Refuse):
            return Decision(Disposition.DENY_STEP, "arguments", said.message) if said.message else self._denied(effect)
        return self._decision(said)

    def _denied(self, effect: ProposedEffect, problem: str = "") -> Decision:
        message = self._message or problem or f"`{effect.name}` may not be called with these arguments."
        return Decision(Disposition.DENY_STEP, "arguments", message)

    def _decision(self, said: Any) -> Decision:
        """What `allow` returned that is neither yes nor no."""
        if isinstance(said, Decision):
            return said
        if isinstance(said, Disposition):
            return Decision(said, "arguments", self._message)
        forget_coroutine(said)
        raise TypeError(
            f"`allow` of the rule `{self.name}` returned {type(said).__name__}; it returns True, False, `Refuse(…)`, a "
            "`Decision` or a `Disposition`"
        )
