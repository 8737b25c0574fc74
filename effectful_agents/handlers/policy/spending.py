"""What a request has used, whatever the service says of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from effectful_agents.messages import Usage
from effectful_agents.messages.usage import token_count
from effectful_agents.operations.counting import estimate_tokens

__all__ = ["used_by"]


def used_by(request: Mapping[str, Any], response: Any) -> Usage:
    """The tokens of a request and its reply: as they were reported, and estimated where no such number can be.

    Neither count is ever None or below 0. A total that is more than its parts is believed: services leave tokens of
    reasoning out of the parts.

    >>> asked = {"messages": [{"role": "user", "content": "Hello there."}]}
    >>> used_by(asked, {"usage": {"prompt_tokens": 9, "completion_tokens": 2}})
    Usage(input=9, output=2, reasoning=None, cache_read=0, cache_write=0, estimated=False)
    >>> used_by(asked, {"usage": {"prompt_tokens": -1000}})
    Usage(input=7, output=0, reasoning=None, cache_read=0, cache_write=0, estimated=True)
    """
    response = response if isinstance(response, Mapping) else {}
    usage = response.get("usage")
    usage = usage if isinstance(usage, Mapping) else {}
    read = token_count(usage.get("prompt_tokens")) or token_count(usage.get("input_tokens"))
    written = token_count(usage.get("completion_tokens"))
    written = token_count(usage.get("output_tokens")) if written is None else written
    total = token_count(usage.get("total_tokens")) or 0
    estimated = not read or not written  # 0 tokens of a prompt, or of a reply, cannot be
    if read:
        written = written or _of_messages(_replies(response))
    elif written:
        read = max(total - written, 0) or _of_messages(request.get("messages"))
    else:
        written = _of_messages(_replies(response))
        written = min(written, total) if total else written
        read = total - written if total else _of_messages(request.get("messages"))
    written = max(written, total - read)
    known = Usage.from_wire(usage)
    cached = min(max(known.cache_read or 0, 0), read)
    kept = min(max(known.cache_write or 0, 0), read - cached)
    return Usage(input=read, output=written, cache_read=cached, cache_write=kept, estimated=estimated)


def _replies(response: Mapping[str, Any]) -> Sequence[Any]:
    choices = response.get("choices")
    if not isinstance(choices, list | tuple):
        return ()
    return [choice.get("message") for choice in choices if isinstance(choice, Mapping) and choice.get("message")]


def _of_messages(messages: Any) -> int:
    if not messages:
        return 0
    try:
        return estimate_tokens(messages)
    except (AttributeError, KeyError, TypeError):  # of a form that nobody expects, from a service that is not ours
        return estimate_tokens(json.dumps(messages, ensure_ascii=False, default=str))
