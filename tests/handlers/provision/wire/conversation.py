"""A long conversation with one agent, in which everything happens that a history has to survive."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from effectful_agents import Agent, NotHandled, Skill, Tool
from effectful_agents.errors import ResultDecodingError
from effectful_agents.testing import batch, calls, says
from tests.handlers.provision.http.server import DONE, Server, stream, whole

ATTEMPTS = 2
# Put together here, since the source of this module is part of the full system message.
WRONG = "-".join(("this", "does", "not", "fit"))


class Guide(Agent):
    """Somebody who knows the country."""

    @Tool.define
    def weather(self, city: str, days: int = 3) -> str:
        """The weather in a city.

        Args:
            city: Its name.
            days: How far to look ahead.
        """
        return f"sunny for {days} days"

    @Tool.define
    def book(self, city: str) -> str:
        """Book a room in a city."""
        raise LookupError(f"there is no room in {city}")

    @Skill.define
    def ask[T](self, question: str, like: T) -> T:
        """{question}"""
        raise NotHandled


class Exchange(NamedTuple):
    """A question, a value like the answer, and the replies that it takes; those that are asked again hold `WRONG`."""

    like: Any
    replies: list[Any]
    fails: bool = False


def _cut(text: str) -> Any:
    reply: Any = says(text)
    reply["choices"][0]["finish_reason"] = "length"
    return reply


def exchanges(number: int) -> list[Exchange]:
    """Questions of all kinds; the number keeps identifiers apart."""
    room, sun, rain, late = (f"{name}{number}" for name in ("room", "sun", "rain", "late"))
    return [
        Exchange("", [says(f"Hello {number} ☺")]),
        Exchange(0, [says('{"value": 3}')]),
        Exchange(0, [says(WRONG), says('{"value": 4}')]),
        Exchange("", [calls("weather", id=sun, city="Oslo"), says("Sunny.")]),
        Exchange("", [calls("book", id=room, city="Köln"), says("No room.")]),
        Exchange(
            "",
            [
                batch(
                    says("Let me see."),
                    calls("weather", id=rain, city="Rome"),
                    calls("book", id=f"{rain}b", city="Rome"),
                ),
                says("Sun and no room."),
            ],
        ),
        Exchange(
            0.5,
            [
                calls("weather", id=late, town=WRONG),
                calls("weather", id=f"{late}a", city="Bonn"),
                says('{"value": 1.5}'),
            ],
        ),
        Exchange("", [calls("hotels", id=f"{late}h", city=WRONG), says("There are none.")]),
        Exchange(0, [_cut(f'{{"value": "{WRONG}'), says('{"value": 5}')]),
        Exchange(0, [says(WRONG), says(WRONG)], fails=True),
        Exchange(False, [says('{"value": true}')]),
    ]


class Reply(NamedTuple):
    """A reply, and whether the request that it answers is one that those after it begin with.

    The others show a reply that did not fit, or belong to a call that failed.
    """

    body: Any
    kept: bool


def script() -> list[Reply]:
    """All replies: to the questions that are asked plainly, and to those that are streamed."""
    return [
        Reply(reply, kept=not exchange.fails and not (place and WRONG in json.dumps(exchange.replies[place - 1])))
        for number in (1, 2)
        for exchange in exchanges(number)
        for place, reply in enumerate(exchange.replies)
    ]


def converse(listening: Callable[[], contextlib.AbstractContextManager[Any]]) -> Guide:
    """Ask all questions twice, the second time while somebody listens to the pieces of the replies."""
    guide = Guide()
    for number, watched in enumerate((contextlib.nullcontext, listening), 1):
        with watched():
            for place, exchange in enumerate(exchanges(number)):
                if exchange.fails:
                    with contextlib.suppress(ResultDecodingError):
                        guide.ask(f"Question {place}?", exchange.like)
                else:
                    guide.ask(f"Question {place}?", exchange.like)
    return guide


def will_answer(server: Server, replies: Iterable[Any]) -> None:
    """Have the server give these replies, each whole or in pieces as it is asked."""

    def answer(reply: Any) -> Callable[..., None]:
        # The request came in before its answer is looked for.
        return lambda request: (stream(*_pieces(reply)) if server.bodies[-1].get("stream") else whole(reply))(request)

    server.will(*map(answer, replies))


def _pieces(reply: Any) -> Iterator[bytes]:
    choice = reply["choices"][0]
    message = choice["message"]
    content = message["content"] or ""
    for start in range(0, len(content), 4):
        yield _piece({"content": content[start : start + 4]})
    for index, call in enumerate(message.get("tool_calls", ())):
        function = call["function"]
        yield _piece({"tool_calls": [{**call, "index": index, "function": {**function, "arguments": ""}}]})
        for start in range(0, len(function["arguments"]), 4):
            part = {"arguments": function["arguments"][start : start + 4]}
            yield _piece({"tool_calls": [{"index": index, "function": part}]})
    yield _piece({}, choice["finish_reason"])
    yield DONE


def _piece(delta: Any, finish: str | None = None) -> bytes:
    piece = {"id": "r1", "model": "test", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
    return f"data: {json.dumps(piece)}\n\n".encode()
