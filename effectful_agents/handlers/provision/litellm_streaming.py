"""Replies that come from LiteLLM in pieces.

LiteLLM makes chunks of one shape, OpenAI's, of what each provider sends. What they have in common is put together here
as it arrives, and what a provider adds (the signatures of its reasoning above all) by LiteLLM's `stream_chunk_builder`.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any, cast

from effectful_agents.errors import NetworkError
from effectful_agents.handlers.provision.assembly import Assembly, Piece
from effectful_agents.handlers.provision.counts import reported_in_pieces
from effectful_agents.handlers.provision.http.dialect import OpenAICompatible
from effectful_agents.handlers.provision.litellm_replies import response
from effectful_agents.messages import Response, StreamEvent

__all__ = ["StreamedReply"]

_DIALECT = OpenAICompatible("litellm")


class StreamedReply:
    """A reply that is put together from LiteLLM's chunks.

    Args:
        stream: The `litellm.CustomStreamWrapper` that the chunks come from.
        model: The model that was asked.

    Attributes:
        is_whole: Whether the provider does not stream, and LiteLLM makes one chunk of what it answers.
    """

    def __init__(self, stream: Any, model: str) -> None:
        self._stream = stream
        self._model = model
        self._assembly = Assembly(model)
        self._chunks: list[Any] = []
        # Of LiteLLM's iterators, those that have the reply already hold it by this name.
        self.is_whole = hasattr(stream.completion_stream, "model_response")

    @property
    def begun(self) -> bool:
        """Whether a part of the content has come."""
        return self._assembly.begun

    def add(self, chunk: Any) -> Iterator[StreamEvent]:
        """Take in a chunk, and tell what it adds."""
        self._chunks.append(chunk)
        piece = _DIALECT.from_chunk(chunk.model_dump(warnings=False))
        # LiteLLM ends every stream in good form, also one in which nothing came that it could read.
        if self.begun or _has_content(piece):
            yield from self._assembly.add(piece)

    def end(self) -> Iterator[StreamEvent]:
        """Tell that what has begun is complete.

        Raises:
            NetworkError: It is not. LiteLLM says `stop` where the provider has not said why the reply ends.
        """
        if not (self._stream.received_finish_reason or self._stream.intermittent_finish_reason):
            raise NetworkError(
                f"`{self._model}`: the stream broke off before the reply was complete",
                provider=self._stream.custom_llm_provider or "",
            )
        return self._assembly.end()

    def response(self, litellm: ModuleType) -> Response:
        """The reply, when everything has come."""
        built: dict[str, Any] = {**response(litellm.stream_chunk_builder(self._chunks), litellm)}
        assembled = self._assembly.response()["choices"][0]
        # The builder drops refusals, and takes calls that a service numbers alike for one.
        message = {**_additions(built["choices"][0]["message"]), **assembled["message"]}
        built["choices"] = [{**assembled, "message": message}]
        self._correct_usage(built)
        return cast(Response, built)

    def _correct_usage(self, reply: dict[str, Any]) -> None:
        """Take out what no provider has counted: LiteLLM counts for itself, with a tokenizer that may be another's."""
        reported = [
            usage.model_dump(warnings=False)
            for chunk in self._stream.chunks
            if (usage := getattr(chunk, "usage", None))
        ]
        usage = reply.pop("usage", None)
        if usage and reported:
            reply["usage"] = reported_in_pieces(usage, reported)


def _has_content(piece: Piece) -> bool:
    return bool(piece.text or piece.reasoning or piece.refusal or piece.calls)


def _additions(message: dict[str, Any]) -> dict[str, Any]:
    """What a message has that `Assembly` does not know of."""
    known = ("content", "tool_calls", "refusal", "reasoning_content", "function_call")
    added = {name: value for name, value in message.items() if name not in known}
    # Beside the message, and here once more, where the builder keeps the last piece of them only.
    if "thinking_blocks" in added and "thinking_blocks" in added.get("provider_specific_fields", {}):
        added["provider_specific_fields"]["thinking_blocks"] = added["thinking_blocks"]
    return added
