"""Bodies that a provider once sent, read by LiteLLM as if they came now. Nothing is sent anywhere."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Mapping
from typing import Any

from effectful_agents.handlers.provision.http.transport import load
from effectful_agents.handlers.provision.litellm import _load, _send
from effectful_agents.messages import Response
from effectful_agents.messages.exchange import settings_of_a_service

__all__ = ["read_recorded"]

_KEYS: Mapping[str, Mapping[str, Any]] = {
    "bedrock": {
        "aws_access_key_id": "recorded",
        "aws_secret_access_key": "recorded",
        "aws_region_name": "us-east-1",
    },
}
"""What some services are reached with in the place of a key."""
_MODELS: Mapping[str, str] = {"bedrock": "converse/anthropic.claude-sonnet-4-5-20250929-v1:0"}
"""The model where none is said, for services that have several forms of bodies."""


def read_recorded(provider: str, body: bytes, kind: str, request: Mapping[str, Any], *, stream: bool) -> Response:
    """The reply that a body holds, as LiteLLM reads it for a request; its pieces are told where it is a stream.

    Args:
        provider: The provider, as LiteLLM names it; the model may follow after a `/`.
        body: The body.
        kind: Its type, as HTTP names it.
        request: The request that it answers. What it says of a service is left out.
        stream: Whether the body is a stream.

    Raises:
        ConfigurationError: LiteLLM knows no such provider.
        AgentsError: As from a request that is sent. A body that is no reply is a `ProviderError`.
    """
    model = _model(provider, str(request.get("model") or ""))
    left_out = {*settings_of_a_service(request), "model", "num_retries", "timeout"}
    kept = {name: value for name, value in request.items() if name not in left_out}
    reached_with = _KEYS.get(model.partition("/")[0], {"api_key": "recorded"})
    with _client(body, kind) as client:
        return _send({**kept, **reached_with, "model": model, "client": client, "num_retries": 0, "stream": stream})


def _model(provider: str, asked: str) -> str:
    service, _, model = provider.partition("/")
    if model:
        return provider
    # The form of some requests, and so of replies, depends on the model.
    return asked if asked.startswith(f"{service}/") else f"{service}/{_MODELS.get(service, 'recorded')}"


@contextlib.contextmanager
def _client(body: bytes, kind: str) -> Generator[Any]:
    """What LiteLLM sends a request with, in the place of its own client and of OpenAI's, which it has for some."""
    litellm, httpx = _load(), load()
    import openai  # noqa: PLC0415 - loaded by LiteLLM

    def answer(request: Any) -> Any:
        return httpx.Response(200, content=body, headers={"content-type": kind})

    client = httpx.Client(transport=httpx.MockTransport(answer))
    as_openai = openai.OpenAI(api_key="recorded", base_url="http://recorded.invalid/v1", http_client=client)

    class Recorded(litellm.HTTPHandler):
        recorded_body = True

        def post(self, *args: Any, **kwargs: Any) -> Any:
            sends = as_openai.post if "cast_to" in kwargs else super().post
            return sends(*args, **kwargs)

        def __getattr__(self, name: str) -> Any:
            return getattr(as_openai, name)

    with client:
        yield Recorded(client=client)
