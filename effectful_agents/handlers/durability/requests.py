"""Requests in a journal: only what is new in each.

A request holds the whole conversation so far, so written whole they would grow with the square of its length. What is
written is how far the request agrees with an earlier one of the same conversation, and what comes then;
`operations.recorded` reads it.
"""

from __future__ import annotations

import collections
import dataclasses
import hashlib
import json
import operator
from collections.abc import Callable, Mapping
from typing import Any

from effectful_agents.encoding import to_jsonable
from effectful_agents.handlers.durability.written import digest
from effectful_agents.messages import Message, Request

__all__ = ["RequestLog"]


_CONVERSATIONS = 256
"""Of so many it is known how far they have come; the next request of any other is written whole."""


@dataclasses.dataclass(frozen=True)
class _Noted:
    """A request that was written down. The objects are kept: they are compared by identity."""

    step_id: str
    messages: list[Message]
    digests: list[bytes]
    hashed: Any
    """What has taken the digests in, so that the next request only adds to it."""
    rest: Mapping[str, Any]
    digests_of_rest: Mapping[str, str]


class RequestLog:
    """Writes requests down, each as what is new in it. Several threads may use it."""

    def __init__(self) -> None:
        # By the identity of the first message, which a conversation keeps, and by its digest, for those that begin with
        # the same system message; the least used go first.
        self._latest: collections.OrderedDict[int | bytes, _Noted] = collections.OrderedDict()

    def note(self, step_id: str, request: Request) -> tuple[str, dict[str, Any]]:
        """The digest of a request, and what of it is new.

        Args:
            step_id: The step that it belongs to.
            request: The request; its messages are not to be changed from now on.
        """
        messages = list(request["messages"])
        before = self._latest.get(id(messages[0])) if messages else None
        same = 0 if before is None else _agreeing(messages, before.messages, operator.is_)
        digests = [*(before.digests[:same] if before is not None else ()), *map(_digest, messages[same:])]
        if before is None and (before := self._like(step_id, digests)) is not None:
            same = _agreeing(digests, before.digests, operator.eq)
        hashed = _hashed(digests, same, before)
        rest = {name: value for name, value in request.items() if name != "messages" and value is not None}
        digests_of_rest = {name: self._digest_of(name, value, before) for name, value in rest.items()}
        body: dict[str, Any] = {"messages": messages[same:]}
        if before is not None:
            body |= {"base": before.step_id, "keep": same}
        earlier = {} if before is None else before.digests_of_rest
        changed = {name: rest[name] for name, value in digests_of_rest.items() if earlier.get(name) != value}
        if changed:
            body["set"] = {name: to_jsonable(value) for name, value in sorted(changed.items())}
        if gone := sorted(earlier.keys() - digests_of_rest.keys()):
            body["unset"] = gone
        if messages:
            self._keep(_Noted(step_id, messages, digests, hashed, rest, digests_of_rest))
        whole = hashed.copy()
        whole.update(json.dumps(digests_of_rest, sort_keys=True).encode())
        return whole.hexdigest(), body

    def _like(self, step_id: str, digests: list[bytes]) -> _Noted | None:
        """The latest request of another conversation that begins in the same way.

        It is one of an earlier place in the run, which every fork that has this step has too.
        """
        noted = self._latest.get(digests[0]) if digests else None
        return noted if noted is not None and noted.step_id.split("/") < step_id.split("/") else None

    def _keep(self, noted: _Noted) -> None:
        for key in id(noted.messages[0]), noted.digests[0]:
            self._latest[key] = noted
            self._latest.move_to_end(key)
        while len(self._latest) > 2 * _CONVERSATIONS:
            self._latest.popitem(last=False)

    @staticmethod
    def _digest_of(name: str, value: Any, before: _Noted | None) -> str:
        # The definitions of tools are large, and the same objects from turn to turn.
        if before is not None and name in before.rest and _is_same(value, before.rest[name]):
            return before.digests_of_rest[name]
        return digest(to_jsonable(value))


def _is_same(one: Any, other: Any) -> bool:
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))
    return one is other


def _agreeing(ones: list[Any], others: list[Any], same: Callable[[Any, Any], bool]) -> int:
    """How many at the beginning are the same."""
    length = min(len(ones), len(others))
    # The usual case. Lists take elements that are identical for equal without a look at them, so this costs next to
    # nothing for a long conversation.
    if ones[:length] == others[:length]:
        return length
    return next((place for place in range(length) if not same(ones[place], others[place])), length)


def _hashed(digests: list[bytes], same: int, before: _Noted | None) -> Any:
    """What has taken all the digests in."""
    goes_on = before is not None and same == len(before.digests)
    hashed = before.hashed.copy() if goes_on else hashlib.blake2b(digest_size=16)
    hashed.update(b"".join(digests[same:] if goes_on else digests))
    return hashed


def _digest(message: Message) -> bytes:
    text = json.dumps(message, sort_keys=True, separators=(",", ":"), default=to_jsonable)
    return hashlib.blake2b(text.encode(), digest_size=16).digest()
