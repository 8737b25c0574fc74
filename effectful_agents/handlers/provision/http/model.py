"""The handler that asks a model behind an address."""

from __future__ import annotations

import functools
import urllib.parse
from collections.abc import Mapping
from typing import Any, cast

from effectful_agents.errors import OptionError, ProviderError
from effectful_agents.handlers.provision.http.dialect import OpenAICompatible, Provider
from effectful_agents.handlers.provision.http.exchange import Exchange
from effectful_agents.handlers.provision.http.failures import Asked
from effectful_agents.handlers.provision.http.transport import load, post
from effectful_agents.handlers.provision.naming import said_of
from effectful_agents.handlers.provision.retries import RETRIES, retried
from effectful_agents.handlers.provision.tool_choice import enforce
from effectful_agents.messages import Request, Response, ToolChoice
from effectful_agents.operations.loop import model_in_use, send_request
from effectful_agents.operations.steps import emit
from effectful_agents.runtime import ObjectInterpretation, fwd, implements, interpretation, time_left

__all__ = ["HttpModel"]

_LONGEST_LABEL = 63
"""Characters between two dots of a host."""
_SHORTEST_SECRET = 6
"""Characters. What is shorter keeps no secret, and blotting it out would only make errors unreadable."""


class HttpModel(ObjectInterpretation[Any, Any]):
    """Ask a service that speaks the chat completions of OpenAI: vLLM, llama-server, Ollama, a gateway.

    Handles `send_request`. With a `model` it answers the requests that name exactly that one and those that name none,
    and forwards the others, so that several stand side by side. Without one it answers every request but those for
    `local/…`. So it stands inside of `LiteLLMConfigurer`, which it needs for nothing and which would take its requests.
    The address and the key are its own; those of a request are for LiteLLM and are never sent.

    Where somebody listens to `emit`, or a request says `stream=True`, the reply is asked for in pieces and told as they
    arrive. A reply that comes whole all the same is told in one piece, and has `streamed: False` in its
    `provider_metadata`. A stream that breaks off is asked for again, whole; its events begin anew with `StreamStart`.

    A failure that may pass is tried again, as with `LiteLLMConfigurer`. In a call that is awaited other tasks go on
    meanwhile, on asyncio and trio; cancelling closes the connection. The reply is held to `tool_choice`.

    Args:
        base_url: The address up to `path`, such as `http://localhost:8000/v1`.
        model: The model that is answered for; it is sent where a request names none.
        api_key: The key. None or an empty text: no `Authorization` is sent.
        provider: The dialect.
        path: What is added to `base_url`.
        headers: More headers, sent as they are.
        timeout: Seconds that may pass between two signs of life, not for the whole reply; before a reply that
            comes whole, a model that reasons is silent for long. None waits for ever. A request's own `timeout` wins.
        num_retries: How often a request is made again; a request's own `num_retries` wins.

    Raises:
        OptionError: `base_url` is no address of HTTP, or `api_key` cannot be sent.
        ModelAccessError: From a request: the key is missing or refused, or model or address are not known.
        ContextLengthError: From a request: the prompt is too long for the model.
        RefusalError: From a request: the service's filter refused it.
        RequestTimeoutError: From a request: nothing came for `timeout` seconds, or the service gave up.
        NetworkError: From a request: the connection failed.
        ProviderError: From a request: the service failed, or its reply cannot be read.
        ResultDecodingError: From a request: a tool had to be called, and none was.
        ToolCallDecodingError: From a request: a tool was called that may not be.

    >>> from effectful_agents.errors import MissingHandlerError
    >>> from effectful_agents.runtime import handler
    >>> with handler(HttpModel("http://localhost:8000/v1", model="qwen3")):
    ...     try:
    ...         send_request(model="gpt-5-mini", messages=[])
    ...     except MissingHandlerError:
    ...         print("not for this one")
    not for this one
    """

    def __init__(
        self,
        base_url: str,
        *,
        model: str | None = None,
        api_key: str | None = None,
        provider: Provider = OpenAICompatible(),  # noqa: B008 - a value that never changes
        path: str = "/chat/completions",
        headers: Mapping[str, str] | None = None,
        timeout: float | None = 120.0,
        num_retries: int = RETRIES,
    ) -> None:
        self.model = model
        self.provider = provider
        self.timeout = timeout
        self.num_retries = num_retries
        self._url, self._shown_url = _addresses(base_url, path)
        self._headers = {"content-type": "application/json", "user-agent": "effectful-agents"}
        if api_key:
            self._headers["authorization"] = f"Bearer {_sendable('`api_key`', api_key)}"
        for name, value in (headers or {}).items():
            self._headers[name.lower()] = _sendable(f"the header `{name}`", value)
        self._has_key = bool(api_key)
        # Of a header such as `Bearer …` a service repeats the second word.
        words = " ".join((headers or {}).values()).split()
        secrets = {api_key or "", urllib.parse.urlsplit(base_url).password or "", *words}
        # The longest first: one may hold another.
        self._secrets = tuple(sorted((one for one in secrets if len(one) >= _SHORTEST_SECRET), key=len, reverse=True))

    def manifest(self) -> Mapping[str, object]:
        """What the manifest of a stack says of it."""
        return said_of(self.model)

    @implements(model_in_use)
    def model_in_use(self) -> str | None:
        return fwd() or self.model  # where a request names one, this is not asked

    @implements(send_request)
    def send_request(self, **request: Any) -> Response:
        if not self._answers(request.get("model")):
            return fwd()
        if not request.get("model") and self.model:
            request["model"] = self.model
        reply = self._reply(cast(Request, request))
        if request.get("tools"):
            enforce(ToolChoice.from_wire(request.get("tool_choice")), reply, request["messages"])
        return reply

    def _answers(self, model: str | None) -> bool:
        if self.model is None:
            return not (model or "").startswith("local/")
        return not model or model == self.model

    def _reply(self, request: Request) -> Response:
        send = functools.partial(post, self._url, self._headers)
        asked = Asked(self._shown_url, request.get("model") or "", self.provider.name, self._has_key, self._secrets)
        timeout, retries, stream = request.get("timeout"), request.get("num_retries"), request.get("stream")
        if stream is None:
            stream = emit in interpretation()
        # Several replies at once would have to be told apart, and nobody listens to the others.
        stream = stream and request.get("n", 1) == 1

        def ask() -> Response:
            nonlocal stream
            # A call with a time limit does not wait longer for a sign of life than it has left.
            limits = [self.timeout if timeout is None else timeout, time_left()]
            limit = min((one for one in limits if one is not None), default=None)
            exchange = Exchange(send, self.provider, asked, limit)
            try:
                return exchange.streamed(request) if stream else exchange.whole(request)
            except ProviderError:
                stream = stream and not exchange.begun
                raise

        return retried(ask, self.num_retries if retries is None else retries)


