"""Prompts taken apart and counted, each as what it has more than an earlier one.

The messages of all prompts of a run stand in one tree: prompts that begin alike share the beginning. So each message
is counted once, and where two prompts differ is found by walking up from their ends.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from effectful_agents.handlers.observability.context_economy.headings import UNTITLED, sections_of
from effectful_agents.handlers.observability.context_economy.turns import Section, ToolEconomy
from effectful_agents.operations.counting import TokenCount, count_tokens

__all__ = ["CODE_TOOLS", "Counter", "Definition", "Prompt", "Said", "meeting"]

CODE_TOOLS = frozenset({"write_and_run_body", "exec_code"})
"""The tools that run code of the model."""

_OPENING = ("system", "developer")
_OF_TOOLS = ("tool", "function")


class Counter:
    """Counts what requests to a model consist of, piece by piece.

    Args:
        model: The model; None where it is not known.
    """

    _LEAD: Mapping[str, Any] = {"role": "system", "content": "."}

    def __init__(self, model: str | None) -> None:
        self._model = model
        self._of_lead: TokenCount | None = None

    def text(self, text: str) -> TokenCount:
        """The tokens of a text alone."""
        return count_tokens(text, self._model)

    def first(self, message: Mapping[str, Any]) -> TokenCount:
        """The tokens of a message with which a conversation begins, and of what stands around all conversations."""
        return count_tokens(cast(Any, [message]), self._model)

    def further(self, message: Mapping[str, Any]) -> TokenCount:
        """The tokens that a message adds to a conversation."""
        # Alone it would be counted with what some chats put before the first one, and after the last.
        if self._of_lead is None:
            self._of_lead = self.first(self._LEAD)
        both = count_tokens(cast(Any, [self._LEAD, message]), self._model)
        return TokenCount(max(0, both.tokens - self._of_lead.tokens), both.estimated)


class Said:
    """A message at its place in a prompt, after those before it.

    Attributes:
        before: The message before it; None for the beginning, where nothing has been said.
        place: Its place among the messages, from 1.
        message: The message.
        user: Tokens of what users have said so far.
        replies: Tokens of what models have said so far.
        results: Tokens of the results of each tool so far.
        system: The sections of system messages so far, each with its text and tokens.
        estimated: Whether a count so far is an estimate.
    """

    __slots__ = ("_asked", "_next", "before", "estimated", "message", "place", "replies", "results", "system", "user")

    def __init__(self) -> None:
        self.before: Said | None = None
        self.place = 0
        self.message: Mapping[str, Any] = {}
        self.user = self.replies = 0
        self.results: Mapping[str, int] = {}
        self.system: tuple[tuple[str, Any, int], ...] = ()
        self.estimated = False
        self._asked: Mapping[str, str] = {}
        self._next: dict[bytes, Said] = {}

    def then(self, message: Mapping[str, Any], count: Counter) -> Said:
        """The place of a message after this one."""
        text = json.dumps(message, sort_keys=True, separators=(",", ":"), default=str)
        key = hashlib.blake2b(text.encode(), digest_size=16).digest()
        found = self._next.get(key)
        if found is None:
            found = self._next[key] = self._counted(message, count)
        return found

    def at(self, place: int) -> Said:
        """The message at an earlier place."""
        here = self
        while here.place > max(0, place) and here.before is not None:
            here = here.before
        return here

    @property
    def role(self) -> str:
        """Who says it."""
        return self.message.get("role", "")

    @property
    def tool(self) -> str:
        """The tool whose result it is."""
        name = self._asked.get(self.message.get("tool_call_id", "")) or self.message.get("name")
        return str(name or "(unknown)")

    @property
    def tokens(self) -> int:
        """Tokens of all messages so far."""
        return self.user + self.replies + sum(self.results.values()) + sum(tokens for *_, tokens in self.system)

    def _counted(self, message: Mapping[str, Any], count: Counter) -> Said:
        new = Said()
        new.before, new.place, new.message = self, self.place + 1, message
        new.user, new.replies, new.results, new.system = self.user, self.replies, self.results, self.system
        new._asked = self._asked
        if new.role in _OPENING:
            new.system = (*self.system, *_sections(message, count))
            new.estimated = self.estimated or count.text("").estimated
            return new
        counted = count.further(message)
        new.estimated = self.estimated or counted.estimated
        if new.role in _OF_TOOLS:
            new.results = {**self.results, new.tool: self.results.get(new.tool, 0) + counted.tokens}
        elif new.role == "assistant":
            new.replies += counted.tokens
            # Results come right after the message that asks for them, and another one may use the same identifiers.
            new._asked = dict(called(message))
        else:
            new.user += counted.tokens
        return new


def called(message: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The tool calls of a message: the identifier of each, and the tool; of deferred tools the one that was meant."""
    for call in message.get("tool_calls") or ():
        function = call.get("function", {})
        name = function.get("name")
        if name == "use_tool":
            name = _meant(function.get("arguments")) or name
        yield str(call.get("id", "")), str(name or "(unknown)")


