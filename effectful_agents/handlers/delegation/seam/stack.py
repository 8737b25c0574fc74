"""A gateway in the process of the program, which sees nothing of the program's handlers."""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Mapping
from typing import Any

from effectful_agents.handlers.delegation.seam.performing import PerformingGateway
from effectful_agents.messages import Response, StreamEvent
from effectful_agents.operations.elsewhere import (
    CallContext,
    DescribedCall,
    DescribedEffect,
    Hello,
    PermittedDecision,
    ToolOutcome,
    Welcome,
)

__all__ = ["StackGateway"]


class StackGateway(PerformingGateway):
    """A gateway that performs what one program asks for, under handlers of its own and no others.

    Requests to models go to whichever of the handlers answers them, policies among the handlers decide, and the tools
    run here. Where a policy wants a person's approval, it is asked for here if one of the handlers answers
    `request_approval` in place.

    Args:
        *handlers: The stack, the outermost first: what answers requests, policies, and for tools an `AgentLoop`, as
            `harness(…)` has one.
        tools: The tools that it holds.
        approves: Whether people of the program may approve what a policy wants approved and nobody is asked about here.
            Then the program says that they did, and is believed.
        models: The models that may be asked; None for all that the handlers answer for.
        settings: Names of settings that requests may have besides the usual ones.

    >>> from effectful_agents import NotHandled, Skill, handler, harness
    >>> from effectful_agents.handlers.delegation import RemoteOperations
    >>> from effectful_agents.testing import ScriptedModel
    >>> @Skill.define
    ... def greet(name: str) -> str:
    ...     '''Greet {name}.'''
    ...     raise NotHandled
    >>> with handler(harness()), handler(RemoteOperations(StackGateway(ScriptedModel("Hello!")))):
    ...     greet("Ann")
    'Hello!'
    """

    def hello(self, hello: Hello, context: CallContext) -> Welcome:
        return _apart(lambda: super(StackGateway, self).hello(hello, context))

    def completion(
        self,
        request: Mapping[str, Any],
        context: CallContext,
        *,
        tell: Callable[[StreamEvent], None] | None = None,
        permit: str = "",
    ) -> Response:
        # Pieces are told to the program, among its handlers.
        here = contextvars.copy_context()
        back = None if tell is None else lambda event: here.copy().run(tell, event)
        return _apart(lambda: super(StackGateway, self).completion(request, context, tell=back, permit=permit))

    def decide(self, effect: DescribedEffect, context: CallContext) -> PermittedDecision:
        return _apart(lambda: super(StackGateway, self).decide(effect, context))

    def call_tool(self, call: DescribedCall, context: CallContext) -> ToolOutcome:
        return _apart(lambda: super(StackGateway, self).call_tool(call, context))


def _apart[T](perform: Callable[[], T]) -> T:
    """Perform where no handler is installed, and no call goes on: in the process of a gateway there would be none."""
    return contextvars.Context().run(perform)
