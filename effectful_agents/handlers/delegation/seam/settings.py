"""Which settings of a request cross the seam."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from effectful_agents.handlers.delegation.seam.failures import bounded
from effectful_agents.handlers.delegation.seam.gateway import BadRequest
from effectful_agents.messages import Request
from effectful_agents.messages.exchange import SETTINGS_OF_ANSWERS, settings_of_a_service

__all__ = ["checked_request", "crossing"]

_SAMPLING = frozenset(
    {
        *("temperature", "top_p", "top_k", "min_p", "seed", "presence_penalty", "frequency_penalty"),
        *("repetition_penalty", "reasoning_effort", "thinking", "user", "chat_template_kwargs"),
    }
)
_OF_THE_WAY = frozenset({"model", "messages", "timeout", "num_retries"})
_TAKEN = (SETTINGS_OF_ANSWERS | _SAMPLING | _OF_THE_WAY) - {"web_search_options"}
_MOST_RETRIES = 10


def crossing(request: Mapping[str, Any]) -> dict[str, Any]:
    """A request as a program sends it: without what says where its service is and lets one in, the gateway's business.

    >>> crossing({"model": "gpt-5-mini", "messages": [], "api_key": "sk-1", "stream": True})
    {'model': 'gpt-5-mini', 'messages': []}
    """
    left_out = settings_of_a_service(request).keys() | {"stream"}
    return {name: value for name, value in request.items() if name not in left_out}


def checked_request(request: Mapping[str, Any], more: Collection[str] = ()) -> Request:
    """A request that a gateway got, if it may have these settings.

    They are listed, and others refused: a setting such as `api_base` would have the gateway send its key to whomever
    the program names, and each library of a provider has more of them.

    Args:
        request: The request.
        more: Names of settings that may stand there too.

    Raises:
        BadRequest: It has others, or no messages.
    """
    if unknown := sorted(name for name in request if name not in _TAKEN and name not in more):
        named = ", ".join(f"`{bounded(name)}`" for name in unknown[:8])
        raise BadRequest(f"the gateway takes no setting {named}; `--allow-setting NAME` there has it take one.")
    messages = request.get("messages")
    if not isinstance(messages, list) or not all(isinstance(one, dict) and "role" in one for one in messages):
        raise BadRequest("the request has no messages.")
    if not isinstance(request.get("model", ""), str) or not isinstance(request.get("tools", []), list):
        raise BadRequest("the request has a `model` that is no text, or `tools` that are no list.")
    checked: Any = dict(request)
    retries = checked.get("num_retries")
    if retries is not None and not (type(retries) is int and 0 <= retries <= _MOST_RETRIES):
        checked["num_retries"] = _MOST_RETRIES if type(retries) is int and retries > 0 else 0
    return checked
