"""Keeping to what a service allows."""

from __future__ import annotations

import contextvars
import dataclasses
import json
from collections.abc import Callable, Mapping
from typing import Any

from effectful_agents.errors import OptionError, ProviderError
from effectful_agents.handlers.provision.pacing import Closed, Grant, Pace
from effectful_agents.handlers.provision.retries import conditions, under
from effectful_agents.messages import Response, Usage
from effectful_agents.operations.counting import count_tokens, estimate_tokens
from effectful_agents.operations.loop import completion
from effectful_agents.runtime import ObjectInterpretation, fwd, implements

__all__ = ["RateLimit"]

# The paces that a request is under way in, in this context.
_under_way: contextvars.ContextVar[tuple[Pace, ...]] = contextvars.ContextVar("_under_way", default=())


class RateLimit(ObjectInterpretation[Any, Any]):
    """Let requests wait until they are within the limits of their model.

    Wraps `completion`. One object is shared by everything that runs under it: threads, tasks, event loops. Each model,
    by the name in the request, has limits of its own, of the same size. Requests go out in the order in which they
    came, at once as long as the limits allow; a request that is made again after a failure waits as well. Who waits
    does so by `sleep`, so that cancellation and a `Deadline` end it, and its place is the next one's.

    There are never more than `requests_per_minute` requests in any 60 seconds. Tokens are counted before a request
    (`count_tokens`, with its tools and its `max_tokens`), and set to what the reply reports when it is there. A request
    with more than `tokens_per_minute` cannot be split: it waits until no other counts, and goes alone.

    Where the service asks for a pause (`retry_after`), everybody waits for it; where that is more than a minute,
    requests fail at once until then, as the one did that was told so.

    Not seen is what a handler does inside of one attempt: a service that does not stream, and is asked again without,
    counts once.

    Put it outside of what names the model (`LiteLLMConfigurer`; further inside it does not see the name, and all
    requests without one have one limit in common), and outside of `Fallback`, each of whose attempts then counts for
    the model that is asked. `harness(requests_per_minute=…)` does.

    Args:
        *models: The models that it holds for; none for all. For models with different limits take several.
        requests_per_minute: Requests in any 60 seconds.
        tokens_per_minute: Tokens in any 60 seconds, of prompts and replies.
        concurrent: Requests that are under way at a time.

    Raises:
        OptionError: No limit is given, or one is no whole number from 1 on.
        ProviderError: From `completion`: the service has asked for a pause of more than a minute. Its status is 429.

    >>> from effectful_agents.operations.world import now, sleep
    >>> from effectful_agents.runtime import handler
    >>> from effectful_agents.testing import ScriptedModel
    >>> with handler({now: lambda: 0.0, sleep: lambda seconds: print(seconds, "seconds")}):
    ...     with handler(ScriptedModel("one", "two", "three")), handler(RateLimit(requests_per_minute=2)):
    ...         for _ in range(3):
    ...             reply = completion(messages=[{"role": "user", "content": "Hi"}])
    60.0 seconds
    """

    def __init__(
        self,
        *models: str,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
        concurrent: int | None = None,
    ) -> None:
        limits = {
            "requests_per_minute": requests_per_minute,
            "tokens_per_minute": tokens_per_minute,
            "concurrent": concurrent,
        }
        if all(limit is None for limit in limits.values()):
            raise OptionError(
                f"`RateLimit` limits nothing; give it one of {', '.join(f'`{name}`' for name in limits)}."
            )
        for name, limit in limits.items():
            if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 1):
                raise OptionError(f"`{name}` is {limit!r}; it is a whole number, at least 1, or None for no limit.")
        unnamed = next((model for model in models if not isinstance(model, str) or not model), None)
        if unnamed is not None:
            raise OptionError(f"`{unnamed!r}` is no name of a model.")
        self.models = frozenset(models)
        self.requests_per_minute = requests_per_minute
        self.tokens_per_minute = tokens_per_minute
        self.concurrent = concurrent
        self._paces: dict[str, Pace] = {}

    def manifest(self) -> Mapping[str, object]:
        """What the manifest of a stack says of it."""
        limits = {
            "requests_per_minute": self.requests_per_minute,
            "tokens_per_minute": self.tokens_per_minute,
            "concurrent": self.concurrent,
        }
        return {"limits": {name: limit for name, limit in limits.items() if limit is not None}}

    @implements(completion)
    def completion(self, **request: Any) -> Response:
        model = request.get("model") or ""
        if self.models and model not in self.models:
            return fwd()
        tokens = 0 if self.tokens_per_minute is None else _estimated(request)
        passage = _Passage(self._pace(model), model, tokens)
        given = conditions()
        # A request that a handler makes in the middle of another one is none of its attempts.
        others = {owner: wrap for owner, wrap in given.around.items() if owner != id(self)}
        with passage, under(dataclasses.replace(given, around={id(self): passage.attempt, **others})):
            reply = fwd()
            passage.tokens = _reported(reply)
        return reply

    def _pace(self, model: str) -> Pace:
        pace = self._paces.get(model)
        if pace is None:
            new = Pace(self.requests_per_minute, self.tokens_per_minute, self.concurrent)
            pace = self._paces.setdefault(model, new)  # another thread may have been here meanwhile
        return pace


class _Passage:
    """One request with its repetitions, each of which has to be let out. As a context manager it has the first one.

    Attributes:
        tokens: Those of the reply, when they are known.
    """

    def __init__(self, pace: Pace, model: str, estimated: int) -> None:
        self.tokens: int | None = None
        self._pace = pace
        self._model = model
        self._estimated = estimated
        self._grant: Grant | None = None
        self._used = False
        self._around = _under_way.get()

    def __enter__(self) -> None:
        self._enter()
        _under_way.set((*self._around, self._pace))

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: object) -> None:
        _under_way.set(self._around)
        self._leave(error)

    def attempt[T](self, ask: Callable[[], T]) -> T:
        """Make one attempt."""
        if self._used:
            self._leave()
        self._used = True
        self._enter()
        try:
            return ask()
        except ProviderError as error:
            # Not while it pauses: others may go on meanwhile.
            self._leave(error)
            raise

    def _enter(self) -> None:
        if self._grant is not None:
            return
        try:
            self._grant = self._pace.enter(self._estimated, inside=self._pace in self._around)
        except Closed as closed:
            asked = f"the service of `{self._model}`" if self._model else "the service"
            raise ProviderError(
                f"{asked} has asked for a pause, of which {closed.seconds:.0f} seconds are left",
                status=429,
                retry_after=closed.seconds,
            ) from None

    def _leave(self, error: BaseException | None = None) -> None:
        if self._grant is None:
            return
        grant, self._grant = self._grant, None
        try:
            if isinstance(error, ProviderError) and error.retry_after:
                self._pace.close(error.retry_after)
        finally:
            self._pace.leave(grant, self.tokens)


def _estimated(request: Mapping[str, Any]) -> int:
    described = {name: request[name] for name in ("tools", "response_format") if request.get(name)}
    tokens = count_tokens(request.get("messages", []), request.get("model")).tokens
    if described:
        tokens += estimate_tokens(json.dumps(described, ensure_ascii=False, default=str))
    limit = request.get("max_tokens") or request.get("max_completion_tokens")
    return tokens + (limit if isinstance(limit, int) else 0)


def _reported(reply: Response) -> int | None:
    usage = Usage.from_wire(reply.get("usage") if isinstance(reply, Mapping) else None)
    if usage.input is None and usage.output is None:
        return None
    return (usage.input or 0) + (usage.output or 0)