def _meant(arguments: Any) -> str | None:
    try:
        name = json.loads(arguments).get("name")
    except (TypeError, ValueError, AttributeError):  # a model may have written anything
        return None
    return name if isinstance(name, str) else None


def _sections(message: Mapping[str, Any], count: Counter) -> Iterator[tuple[str, Any, int]]:
    # What stands around the message goes to its first section, so that the sections add up.
    empty = {**message, "content": ""}
    around = count.first(empty).tokens
    for title, part in sections_of(message.get("content")):
        if isinstance(part, str):
            tokens = count.text(part).tokens
        else:
            tokens = max(0, count.first({**message, "content": [part]}).tokens - count.first(empty).tokens)
        yield title, part, tokens + around
        around = 0
    if around:
        yield UNTITLED, "", around


def meeting(one: Said, other: Said) -> tuple[Said, Said | None, Said | None]:
    """The last message up to which two prompts agree, and what comes next in each."""
    after_one = after_other = None
    while one is not other:
        if one.place >= other.place:
            after_one, one = one, _before(one)
        else:
            after_other, other = other, _before(other)
    return one, after_one, after_other


def _before(said: Said) -> Said:
    assert said.before is not None  # they are of one tree
    return said.before


@dataclasses.dataclass(frozen=True)
class Definition:
    """Something that a request has beside its messages: a tool, or the form of the answer."""

    name: str
    data: Any
    text: str
    counted: TokenCount

    @classmethod
    def of(cls, name: str, data: Any, count: Counter) -> Definition:
        """Take one, and count it as compact JSON."""
        text = json.dumps(data, ensure_ascii=False, default=str)
        return cls(name, data, text, count.text(text))

    @classmethod
    def of_tool(cls, tool: Mapping[str, Any], count: Counter) -> Definition:
        """The definition of a tool; some that a provider brings have no name but their type."""
        function = tool.get("function")
        name = function.get("name") if isinstance(function, Mapping) else tool.get("name") or tool.get("type")
        return cls.of(str(name), tool, count)


@dataclasses.dataclass(frozen=True)
class Prompt:
    """What a model is sent.

    Attributes:
        end: The last message, and with it those before.
        tools: The tools that are offered.
        form: The form of the answer.
        model: The model that is asked; empty where that is not known.
    """

    end: Said
    tools: Sequence[Definition] = ()
    form: Definition | None = None
    model: str = ""

    def sections(self, earlier: Said) -> dict[Section, int]:
        """Tokens by part.

        Args:
            earlier: The last message of earlier calls.
        """
        user, replies = earlier.user, earlier.replies
        counts = {
            Section.TOOLS: sum(tool.counted.tokens for tool in self.tools),
            Section.FORM: 0 if self.form is None else self.form.counted.tokens,
            Section.SYSTEM: sum(tokens for *_, tokens in self.end.system),
            Section.EARLIER: user + replies,
            Section.USER: self.end.user - user,
            Section.REPLIES: self.end.replies - replies,
            Section.RESULTS: sum(self.end.results.values()),
        }
        return {section: tokens for section, tokens in counts.items() if tokens}

    def system(self) -> dict[str, int]:
        """Tokens by section of the system message."""
        counts: dict[str, int] = {}
        for title, _, tokens in self.end.system:
            counts[title] = counts.get(title, 0) + tokens
        return counts

    def of_tools(self) -> dict[str, ToolEconomy]:
        """Tokens by tool."""
        counts = {name: ToolEconomy(results=tokens) for name, tokens in self.end.results.items()}
        for tool in self.tools:
            known = counts.get(tool.name, ToolEconomy())
            counts[tool.name] = known + ToolEconomy(definition=tool.counted.tokens)
        return counts

    @property
    def estimated(self) -> bool:
        """Whether a count is an estimate."""
        others = [*self.tools, *([self.form] if self.form is not None else [])]
        return self.end.estimated or any(other.counted.estimated for other in others)
