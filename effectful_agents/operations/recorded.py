"""Reading what a journal has of a request to a model: the whole of it, its tokens, and where two differ.

A request holds the whole conversation so far. A journal writes of each only what is new: how far it agrees with an
earlier one, its *base*, and what comes then. `handlers.durability` writes it; whoever has a journal reads it with this.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any, Self

from effectful_agents.messages import Usage
from effectful_agents.operations.records import RunState

__all__ = ["NewInRequest", "difference", "reply_of", "request_of"]


@dataclasses.dataclass(frozen=True, slots=True)
class NewInRequest:
    """What of a request is written down: how it differs from its base.

    Attributes:
        base: The step whose request it goes on from; None for one that is written whole.
        keep: How many messages of the base it begins with.
        messages: The messages that come then.
        set: Whatever else it has, as far as that is not as in the base: the tools, the form of the answer, settings.
        unset: Names of what the base has and it has not.

    >>> NewInRequest.of({"messages": [{"role": "user", "content": "And then?"}], "base": "000001-model", "keep": 3})
    NewInRequest(base='000001-model', keep=3, messages=[{'role': 'user', 'content': 'And then?'}], set={}, unset=())
    """

    base: str | None
    keep: int
    messages: Sequence[Any]
    set: Mapping[str, Any]
    unset: Sequence[str]

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Self:
        """Read the body of the record of a request that was attempted."""
        keep, messages = body.get("keep", 0), body.get("messages", ())
        return cls(body.get("base"), keep, messages, body.get("set", {}), body.get("unset", ()))


def request_of(state: RunState, step_id: str) -> dict[str, Any]:
    """The whole request that was recorded for a step."""
    chain: list[NewInRequest] = []
    at: str | None = step_id
    while at is not None:
        record = state.attempted(at)
        if record is None:
            break
        chain.append(NewInRequest.of(record.body))
        at = chain[-1].base
    messages: list[Any] = []
    rest: dict[str, Any] = {}
    for new in reversed(chain):
        messages = [*messages[: new.keep], *new.messages]
        rest = {name: value for name, value in rest.items() if name not in new.unset}
        rest |= new.set
    return {"messages": messages, **rest}


def reply_of(body: Mapping[str, Any]) -> tuple[str, Usage]:
    """The name of the model that replied, and its tokens, of the record of a reply.

    The name is empty where the reply does not say it; a reply that is not there used nothing that is known.

    >>> reply_of({"response": {"model": "gpt-5-mini", "usage": {"prompt_tokens": 9}}})[1].input
    9
    """
    response = body.get("response")
    if not isinstance(response, Mapping):
        return "", Usage()
    model, told = str(response.get("model") or ""), response.get("usage")
    # Of ours, and not of a service which happens to have a name in common with it.
    if not isinstance(told, Mapping) or not {"input", "output"} <= told.keys():
        return model, Usage.from_wire(told)
    names = {field.name for field in dataclasses.fields(Usage)}
    return model, Usage(**{name: value for name, value in told.items() if name in names})


def difference(recorded: Any, present: Any, where: str = "") -> str:
    """Where two pieces of JSON first differ, in words; empty where they are equal."""
    if recorded == present and type(recorded) is type(present):
        return ""
    if isinstance(recorded, Mapping) and isinstance(present, Mapping):
        for name in [*recorded, *(name for name in present if name not in recorded)]:
            at = f"{where}.{name}" if where else str(name)
            if name not in present:
                return f"{at} was {_short(recorded[name])}, and is not there now"
            if name not in recorded:
                return f"{at} was not there, and is {_short(present[name])} now"
            if found := difference(recorded[name], present[name], at):
                return found
        return ""
    if isinstance(recorded, list) and isinstance(present, list):
        for place, (one, other) in enumerate(zip(recorded, present, strict=False)):
            if found := difference(one, other, f"{where}[{place}]"):
                return found
        if len(recorded) != len(present):
            more, which = (recorded, "was") if len(recorded) > len(present) else (present, "is now")
            return f"{where} {which} longer: {_short(more[min(len(recorded), len(present))])}"
        return ""
    if isinstance(recorded, str) and isinstance(present, str):
        begin = max(0, _common(recorded, present) - 20)
        lead = "…" if begin else ""
        return f"{where} was {_short(lead + recorded[begin:])}, and is {_short(lead + present[begin:])} now"
    return f"{where} was {_short(recorded)}, and is {_short(present)} now"


def _common(one: str, other: str) -> int:
    place = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        place += 1
    return place


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    text = text if len(text) <= 80 else text[:79] + "…"
    return repr(text) if isinstance(value, str) else text
