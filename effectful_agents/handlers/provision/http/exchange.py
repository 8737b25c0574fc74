"""One attempt to get a reply: a request that is sent, and an answer that is read, whole or in pieces."""

from __future__ import annotations

import codecs
import contextlib
import dataclasses
import itertools
import json
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from effectful_agents.errors import ProviderError
from effectful_agents.handlers.provision.assembly import Assembly
from effectful_agents.handlers.provision.http import sse
from effectful_agents.handlers.provision.http.dialect import Provider
from effectful_agents.handlers.provision.http.failures import Asked
from effectful_agents.handlers.provision.http.transport import Answer, load
from effectful_agents.handlers.provision.telling import tell_whole
from effectful_agents.messages import Finish, Request, Response
from effectful_agents.operations.steps import emit

__all__ = ["Exchange"]

_SENTINEL = "[DONE]"
"""Ends a stream, whatever comes after it."""
_KEEP_ALIVE = ("", "null")
"""Says nothing but that the connection still stands."""
_CANNOT_STREAM = (400, 422, 501)
# What a dialect trips over when a body has another shape than it should.
_MALFORMED = (ValueError, TypeError, AttributeError, KeyError, RecursionError)


class Exchange:
    """One attempt to get a reply.

    Args:
        send: Sends a body with a timeout in seconds; see `transport.post`.
        provider: The dialect.
        asked: What is asked where, for errors.
        timeout: Seconds between two signs of life.
    """

    def __init__(
        self,
        send: Callable[[bytes, float | None], AbstractContextManager[Answer]],
        provider: Provider,
        asked: Asked,
        timeout: float | None,
    ) -> None:
        self._send = send
        self._provider = provider
        self._asked = asked
        self._timeout = timeout
        self._assembly = Assembly(asked.model)

    @property
    def begun(self) -> bool:
        """Whether a part of a stream has come."""
        return self._assembly.begun

    def whole(self, request: Request) -> Response:
        """Ask for the reply in one piece, and tell of it."""
        with self._answer(request, stream=False) as answer:
            return self._whole(answer)

    def streamed(self, request: Request) -> Response:
        """Ask for the reply in pieces and tell of each; take it in one where the service cannot do that."""
        try:
            with self._answer(request, stream=True) as answer:
                kind = answer.headers.get("content-type", "")
                if "json" in kind or "html" in kind:
                    return self._whole(answer)
                is_object, body = _is_object(answer.body)
                if is_object:
                    return self._whole(dataclasses.replace(answer, body=body))
                self._take_in(body)
        except ProviderError as error:
            if self.begun or error.status not in _CANNOT_STREAM or "stream" not in str(error).lower():
                raise
        else:
            for event in self._assembly.end():
                emit(event)
            reply = self._assembly.response()
            emit(Finish(reply))
            return reply
        return self.whole(request)

    @contextlib.contextmanager
    def _answer(self, request: Request, *, stream: bool) -> Generator[Answer, None, None]:
        body = json.dumps(self._provider.to_wire(request, stream=stream), ensure_ascii=False, separators=(",", ":"))
        try:
            # A lone surrogate has no form on the wire.
            with self._send(body.encode("utf-8", "replace"), self._timeout) as answer:
                if not 200 <= answer.status < 300:
                    raise self._asked.refused(answer.status, b"".join(answer.body), answer.headers)
                yield answer
        except load().RequestError as error:
            raise self._asked.failed(load(), error, self._timeout) from error

    def _whole(self, answer: Answer) -> Response:
        raw = b"".join(answer.body)
        try:
            body = json.loads(raw)
        except (ValueError, RecursionError) as error:
            start = raw[:200].decode("utf-8", "replace")
            raise self._asked.unreadable(f"it is not JSON: {start}", status=answer.status) from error
        try:
            self._look_for_error(body)
            reply = self._provider.from_wire(body)
        except _MALFORMED as error:
            raise self._asked.unreadable(error, status=answer.status) from error
        if self._asked.model:
            reply.setdefault("model", self._asked.model)
        return tell_whole(reply)

    def _take_in(self, body: Iterable[bytes]) -> None:
        for data in sse.events(body, _is_whole):
            if data.strip() == _SENTINEL:
                return
            if data.strip() in _KEEP_ALIVE:
                continue
            try:
                chunk = json.loads(data)
                self._look_for_error(chunk)
                piece = self._provider.from_chunk(chunk)
            except _MALFORMED as error:
                raise self._asked.unreadable(error) from error
            for event in self._assembly.add(piece):
                emit(event)
        # Some gateways leave the sentinel out.
        if self._assembly.finish_reason is None:
            raise self._asked.broken()

    def _look_for_error(self, body: Any) -> None:
        # Gateways that have begun to answer cannot change the status any more.
        if isinstance(body, dict) and body.get("error"):
            error = body["error"]
            code = error.get("code") if isinstance(error, dict) else None
            raise self._asked.refused(code if isinstance(code, int) and 400 <= code < 600 else None, body, {})


def _is_object(body: Iterator[bytes]) -> tuple[bool, Iterator[bytes]]:
    """Whether a body begins as one in JSON does and a stream cannot, whatever its headers say; and all of the body."""
    read = []
    for piece in body:
        read.append(piece)
        if start := piece.removeprefix(codecs.BOM_UTF8).strip():
            return start.startswith((b"{", b"[")), itertools.chain(read, body)
    return False, iter(read)


def _is_whole(data: str) -> bool:
    """Whether data that the end of the connection ended is all of an event."""
    if data.strip() == _SENTINEL:
        return True
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return False
    return True
