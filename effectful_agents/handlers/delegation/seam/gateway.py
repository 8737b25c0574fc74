"""What a gateway is, for a program."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, runtime_checkable

from effectful_agents.errors import ConfigurationError
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

__all__ = ["BadRequest", "Gateway", "UnknownToolRef"]


class BadRequest(ConfigurationError):
    """A program asked for what no gateway performs; it is told what is wrong with its request."""


class UnknownToolRef(ConfigurationError):
    """A request names a tool that the gateway does not know: it was started anew, or the tool has changed there."""


@runtime_checkable
class Gateway(Protocol):
    """Whoever holds the keys and the policy, and performs operations for a program.

    Any object with these methods is one; it need not derive from this. What may not happen is raised as `Denied` with
    the decision: `DENY_STEP`, `TERMINATE_RUN`, or `REQUIRE_APPROVAL`. The decision is a `PermittedDecision` where the
    program's people may approve. Every reply has the `usage` that its service reported.

    In a call that is awaited the methods are called in a greenlet, and wait by `runtime.wait`.
    """

    def hello(self, hello: Hello, context: CallContext) -> Welcome:
        """Agree on a version, and take the program's tools for later requests.

        Raises:
            SeamVersionError: There is no version in common.
        """
        ...

    def completion(
        self,
        request: Mapping[str, Any],
        context: CallContext,
        *,
        tell: Callable[[StreamEvent], None] | None = None,
        permit: str = "",
    ) -> Response:
        """Ask a model.

        Args:
            request: As `completion` has it, but that each tool is `{"ref": …}`.
            context: The trace that it belongs to.
            tell: Gets the reply in pieces, as it comes; None where nobody listens.
            permit: See `PermittedDecision`.

        Raises:
            Denied: It may not be asked.
            UnknownToolRef: The program has to say hello again.
            ProviderError: The service failed, or the way to it.
        """
        ...

    def decide(self, effect: DescribedEffect, context: CallContext) -> PermittedDecision:
        """Say whether an effect may happen in the program, or a tool of the gateway may be called.

        Raises:
            UnknownToolRef: As with `completion`.
        """
        ...

    def call_tool(self, call: DescribedCall, context: CallContext) -> ToolOutcome:
        """Call a tool that the gateway holds.

        Raises:
            Denied: It may not be called.
            UnknownToolRef: It is not there, or is no longer what the program was told.
        """
        ...
