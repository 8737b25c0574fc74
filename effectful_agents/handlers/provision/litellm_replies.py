"""What LiteLLM answers, as a reply of ours."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any, cast

from effectful_agents.handlers.provision.counts import measured, with_timings
from effectful_agents.messages import Response
from effectful_agents.messages.exchange import FINISH_REASONS

__all__ = ["response"]


def response(reply: Any, litellm: ModuleType) -> Response:
    """A `litellm.ModelResponse` as plain dictionaries.

    What a provider put beside the content (its reasoning above all) stays as it is, so that it goes back unchanged.
    What was not reported is left out.

    Args:
        reply: What LiteLLM has made of the reply.
        litellm: LiteLLM.
    """
    raw = reply.model_dump(warnings=False)
    converted: dict[str, Any] = {"choices": [_choice(choice) for choice in raw["choices"]]}
    converted |= _known({name: raw.get(name) for name in ("id", "created", "model")})
    if usage := _usage(raw.get("usage") or {}):
        reasoning = converted["choices"][0]["message"].get("reasoning_content") if converted["choices"] else None

        def count(text: str) -> int:
            return litellm.token_counter(text=text, count_response_tokens=True)

        usage = _without_empty(measured(with_timings(usage, raw.get("timings")), reasoning, count))
        converted["usage"] = usage
    return cast(Response, converted)


def _choice(raw: Mapping[str, Any]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": None, **_known(raw.get("message") or {})}
    if calls := message.pop("tool_calls", None):
        message["tool_calls"] = [_call(call) for call in calls]
    return {
        "index": raw.get("index", 0),
        "message": message,
        "finish_reason": FINISH_REASONS.get(raw.get("finish_reason") or "", "stop"),
    }


def _call(raw: Mapping[str, Any]) -> dict[str, Any]:
    call = {name: value for name, value in _known(raw).items() if name != "index"}  # its place in a stream
    function = raw.get("function") or {}
    return {**call, "function": {**function, "name": function.get("name") or ""}}


def _usage(raw: Mapping[str, Any]) -> dict[str, Any]:
    # LiteLLM puts 0 where a provider reports nothing. No request has no token, so with a total of 0 none was counted.
    counted = bool(raw.get("total_tokens"))
    usage = {name: _known(count) if isinstance(count, dict) else count for name, count in raw.items()}
    return {name: count for name, count in _without_empty(_known(usage)).items() if counted or count != 0}


def _without_empty(usage: Mapping[str, Any]) -> dict[str, Any]:
    return {name: count for name, count in usage.items() if count != {}}


def _known(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