def _addresses(base_url: str, path: str) -> tuple[str, str]:
    """The address that is asked, and the same as errors show it: without a password and what follows `?`."""
    try:
        parts = urllib.parse.urlsplit(base_url)
        place = f"{parts.hostname}:{parts.port}" if parts.port else parts.hostname
    except ValueError as error:
        raise OptionError(f"`base_url` is no address: {error}") from error
    if parts.scheme not in ("http", "https") or not place:
        raise OptionError("`base_url` is no address of HTTP; write it as in `http://localhost:8000/v1`")
    url = f"{base_url.rstrip('/')}/{path.lstrip('/')}"
    # `urlsplit` leaves out the end of a line, and httpx does not.
    if not url.isprintable():
        raise OptionError(
            "`base_url` or `path` has characters that cannot be sent; was the end of a line read with it?"
        )
    _check_host(parts.hostname or "", url)
    return url, f"{parts.scheme}://{place}{urllib.parse.urlsplit(url).path}"


def _check_host(host: str, url: str) -> None:
    if not all(0 < len(label) <= _LONGEST_LABEL for label in host.removesuffix(".").split(".")):
        raise OptionError("`base_url` is no address: a part of its host is empty, or longer than 63 characters")
    if not host.isascii() or "xn--" in host:
        try:
            # Read when it is wanted.
            load().URL(url).host  # noqa: B018
        except (load().InvalidURL, UnicodeError) as error:
            raise OptionError(f"`base_url` is no address: there can be no host `{host}`") from error


def _sendable(what: str, value: str) -> str:
    # httpx refuses it too, but later, and shows it.
    if not (value.isascii() and value.isprintable() and value == value.strip()):
        raise OptionError(f"{what} has characters that cannot be sent; was the end of a line read with it?")
    return value
