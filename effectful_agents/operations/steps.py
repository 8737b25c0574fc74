"""What happens in a run, told to whoever listens."""

from __future__ import annotations

from effectful_agents.messages import StreamEvent
from effectful_agents.runtime import Operation

__all__ = ["emit"]


@Operation.define
def emit(event: StreamEvent) -> None:
    """Tell that something has happened; by default nobody listens.

    A handler that listens forwards with `fwd()`, so that others hear it too. It must not raise: what it observes goes
    on in any case.
    """
