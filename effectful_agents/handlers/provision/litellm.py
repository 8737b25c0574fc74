"""Asking any model that LiteLLM knows.

LiteLLM takes six to eight seconds to load, so it is loaded when it first has to send something. A program whose
requests go to a scripted model or to one on this machine never loads it. Its objects stay in this module and the three
beside it, `litellm_replies`, `litellm_streaming` and `litellm_errors`.
"""

from __future__ import annotations

import contextlib
import contextvars
import copy
import functools
import logging
import os
import sys
import warnings
from collections.abc import Generator, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

from effectful_agents.encoding import strict_response_format
from effectful_agents.errors import ConfigurationError, ProviderError
from effectful_agents.handlers.provision import litellm_counting
from effectful_agents.handlers.provision.litellm_errors import translated
from effectful_agents.handlers.provision.litellm_replies import response
from effectful_agents.handlers.provision.litellm_streaming import StreamedReply
from effectful_agents.handlers.provision.naming import said_of
from effectful_agents.handlers.provision.retries import retried
from effectful_agents.handlers.provision.telling import tell_whole
from effectful_agents.handlers.provision.tool_choice import enforce
from effectful_agents.messages import Finish, Message, Response, ToolChoice
from effectful_agents.messages.telling import unstreamed
from effectful_agents.operations.counting import TokenCount, count_tokens
from effectful_agents.operations.loop import completion, model_in_use, send_request
from effectful_agents.operations.steps import emit
from effectful_agents.runtime import (
    ObjectInterpretation,
    can_wait,
    fwd,
    implements,
    interpretation,
    shielded,
    time_left,
    wait,
)

__all__ = ["LiteLLMConfigurer"]


