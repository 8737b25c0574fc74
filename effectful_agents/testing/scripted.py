"""A model that answers with what was written down for it."""

from __future__ import annotations

import dataclasses
import enum
import json
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, cast

from effectful_agents.encoding import encode
from effectful_agents.errors import Denied, OptionError, StepDenied
from effectful_agents.handlers.provision.retries import retried
from effectful_agents.messages import Request, Response
from effectful_agents.messages.telling import told
from effectful_agents.operations.authority import ask_person
from effectful_agents.operations.loop import completion
from effectful_agents.operations.policy import (
    Decision,
    Disposition,
    EffectKind,
    ProposedEffect,
    Question,
    as_decision,
    callers,
    ending_calls,
    enforced,
)
from effectful_agents.operations.steps import emit
from effectful_agents.runtime import ObjectInterpretation, implements, interpretation
from effectful_agents.testing.replies import says
from effectful_agents.testing.rows import asked_once_more, noted

__all__ = ["ScriptedModel"]


class ScriptedModel(ObjectInterpretation[Any, Any]):
    """Answer each request of the model with the next reply of a script.

    Handles `completion` and forwards nothing, so it stands outermost, in the place of a provider: handlers inside it
    see requests and replies as with a real model. Where somebody listens to `emit`, each reply is told as a stream. It
    may be shared by threads and tasks; each request takes one reply.

    Args:
        *replies: What is answered, in this order:

            - a text is sent as it is, as with `says`;
            - a reply, made by `says`, `calls` or `batch` or by hand, is sent as it is;
            - an exception, or a class of exceptions, is raised;
            - a `Decision`, or a `Disposition`, is enforced as that of a policy about this request: the call ends with
              `Denied`, or a person is asked first; where the request may be made, the next reply is given;
            - any other callable is called with the request, and what it returns is treated as if it stood here;
            - any other value is sent as JSON, in the form that the request asks for.
        chunk_size: Characters in one piece of a stream; at least 1.
        num_retries: How often a request is made again whose reply is an error that may pass, as a handler of providers
            does it, with the same pauses (`operations.world.sleep`). Each attempt takes the next reply.

    Attributes:
        requests: The requests that came, in order; each keeps the messages that it had when it came.

    Raises:
        OptionError: `chunk_size` is less than 1, or `num_retries` less than 0.
        ConfigurationError: From `completion`, when all replies have been given.

    >>> from effectful_agents import handler
    >>> model = ScriptedModel("Paris", 42, lambda request: request["messages"][-1]["content"].upper())
    >>> with handler(model):
    ...     for _ in range(3):
    ...         completion(messages=[{"role": "user", "content": "hi"}])["choices"][0]["message"]["content"]
    'Paris'
    '42'
    'HI'
    >>> len(model.requests), model.remaining
    (3, 0)
    """

    requests: list[Request]

    def __init__(self, *replies: Any, chunk_size: int = 8, num_retries: int = 0) -> None:
        if chunk_size < 1:
            raise OptionError(f"`chunk_size` is {chunk_size}; a piece has at least one character")
        if num_retries < 0:
            raise OptionError(f"`num_retries` is {num_retries}; a request is made again 0 times or more")
        self.requests = []
        self._replies = deque(replies)
        self._scripted = len(replies)
        self._chunk_size = chunk_size
        self._num_retries = num_retries
        self._lock = threading.Lock()

    @property
    def remaining(self) -> int:
        """How many replies have not been given yet."""
        return len(self._replies)

    def add(self, *replies: Any) -> None:
        """Put replies at the end of the script."""
        with self._lock:
            self._replies.extend(replies)
            self._scripted += len(replies)

    def clear(self) -> None:
        """Forget the replies that have not been given."""
        with self._lock:
            self._scripted -= len(self._replies)
            self._replies.clear()

    @implements(completion)
    def completion(self, **request: Any) -> Response:
        seen = noted(request)
        with self._lock:
            self.requests.append(seen)
        response = retried(lambda: self._answer(seen), self._num_retries) if self._num_retries else self._answer(seen)
        if emit in interpretation():
            for event in told(response, self._chunk_size):
                emit(event)
        return response

    def _answer(self, request: Request) -> Response:
        while True:
            with self._lock:
                exhausted = not self._replies
                reply = None if exhausted else self._replies.popleft()
            if exhausted:
                had = "1 reply" if self._scripted == 1 else f"{self._scripted} replies"
                raise asked_once_more(self, had, request)
            response = _response(reply, request)
            if response is not None:
                return response


def _response(reply: Any, request: Request) -> Response | None:
    """What a reply of the script is; None where it only says that the request may be made."""
    if isinstance(reply, Decision | Disposition):
        return _enforce(as_decision(reply), request)
    if isinstance(reply, str) and not isinstance(reply, enum.Enum):
        return says(reply)
    if isinstance(reply, dict) and "choices" in reply:
        return cast(Response, reply)
    if isinstance(reply, type) and issubclass(reply, BaseException):
        raise reply
    if isinstance(reply, BaseException):
        # One script may be used many times: its errors are not to carry what each of these was in the middle of.
        reply.__context__ = None
        raise reply.with_traceback(None)
    if callable(reply):
        return _response(cast(Callable[[Request], Any], reply)(request), request)
    return says(_answer(reply, request))


def _enforce(decision: Decision, request: Request) -> None:
    effect = ProposedEffect(
        kind=EffectKind.MODEL_CALL, name=request.get("model") or "", request=request, callers=callers()
    )
    answer = None
    if decision.disposition is Disposition.REQUIRE_APPROVAL:
        text = decision.message or "May the model be asked?"
        answer = ask_person(Question(text=text, effect=effect, reason_code=decision.reason_code))
        kind = Disposition.ALLOW if answer.approved is True else Disposition.DENY_STEP
        decision = dataclasses.replace(decision, disposition=kind, message=answer.reason or decision.message)
    try:
        enforced(effect, decision, answer)
    except StepDenied as error:  # as where a policy says so: without a reply there is nothing to go on with
        raise ending_calls(Denied(error.decision)) from error


def _answer(value: Any, request: Request) -> str:
    encoded = encode(value)
    schema = request.get("response_format", {}).get("json_schema", {}).get("schema", {})
    # An answer that is no object is asked for as the only property of one. A class may look the same, with a single
    # field called `value`; its values are then written as that object already.
    wrapped = list(schema.get("properties", ())) == ["value"] and not (
        isinstance(encoded, dict) and list(encoded) == ["value"]
    )
    return json.dumps({"value": encoded} if wrapped else encoded, ensure_ascii=False)
