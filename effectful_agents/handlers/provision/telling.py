"""Telling of a reply that a service gave in one piece."""

from __future__ import annotations

from effectful_agents.messages import Response
from effectful_agents.messages.telling import told, unstreamed
from effectful_agents.operations.steps import emit
from effectful_agents.runtime import interpretation

__all__ = ["tell_whole"]


def tell_whole(reply: Response) -> Response:
    """Tell whoever listens of a reply that came whole, as of one in pieces; the reply then says which it was."""
    if emit not in interpretation():
        return reply
    whole = unstreamed(reply)
    for event in told(whole):
        emit(event)
    return whole
