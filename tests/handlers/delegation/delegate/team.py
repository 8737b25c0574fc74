"""What tests of delegates share: models that answer by whose conversation they see."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from effectful_agents.operations.loop import completion
from effectful_agents.testing import says


class Playing:
    """A model that answers by who is asked: by a word in the first user message, and by the turn.

    Args:
        scripts: For each word the replies, one a turn. A function gets the request.

    Attributes:
        requests: All that it was asked, with the word.
    """

    def __init__(self, **scripts: list[Any]) -> None:
        self.requests: list[tuple[str, Any]] = []
        self._scripts = scripts

    @property
    def handlers(self) -> dict[Any, Callable[..., Any]]:
        return {completion: self._answer}

    def _answer(self, **request: Any) -> Any:
        messages = request["messages"]
        said = " ".join(str(message["content"]) for message in messages if message["role"] == "user")
        word = next(word for word in self._scripts if f"{word}:" in said)
        self.requests.append((word, request))
        turn = sum(message["role"] == "assistant" for message in messages)
        reply = self._scripts[word][turn]
        reply = reply(request) if callable(reply) else reply
        return says(reply) if isinstance(reply, str) else reply

    def of(self, word: str) -> list[Any]:
        """The requests of one of them."""
        return [request for asked, request in self.requests if asked == word]


def tools_of(request: Any) -> list[str]:
    return [tool["function"]["name"] for tool in request.get("tools", ())]


def results_in(request: Any) -> list[str]:
    return [message["content"] for message in request["messages"] if message["role"] == "tool"]
