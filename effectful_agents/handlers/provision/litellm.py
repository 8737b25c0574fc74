"""Asking any model that LiteLLM knows.

LiteLLM takes six to eight seconds to load, so it is loaded when it first has to send something. A program whose
requests go to a scripted model or to one on this machine never loads it. Its objects stay in this module and the two
beside it, `litellm_replies` and `litellm_errors`.
"""

from __future__ import annotations

import contextvars
import copy
import functools
import logging
import os
import sys
import warnings
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from effectful_agents.encoding import strict_response_format
from effectful_agents.errors import ConfigurationError
from effectful_agents.handlers.provision.litellm_errors import translated
from effectful_agents.handlers.provision.litellm_replies import response
from effectful_agents.handlers.provision.retries import retried
from effectful_agents.handlers.provision.tool_choice import enforce
from effectful_agents.messages import Response, ToolChoice
from effectful_agents.operations.loop import completion, send_request
from effectful_agents.runtime import ObjectInterpretation, can_wait, fwd, implements, wait

__all__ = ["LiteLLMConfigurer"]


class LiteLLMConfigurer(ObjectInterpretation[Any, Any]):
    """Say which model answers and with which settings, and ask it through LiteLLM.

    Intercepts `completion`: its settings are put under those that a request has already, so of two configurers the
    inner one wins, and handlers between them see the request with the inner one's settings. Where tools are offered it
    holds the reply to the request's `tool_choice`, whoever gave it. Handles `send_request`, and forwards it for a local
    model, and where none is named.

    A failure that may pass is tried again `num_retries` times (2 if nothing is said), after the pause that the provider
    asks for, or else after half a second, one, two and so on. LiteLLM's own repetition is not used: it multiplies with
    that of the client below it (`num_retries=2` made five requests), and asks again with a key that was refused.

    Args:
        model: The model, as LiteLLM names it: `gpt-5-mini`, `anthropic/claude-sonnet-4-5`, `ollama/qwen3`.
        **config: Other settings of the request, those of `messages.Request` and what LiteLLM's `completion` takes
            besides: `temperature`, `api_key`, `base_url`, `num_retries`, `timeout` (seconds), `tool_choice`.

    Raises:
        ConfigurationError: From `completion`: there is no model, it is not known, or the key is missing or refused.
        ProviderError: From `completion`: the provider failed; see the branches of this error.
        ResultDecodingError: From `completion`: a tool had to be called, and none was.
        ToolCallDecodingError: From `completion`: a tool was called that may not be.

    >>> from effectful_agents.runtime import handler
    >>> from effectful_agents.testing import ScriptedModel
    >>> model = ScriptedModel("Hello!")
    >>> with handler(model), handler(LiteLLMConfigurer("gpt-5-mini", seed=1)), handler(LiteLLMConfigurer(seed=2)):
    ...     reply = completion(messages=[{"role": "user", "content": "hi"}])
    >>> model.requests[0]["model"], model.requests[0]["seed"]
    ('gpt-5-mini', 2)
    """

    config: Mapping[str, Any]

    def __init__(self, model: str | None = None, **config: Any) -> None:
        self.config = config if model is None else {"model": model, **config}

    @implements(completion)
    def completion(self, **request: Any) -> Response:
        merged: dict[str, Any] = {**self.config, **request}
        if "provider_options" in self.config and "provider_options" in request:
            merged["provider_options"] = {**self.config["provider_options"], **request["provider_options"]}
        reply = fwd(**merged)
        if merged.get("tools") and "tool_choice" in merged:
            enforce(ToolChoice.from_wire(merged["tool_choice"]), reply, merged["messages"])
        return reply

    @implements(send_request)
    def send_request(self, **request: Any) -> Response:
        model = request.get("model")
        if not model or model.startswith("local/"):
            return fwd()
        return _send(request)


# --- sending ----------------------------------------------------------------------------------------------------------


def _send(request: dict[str, Any]) -> Response:
    if request.get("stream"):
        raise ConfigurationError("`stream=True` is not supported with LiteLLM: replies come whole; leave it out")
    retries = request.pop("num_retries", None)
    return retried(lambda: _ask(request), retries)


def _ask(request: Mapping[str, Any]) -> Response:
    if _DURING_REQUEST not in warnings.filters:  # whoever restores filters, as pytest does after a test, drops it
        warnings.filters.insert(0, _DURING_REQUEST)  # ty: ignore
    handled = sys.exception()
    _inside.set(True)
    try:
        litellm = _load()
        try:
            arguments = _arguments(request)
            reply = wait(litellm.acompletion(**arguments)) if can_wait() else litellm.completion(**arguments)
            return response(reply)
        except Exception as error:
            ours = translated(litellm, error, request, handled)
            if ours is None:
                raise
            if isinstance(ours, ConfigurationError):
                raise ours from None  # it says all; the traces of three libraries would bury it
            raise ours from error
    finally:
        _inside.set(False)


def _arguments(request: Mapping[str, Any]) -> dict[str, Any]:
    # The client of OpenAI below LiteLLM would repeat on its own account.
    arguments = {"max_retries": 0, **request}
    arguments.update(arguments.pop("provider_options", None) or {})
    if not arguments.get("tools"):
        for name in ("tools", "tool_choice", "parallel_tool_calls"):  # an error at some providers without tools
            arguments.pop(name, None)
    elif isinstance(arguments.get("tool_choice"), ToolChoice):
        arguments["tool_choice"] = arguments["tool_choice"].to_wire()
    if arguments.get("response_format"):
        arguments["response_format"] = strict_response_format(arguments["response_format"])
    for name in ("messages", "tools", "response_format"):
        # Some of its providers change what they are given in place; ours are the history, and specifications made once.
        if name in arguments:
            arguments[name] = copy.deepcopy(arguments[name])
    return arguments


@functools.cache
def _load() -> ModuleType:
    # Without this LiteLLM fetches a table of prices over the network while it is imported.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    import litellm  # noqa: PLC0415 - takes seconds to load

    litellm.suppress_debug_info = True
    if "LITELLM_LOG" not in os.environ:  # what goes wrong comes as an exception
        logging.getLogger("LiteLLM").setLevel(logging.CRITICAL)
    return litellm


_inside: contextvars.ContextVar[bool] = contextvars.ContextVar("effectful_agents_inside_litellm", default=False)


class _DuringRequest:
    # Stands where a filter of warnings has the pattern for their text. LiteLLM's own modules and pydantic's complaints
    # about replies that do not fit its classes warn, and where warnings are errors the reply would be lost. A pattern
    # would hide the same warning about a model of the user's, and `warnings.catch_warnings` is for one thread only.
    def match(self, text: str) -> bool:
        return _inside.get()


_DURING_REQUEST = ("ignore", _DuringRequest(), Warning, None, 0)
