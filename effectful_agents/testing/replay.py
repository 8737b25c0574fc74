"""A model that answers with bodies that a service once sent."""

from __future__ import annotations

import contextlib
import json
import threading
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from effectful_agents.errors import OptionError
from effectful_agents.handlers.provision.http import OpenAICompatible, sse
from effectful_agents.handlers.provision.http.exchange import Exchange
from effectful_agents.handlers.provision.http.failures import Asked
from effectful_agents.handlers.provision.http.transport import Answer
from effectful_agents.handlers.provision.litellm_recorded import read_recorded
from effectful_agents.handlers.provision.tool_choice import enforce
from effectful_agents.messages import Request, Response, ToolChoice
from effectful_agents.operations.loop import completion
from effectful_agents.runtime import ObjectInterpretation, implements
from effectful_agents.testing.rows import asked_once_more, noted

__all__ = ["ReplayModel", "split_sse"]

_COMPATIBLE = "openai-compatible"
_SENTINEL = "[DONE]"
_STREAMS: Mapping[str, str] = {
    ".sse": "text/event-stream",
    ".ndjson": "application/x-ndjson",
    ".eventstream": "application/vnd.amazon.eventstream",
}
"""The suffixes of bodies that came in pieces, and the type of each as HTTP names it."""


class ReplayModel(ObjectInterpretation[Any, Any]):
    """Answer each request of the model with the next of some recorded bodies, read as they are when they arrive.

    Handles `completion` and forwards nothing, so it stands outermost, in the place of a provider. What a body becomes
    is not written down by hand: the code reads it that reads the replies of the service, down to the tokens and to the
    events of a stream. A body that holds an error, or half of a reply, raises what that raises. It may be shared by
    threads and tasks; each request takes one body.

    Args:
        *bodies: Files, in the order in which they are served. `.sse` is a stream of server-sent events; so are
            `.ndjson`, as Ollama sends it, and `.eventstream`, as Bedrock does. Any other suffix: a whole reply.
        provider: Whose bodies they are. "openai-compatible" are read as `HttpModel` does it. Any other provider that
            LiteLLM knows, "anthropic", "gemini", "bedrock", is read by LiteLLM, which takes seconds to load; the model
            may follow after a `/` where a form of bodies depends on it.

    Attributes:
        requests: The requests that came, in order; each keeps the messages that it had when it came.

    Raises:
        OptionError: `provider` is no text, or a body no path.
        OSError: A body cannot be read.
        ConfigurationError: From `completion`, when all bodies have been served, or LiteLLM knows no such provider.

    >>> from pathlib import Path
    >>> from effectful_agents import handler
    >>> body = Path("reply.json")
    >>> size = body.write_text('{"choices": [{"message": {"role": "assistant", "content": "Paris"}}]}')
    >>> with handler(ReplayModel(body)):
    ...     reply = completion(messages=[{"role": "user", "content": "The capital of France?"}])
    >>> reply["choices"][0]["message"]["content"]
    'Paris'
    """

    requests: list[Request]

    def __init__(self, *bodies: str | Path, provider: str = _COMPATIBLE) -> None:
        if not isinstance(provider, str) or not provider:
            raise OptionError(f"`provider` is {provider!r}; it is a name, such as 'openai-compatible' or 'anthropic'.")
        wrong = next((body for body in bodies if not isinstance(body, str | Path)), None)
        if wrong is not None:
            raise OptionError(f"`{wrong!r:.80}` is no body: give the paths of files.")
        self.provider = provider
        self.requests = []
        # Read now: a test that changes its folder has them all the same.
        self._bodies = deque((Path(body), Path(body).read_bytes()) for body in bodies)
        self._recorded = len(bodies)
        self._lock = threading.Lock()

    @property
    def remaining(self) -> int:
        """How many bodies have not been served yet."""
        return len(self._bodies)

    @implements(completion)
    def completion(self, **request: Any) -> Response:
        seen = noted(request)
        with self._lock:
            self.requests.append(seen)
            served = self._bodies.popleft() if self._bodies else None
        if served is None:
            had = "1 body" if self._recorded == 1 else f"{self._recorded} bodies"
            raise asked_once_more(self, had, seen)
        path, body = served
        reply = self._read(path, body, seen)
        if request.get("tools"):
            enforce(ToolChoice.from_wire(request.get("tool_choice")), reply, request["messages"])
        return reply

    def _read(self, path: Path, body: bytes, request: Request) -> Response:
        kind = _STREAMS.get(path.suffix)
        if self.provider != _COMPATIBLE:
            kind, stream = kind or "application/json", kind is not None
            return read_recorded(self.provider, body, kind, request, stream=stream)

        @contextlib.contextmanager
        def serve(sent: bytes, timeout: float | None) -> Generator[Answer]:
            yield Answer(200, {"content-type": kind or "application/json"}, iter([body]))

        asked = Asked(str(path), request.get("model") or "", _COMPATIBLE)
        exchange = Exchange(serve, OpenAICompatible(), asked, None)
        return exchange.whole(request) if kind is None else exchange.streamed(request)


def split_sse(text: str) -> list[dict[str, Any]]:
    r"""The fragments of a reply that came as server-sent events, each as it is in JSON.

    The sentinel `[DONE]` ends the body: what stands after it is not read. A gateway that puts its own behind that of
    the service it asks sends two, and whoever went on to the second would take what is between for a part of the reply.

    Args:
        text: The body. Names of events, comments and empty events are left out.

    Raises:
        ValueError: A fragment is not JSON, or no object.

    >>> split_sse('event: piece\ndata: {"a": 1}\n\ndata: [DONE]\n\ndata: {"a": 2}\n\n')
    [{'a': 1}]
    """
    return list(_fragments(sse.events([text.encode("utf-8", "replace")])))


def _fragments(events: Iterable[str]) -> Iterator[dict[str, Any]]:
    for place, data in enumerate(events, 1):
        if data.strip() == _SENTINEL:
            return
        if not data.strip():
            continue
        fragment = json.loads(data)
        if not isinstance(fragment, dict):
            raise ValueError(f"fragment {place} is no object: {data[:80]}")
        yield fragment
