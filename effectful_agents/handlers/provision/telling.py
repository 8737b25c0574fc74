"""Telling of a reply that a service gave in one piece."""

from __future__ import annotations

from effectful_agents.messages import Response
from effectful_agents.messages.telling import told
from effectful_agents.operations.steps import emit
from effectful_agents.runtime import interpretation

__all__ = ["mark_whole", "tell_whole"]


def tell_whole(reply: Response) -> None:
    """Tell whoever listens of a reply that came whole, as of one that came in pieces; the reply says which it was."""
    if emit in interpretation():
        mark_whole(reply)
        for event in told(reply):
            emit(event)


def mark_whole(reply: Response) -> None:
    """Say in a reply that it was not streamed."""
    reply["provider_metadata"] = {**reply.get("provider_metadata", {}), "streamed": False}
