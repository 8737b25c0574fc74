"""What doubles with a row of replies share: noting a request, and what they say when they have no reply left."""

from __future__ import annotations

import json
from typing import Any, cast

from effectful_agents.errors import ConfigurationError
from effectful_agents.messages import Message, Request

__all__ = ["asked_once_more", "noted"]


def noted(request: dict[str, Any]) -> Request:
    """A request as a double keeps it.

    The history that is sent goes on growing, so the list is copied; its messages are never changed.
    """
    request["messages"] = list(request.get("messages", ()))
    return cast(Request, request)


def asked_once_more(double: object, had: str, request: Request) -> ConfigurationError:
    """The error for a request that a double has no reply for.

    Args:
        double: Who was asked.
        had: What it was given, `2 replies`.
        request: The request.
    """
    messages = request["messages"]
    last = f"The last message of that request: {_summary(messages[-1])}" if messages else "It had no messages."
    return ConfigurationError(f"this `{type(double).__name__}` was given {had} and has been asked once more. {last}")


def _summary(message: Message) -> str:
    content = message.get("content")
    text = content if isinstance(content, str) else json.dumps(content, default=str, ensure_ascii=False)
    return f"{message['role']}, {text if len(text) <= 300 else text[:300] + '…'!r}"