class LiteLLMConfigurer(ObjectInterpretation[Any, Any]):
    """Say which model answers and with which settings, and ask it through LiteLLM.

    Intercepts `completion`: its settings are put under those that a request has already, so of two configurers the
    inner one wins, and handlers between them see the request with the inner one's settings. Where tools are offered it
    holds the reply to the request's `tool_choice`, whoever gave it. Handles `send_request`, and forwards it for a local
    model, and where none is named.

    Where somebody listens to `emit`, or a request says `stream=True`, the reply is asked for in pieces and told as they
    arrive. A reply that comes whole all the same is told in one piece, and has `streamed: False` in its
    `provider_metadata`. A stream that breaks off is asked for again, whole; its events begin anew with `StreamStart`.
    So is a stream in which nothing came: LiteLLM leaves out what it cannot read, such as a refusal.

    A failure that may pass is tried again `num_retries` times (2 if nothing is said), after the pause that the provider
    asks for, or else after half a second, one, two and so on. LiteLLM's own repetition is not used: it multiplies with
    that of the client below it (`num_retries=2` made five requests), and asks again with a key that was refused.

    Args:
        model: The model, as LiteLLM names it: `gpt-5-mini`, `anthropic/claude-sonnet-4-5`, `ollama/qwen3`.
        **config: Other settings of the request, those of `messages.Request` and what LiteLLM's `completion` takes
            besides: `temperature`, `api_key`, `base_url`, `num_retries`, `timeout` (seconds), `tool_choice`.

    Raises:
        ConfigurationError: From `completion`: there is no model, LiteLLM knows no service for it, or the event loop is
            trio's.
        ModelAccessError: From `completion`: the service does not know the model, or the key is missing or refused.
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

    def manifest(self) -> Mapping[str, object]:
        """What the manifest of a stack says of it."""
        return said_of(self.config.get("model"), self.config)

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

    @implements(model_in_use)
    def model_in_use(self) -> str | None:
        return self.config.get("model") or fwd()

    @implements(count_tokens)
    def count_tokens(self, content: str | Sequence[Message], model: str | None = None) -> TokenCount:
        named = model or self.config.get("model")
        # Not worth seconds of loading: that is for the first request.
        if not named or named.startswith("local/") or not _load.cache_info().currsize:
            return fwd()
        return litellm_counting.count(_load(), content, named) or fwd()


# --- sending ----------------------------------------------------------------------------------------------------------


_CANNOT_STREAM = (400, 422, 501)


def _send(request: dict[str, Any]) -> Response:
    retries, stream = request.pop("num_retries", None), request.pop("stream", None)
    if stream is None:
        stream = emit in interpretation()
    # Several replies at once would have to be told apart, and nobody listens to the others.
    stream = stream and request.get("n") in (None, 1)

    def ask() -> Response:
        nonlocal stream
        attempt = _Attempt(request)
        try:
            return attempt.streamed() if stream else attempt.whole()
        except ProviderError:
            stream = stream and not attempt.begun
            raise

    return retried(ask, retries)


class _Attempt:
    """One attempt to get a reply.

    Attributes:
        begun: Whether a part of a stream has come.
    """

    def __init__(self, request: Mapping[str, Any]) -> None:
        self.begun = False
        self._request = request

    def whole(self) -> Response:
        """Ask for the reply in one piece, and tell of it."""
        request = {name: value for name, value in self._request.items() if name != "stream_options"}
        with _within_litellm(request):
            reply = response(_ask(_arguments(request)), _load())
        return tell_whole(reply)

    def streamed(self) -> Response:
        """Ask for the reply in pieces and tell of each; take it in one where the service cannot do that."""
        try:
            reply = self._streamed()
        except ProviderError as error:
            if self.begun or error.status not in _CANNOT_STREAM or "stream" not in str(error).lower():
                raise
            reply = None
        return self.whole() if reply is None else reply

    def _streamed(self) -> Response | None:
        """The reply; None where none came that can be relied on."""
        options = {"include_usage": True, **(self._request.get("stream_options") or {})}
        with _within_litellm(self._request):
            stream = _ask(_arguments({**self._request, "stream": True, "stream_options": options}))
        try:
            # For some dialects it is a bare generator, which does not tell a complete reply from half of one.
            if not hasattr(stream, "received_finish_reason"):
                return None
            reply = StreamedReply(stream, self._request["model"])
            for chunk in _chunks(stream, self._request):
                for event in reply.add(chunk):
                    self.begun = True
                    emit(event)
        finally:
            _close(stream, self._request)
        if not self.begun:
            return None
        for event in reply.end():
            emit(event)
        with _within_litellm(self._request):
            whole = reply.response(_load())
        if reply.is_whole:
            whole = unstreamed(whole)
        emit(Finish(whole))
        return whole


def _ask(arguments: dict[str, Any]) -> Any:
    litellm = _load()
    if not _waits(arguments):
        return litellm.completion(**arguments)
    _check_event_loop()
    return wait(litellm.acompletion(**arguments))


def _waits(request: Mapping[str, Any]) -> bool:
    """Whether the reply is awaited; one that is there already (`litellm_recorded`) never is."""
    return can_wait() and not hasattr(request.get("client"), "recorded_body")


def _check_event_loop() -> None:
    import asyncio  # noqa: PLC0415 - LiteLLM has loaded it

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise ConfigurationError(
            "LiteLLM runs on asyncio only, and this call is awaited in another event loop. Use asyncio, or `HttpModel` "
            "or `LocalModel`, which run on trio too."
        ) from None


def _chunks(stream: Any, request: Mapping[str, Any]) -> Iterator[Any]:
    while True:
        with _within_litellm(request):
            try:
                chunk = wait(anext(stream)) if _waits(request) else next(stream)
            except (StopIteration, StopAsyncIteration):
                return
        yield chunk


def _close(stream: Any, request: Mapping[str, Any]) -> None:
    with shielded():
        if _waits(request):
            wait(stream.aclose())
        else:
            stream.close()


@contextlib.contextmanager
def _within_litellm(request: Mapping[str, Any]) -> Generator[None]:
    """Where LiteLLM works: its warnings are not shown, and its errors become ours."""
    if _DURING_REQUEST not in warnings.filters:  # whoever restores filters, as pytest does after a test, drops it
        warnings.filters.insert(0, _DURING_REQUEST)  # ty: ignore
    handled = sys.exception()
    _inside.set(True)
    try:
        yield
    except Exception as error:
        ours = translated(_load(), error, request, handled)
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
    left = time_left()
    if left is not None and not (isinstance(limit := arguments.get("timeout"), int | float) and limit < left):
        arguments["timeout"] = max(left, 0.001)  # 0 means the longest
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
    _drop_what_is_litellms(arguments)
    return arguments


# Those that LiteLLM sends messages to as they are.
_LIKE_OPENAI = ("openai", "custom_openai", "azure", "hosted_vllm")
_UNKNOWN = "provider_specific_fields"


def _drop_what_is_litellms(arguments: Mapping[str, Any]) -> None:
    """Take out of messages the field in which LiteLLM keeps what it does not know of a reply.

    For services with dialects of their own it reads the field again; those that speak OpenAI's would get it.
    """
    marked = [message for message in arguments["messages"] if _UNKNOWN in message]
    if not marked:
        return
    _, service, *_ = _load().get_llm_provider(arguments["model"], api_base=arguments.get("base_url"))
    if service in _LIKE_OPENAI:
        for message in marked:
            del message[_UNKNOWN]


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
