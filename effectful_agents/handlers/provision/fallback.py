"""Asking another model when one fails."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

from effectful_agents.errors import (
    ConfigurationError,
    ContextLengthError,
    ModelAccessError,
    OptionError,
    ProviderError,
    RefusalError,
)
from effectful_agents.handlers.provision.alternatives import Alternative, Model, alternative
from effectful_agents.handlers.provision.naming import said_of
from effectful_agents.handlers.provision.retries import Spent, conditions, under
from effectful_agents.messages import Finish, PromptProgress, Response, StreamEvent, StreamStart
from effectful_agents.operations.loop import completion
from effectful_agents.operations.steps import StepEvent, current_ids, emit
from effectful_agents.operations.world import now
from effectful_agents.runtime import (
    Interpretation,
    ObjectInterpretation,
    check_stopped,
    fwd,
    handler,
    implements,
    interpretation,
)
from effectful_agents.tracebacks import summary

__all__ = ["Fallback", "another_may_answer"]

_log = logging.getLogger(__name__)

_PATIENCE = 2.0
"""Seconds that a pause before a repetition may have while another model is left."""

# What says of a service that it, or the key for it, is at fault, and not the request: no credit, forbidden, no such
# model, took too long, gone, too large for it, too many requests.
_OF_THE_SERVICE = (401, 402, 403, 404, 408, 410, 413, 429)


def another_may_answer(error: Exception) -> bool:
    """Whether an error is one that another model may mend.

    It is where the service, or the way to it, is at fault: `NetworkError`, `RequestTimeoutError`, any `ProviderError`
    that is `retryable` or whose status is not of the request's making, `ModelAccessError`, and `ContextLengthError`,
    since another model may read more. It is not where the request is wrong (400, 422, any other `ConfigurationError`),
    and not for a `RefusalError`: a model that declined is not passed over for one that does not, unless you say so.

    >>> [another_may_answer(ProviderError("no", status=status)) for status in (None, 429, 503, 402, 400)]
    [True, True, True, True, False]
    """
    if isinstance(error, RefusalError):
        return False
    if isinstance(error, ContextLengthError | ModelAccessError):
        return True
    if not isinstance(error, ProviderError):
        return False
    status = error.status
    return error.retryable or status is None or not 400 <= status < 500 or status in _OF_THE_SERVICE


class Fallback(ObjectInterpretation[Any, Any]):
    """Ask the first of several models, and the next one when it fails.

    Wraps `completion`. What counts as a failure `on` says; any other exception passes at once, and so does what ends a
    call (`Cancelled`, a `Deadline`). A reply that cannot be decoded is no failure: `TenacityRetryer` has it mended.

    *The prompt's prefix* goes to another model when one fails and again when that one is back, so a provider's cache is
    of no use for the first request after each change. The messages are the same for all of them.

    The repetitions of all models together are those of one request, `num_retries`: with three models, two retries and
    everything down there are 3 + 2 requests. While another model is left, none is waited for longer than two seconds.

    A model that failed is not asked again for `rest_seconds`, or as long as it said (`retry_after`) if that is longer,
    by anybody who shares this handler, as long as another answers. A prompt that is too long is no reason to rest.

    When all have failed, the error is raised about which something can be done: the first that may pass, or that says
    the prompt is too long; where there is none, the first. The others are its notes (`__notes__`).

    The reply says in `model` who answered. Where that is not the first of them, its `provider_metadata` has `fallback`:
    the `model`, and `instead_of`, with what was wrong with each of those before it. So has the `response` of the
    `ModelStep`.

    Where pieces of a reply were told before it failed, it is as with any stream that breaks off: the next model is
    asked for the reply in one piece, and its events begin anew with `StreamStart`.

    Put it inside of what fills in settings (`LiteLLMConfigurer`, `harness`). These go to each of the models, but for
    those that a service is reached with (`api_key`, `base_url`, `provider_options`, …): they are for the model that is
    configured further out, if it is among them (None), and otherwise for the first. A request that names a model
    already, because a handler further inside chose it, is meant for that one: it has these settings, and the others
    come after it.

    Args:
        *models: In the order in which they are asked, each

            - a name, for whoever answers requests here;
            - a name with settings of its own, `Model("gpt-5-mini", temperature=0)`;
            - a handler that answers requests: `LocalModel()`, `HttpModel(…)`, `LiteLLMConfigurer(…)`, or several of
              them as `Layers`. A handler of `send_request` is asked for the model in its attribute `model`, or for
              none;
            - None: the model that a request goes to as it is.
        rest_seconds: How long a model that failed is passed over; 0 for not at all, unless it says so itself.
        on: Whether to ask the next model after an exception.

    Raises:
        OptionError: There is no model, one of them is none, two have the same name, or `rest_seconds` is negative.

    >>> from effectful_agents.testing import ScriptedModel
    >>> main, other = ScriptedModel(ProviderError("overloaded", status=529)), ScriptedModel("Hello!")
    >>> with handler(Fallback(main, other)):
    ...     reply = completion(messages=[{"role": "user", "content": "Hi"}])
    >>> reply["choices"][0]["message"]["content"]
    'Hello!'
    """

    def __init__(
        self,
        *models: str | Model | Interpretation | None,
        rest_seconds: float = 10.0,
        on: Callable[[Exception], bool] = another_may_answer,
    ) -> None:
        if not models:
            raise OptionError("`Fallback` has no models; name them, the one that is asked first at the beginning.")
        if not isinstance(rest_seconds, int | float) or not rest_seconds >= 0:
            raise OptionError(f"`rest_seconds` is {rest_seconds!r}; it is a time, at least 0.")
        self._alternatives = [alternative(model) for model in models]
        given = zip(models, self._alternatives, strict=True)
        names = [one.name for model, one in given if not isinstance(model, Mapping)]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise OptionError(f"`Fallback` has `{twice}` twice; a repetition of the same is `num_retries`.")
        self.rest_seconds = rest_seconds
        self.on = on

    def manifest(self) -> Mapping[str, object]:
        """What the manifest of a stack says of it."""
        return {"models": [said_of(one.name)["model"] for one in self._alternatives], "rest_seconds": self.rest_seconds}

    @implements(completion)
    def completion(self, **request: Any) -> Response:
        named, order = request.get("model"), self._alternatives
        if named:
            meant = next((one for one in order if one.name == named), None) or Alternative(named, is_configured=True)
            order = [meant, *(one for one in order if one is not meant and not one.is_configured)]
        else:
            meant = next((one for one in order if one.is_configured), order[0])
        return _Attempts(self, request, order, meant).reply()

    def let_rest(self, failed: Alternative, error: Exception) -> None:
        """Pass a model over for a while, if what it raised says something about it."""
        about_request = isinstance(error, ContextLengthError) or getattr(error, "status", None) == 413
        if not about_request and isinstance(error, ProviderError | ModelAccessError):
            seconds = max(self.rest_seconds, error.retry_after or 0.0)
            if seconds:
                time = now()
                failed.rests = (time, time + seconds)


class _Attempts:
    """One request, which goes to one model after the other."""

    def __init__(
        self, fallback: Fallback, request: dict[str, Any], order: Sequence[Alternative], meant: Alternative
    ) -> None:
        self._fallback = fallback
        self._request = request
        self._meant = meant
        self._first = order[0]
        self._resting = _resting(order)
        # Rather than not at all, those that rest are asked when all others have failed.
        self._left = [*(one for one in order if one not in self._resting), *self._resting]
        self._failures: list[tuple[Alternative, Exception]] = []
        self._begun = False
        self._conditions = conditions()
        self._spent = self._conditions.spent or Spent()

    def reply(self) -> Response:
        """Ask until one of them answers."""
        while self._left:
            asked = self._left.pop(0)
            try:
                with self._under_conditions(), self._hearing(asked):
                    return self._marked(asked.ask(self._request, is_meant=asked is self._meant), asked)
            except Exception as error:
                mends = self._fallback.on(error)
                # Of two that failed the one before may be the one that passes.
                if not mends and not (self._failures and isinstance(error, ProviderError | ConfigurationError)):
                    raise
                check_stopped()  # the time that a request had may have been what was left of the call's
                self._note(asked, error)
            if not mends:
                break
        raise self._most_telling()

    def _note(self, failed: Alternative, error: Exception) -> None:
        self._failures.append((failed, error))
        self._fallback.let_rest(failed, error)
        if self._left:
            _log.warning("`%s` did not answer: %s", failed.name, summary(error))
        if self._begun:
            self._request["stream"] = False

    def _under_conditions(self) -> contextlib.AbstractContextManager[None]:
        longest = self._conditions.longest_pause
        return under(
            dataclasses.replace(
                self._conditions, spent=self._spent, longest_pause=min(longest, _PATIENCE) if self._left else longest
            )
        )

    @contextlib.contextmanager
    def _hearing(self, asked: Alternative) -> Generator[None]:
        """Notice whether pieces of the reply are told, and have its end say who answered."""
        if emit not in interpretation():
            yield
            return
        ids = current_ids()

        def hear(event: StreamEvent | StepEvent) -> None:
            if current_ids() is not ids or isinstance(event, StepEvent | StreamStart | PromptProgress):
                fwd()
            elif isinstance(event, Finish):
                fwd(dataclasses.replace(event, response=self._marked(event.response, asked)))
            else:
                self._begun = True
                fwd()

        with handler({emit: hear}):
            yield

    def _marked(self, reply: Response, answered: Alternative) -> Response:
        if not isinstance(reply, dict):  # it is no reply, as those who read it will say
            return reply
        if answered is not self._first:
            before = [{"model": one.name, "error": summary(error)} for one, error in self._failures]
            before += [{"model": one.name, "error": "it rests"} for one in self._resting if one in self._left]
            mark = {"model": answered.name, "instead_of": before}
            reply = {**reply, "provider_metadata": {**(reply.get("provider_metadata") or {}), "fallback": mark}}
        if not reply.get("model") and not answered.is_configured:
            reply = {**reply, "model": answered.name}
        return reply

    def _most_telling(self) -> Exception:
        errors = [error for _, error in self._failures]
        telling = next((one for one in errors if _can_be_helped(one)), errors[0])
        for asked, error in self._failures:
            note = f"`{asked.name}` was asked too: {summary(error)}"
            if error is not telling and note not in getattr(telling, "__notes__", ()):
                telling.add_note(note)
        return telling


def _resting(order: Sequence[Alternative]) -> list[Alternative]:
    """Those that are not to be asked now; none if there would be nobody left."""
    if all(one.rests is None for one in order):
        return []
    time = now()
    # From when on: a clock that was set back must not have it rest for longer than it should.
    resting = [one for one in order if one.rests is not None and one.rests[0] <= time < one.rests[1]]
    return resting if len(resting) < len(order) else []


def _can_be_helped(error: Exception) -> bool:
    """Whether something can be done about an error: wait, or shorten the prompt."""
    return isinstance(error, ContextLengthError) or bool(getattr(error, "retryable", False))
