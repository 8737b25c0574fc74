"""A gateway behind an address."""

from __future__ import annotations

import dataclasses
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from effectful_agents.errors import (
    ConfigurationError,
    ModelAccessError,
    NetworkError,
    OptionError,
    ProviderError,
    RequestTimeoutError,
)
from effectful_agents.handlers.delegation.seam import wire
from effectful_agents.handlers.delegation.seam.failures import bounded, read_error
from effectful_agents.handlers.delegation.seam.transport import Answer, load, post
from effectful_agents.handlers.delegation.seam.versions import SEAM_VERSION, supported_versions
from effectful_agents.messages import Response, StreamEvent
from effectful_agents.operations.elsewhere import (
    CallContext,
    DescribedCall,
    DescribedEffect,
    Hello,
    PermittedDecision,
    ToolOutcome,
    Welcome,
)
from effectful_agents.runtime import time_left

__all__ = ["HttpGateway"]

PATH = "/seam/"
VERSION_HEADER = "effectful-seam"
_PROVIDER = "gateway"


@dataclasses.dataclass(frozen=True, slots=True)
class _Event:
    event: StreamEvent | None


@dataclasses.dataclass(frozen=True, slots=True)
class _Reply[T]:
    reply: T


class HttpGateway:
    """A gateway that `effectful-agents serve gateway` runs, or another that speaks the same.

    What goes wrong is an error of ours, and the body of an answer is never part of one as it came. A call that is
    cancelled closes its connection.

    Args:
        url: Its address.
        token: What lets the program in.
        timeout: Seconds that may pass between two signs of life; the gateway gives one every few seconds while it
            waits for a model. None waits for ever.
        max_bytes: How large an answer may be.

    Raises:
        OptionError: `url` is no address of HTTP, or `token` cannot be sent.

    >>> HttpGateway("http://127.0.0.1:9")
    HttpGateway('http://127.0.0.1:9')
    """

    def __init__(
        self, url: str, *, token: str | None = None, timeout: float | None = 60.0, max_bytes: int = 64_000_000
    ) -> None:
        self._url = _address(url)
        self._timeout = timeout
        self._most = max_bytes
        self._version = SEAM_VERSION
        self._headers = {"content-type": "application/json", "user-agent": "effectful-agents"}
        if token:
            if not (token.isascii() and token.isprintable() and token == token.strip()):
                raise OptionError("`token` has characters that cannot be sent; was the end of a line read with it?")
            self._headers["authorization"] = f"Bearer {token}"

    def __repr__(self) -> str:
        return f"HttpGateway({self._url!r})"

    def hello(self, hello: Hello, context: CallContext) -> Welcome:
        welcome = self._asked("hello", wire.write_record(hello), context, wire.read_welcome)
        if welcome.version not in supported_versions():
            raise self._unreadable(f"it chose version {bounded(welcome.version)!r}, which was not offered")
        self._version = welcome.version
        return welcome

    def completion(
        self,
        request: Mapping[str, Any],
        context: CallContext,
        *,
        tell: Callable[[StreamEvent], None] | None = None,
        permit: str = "",
    ) -> Response:
        body: dict[str, Any] = {"request": request}
        if tell is not None:
            body["stream"] = True
        if permit:
            body["permit"] = permit
        return self._asked("completion", body, context, wire.read_response, tell)

    def decide(self, effect: DescribedEffect, context: CallContext) -> PermittedDecision:
        return self._asked("decide", wire.write_record(effect), context, wire.read_decision)

    def call_tool(self, call: DescribedCall, context: CallContext) -> ToolOutcome:
        try:
            return self._asked("tool", wire.write_record(call), context, wire.read_outcome)
        except ProviderError as error:
            # Where it was refused before it began, or no connection was made, it has not happened.
            if error.status != 429 and not isinstance(error.__cause__, load().ConnectError | load().ConnectTimeout):
                error.retryable = False
                error.args = (f"{error}; whether the tool was run is not known",)
            raise

    # --- one request --------------------------------------------------------------------------------------------------

    def _asked[T](
        self,
        what: str,
        body: Mapping[str, Any],
        context: CallContext,
        read: Callable[[Any], T],
        tell: Callable[[StreamEvent], None] | None = None,
    ) -> T:
        headers = {**self._headers, VERSION_HEADER: self._version, **context.headers()}
        # A call with a time limit does not wait longer for a sign of life than it has left.
        timeout = min((one for one in (self._timeout, time_left()) if one is not None), default=None)
        httpx = load()
        try:
            with post(self._url + PATH + what, headers, wire.as_json(body), timeout, self._most) as answer:
                return self._read(answer, read, tell)
        except httpx.TimeoutException as error:
            raise RequestTimeoutError(f"{self._what()}: nothing came for {timeout:g} s", provider=_PROVIDER) from error
        except httpx.TransportError as error:
            said = bounded(error) or type(error).__name__
            raise NetworkError(f"{self._what()} cannot be reached: {said}", provider=_PROVIDER) from error
        except httpx.RequestError as error:
            raise self._unreadable(bounded(error)) from error

    def _read[T](self, answer: Answer, read: Callable[[Any], T], tell: Callable[[StreamEvent], None] | None) -> T:
        for piece in self._pieces(answer, read):
            match piece:
                case _Event(event):
                    if event is not None and tell is not None:
                        tell(event)
                case _Reply(reply):
                    return reply
                case error:
                    raise error
        if 200 <= answer.status < 300:
            raise NetworkError(f"{self._what()}: the answer broke off before its end", provider=_PROVIDER)
        raise self._refused(answer, "")

    def _pieces[T](self, answer: Answer, read: Callable[[Any], T]) -> Iterator[_Event | _Reply[T] | Exception]:
        """What the lines of an answer say. What the program makes of a piece happens outside, and so do its errors."""
        try:
            for line in answer.lines:
                if not line.strip():
                    continue
                data = wire.read_json(line)
                if "error" in data:
                    yield read_error(data["error"])
                elif not 200 <= answer.status < 300:
                    return
                elif "reply" in data:
                    yield _Reply(read(data["reply"]))
                else:
                    yield _Event(wire.read_event(data.get("event")))
        except ValueError as error:
            raise self._refused(answer, bounded(error)) from error

    def _refused(self, answer: Answer, why: str) -> Exception:
        """The error for an answer that is no gateway's, but a proxy's, say."""
        status, what = answer.status, self._what()
        if 200 <= status < 300:
            return self._unreadable(why)
        if status in (401, 403):
            return ModelAccessError(f"{what}: `token` is missing or was refused (status {status})")
        if status in (404, 405):
            return ModelAccessError(f"{what}: there is no gateway at this address (status {status})")
        if status == 413:
            return ConfigurationError(f"{what}: the request is larger than it takes")
        after = answer.headers.get("retry-after", "")
        pause = float(after) if after.isascii() and after.isdecimal() else None
        return ProviderError(f"{what}: status {status}", status=status, provider=_PROVIDER, retry_after=pause)

    def _unreadable(self, why: str) -> ProviderError:
        return ProviderError(f"{self._what()}: the answer cannot be read: {why}", provider=_PROVIDER, retryable=False)

    def _what(self) -> str:
        return f"the gateway at {self._url}"


def _address(url: str) -> str:
    try:
        parts = urllib.parse.urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise OptionError(f"the address of a gateway is none: {error}") from error
    if parts.scheme not in ("http", "https") or not host or not url.isprintable() or " " in url:
        raise OptionError("the address of a gateway is one of HTTP, as in `http://127.0.0.1:8700`")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise OptionError("the address of a gateway has no user, password, query or fragment; the key is `token`")
    host = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{host}{f':{port}' if port else ''}{parts.path.rstrip('/')}"
