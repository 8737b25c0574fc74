"""Keeping many tools in a catalogue that the model searches, so that requests do not carry all of them."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from typing import Annotated, Any, NamedTuple, cast

import pydantic

from effectful_agents.encoding import tool_codec
from effectful_agents.errors import OptionError, ToolCallDecodingError
from effectful_agents.messages import Message
from effectful_agents.messages.text import safe_text
from effectful_agents.operations.counting import estimate_tokens
from effectful_agents.operations.legibility import PromptInjectingInterpretation
from effectful_agents.operations.loop import AssistantResult, DecodedToolCall, call_assistant
from effectful_agents.operations.templates import prompted_tools
from effectful_agents.runtime import fwd, implements
from effectful_agents.types import Scope, Tool
from effectful_agents.types.walk import ToolSet

__all__ = ["DeferredTools", "worth_deferring"]


class DeferredTools(PromptInjectingInterpretation):
    """Where you are offered `search_tools` and `use_tool`, most of the tools are in a catalogue, too many to show.

    What is in the catalogue counts as offered. Say to `search_tools` in a few words what has to be done, and call what
    it finds with `use_tool`. Search before you conclude that there is no tool for something, and with other words if
    nothing fits. What you have found stays: do not search for it again.
    """

    # Intercepts `call_assistant`: forwards with two tools in the place of the catalogue, and puts in the place of each
    # call of `use_tool` the call that was meant. So `call_tool` and whoever handles it see the real tool.
    #
    # Outside of the extractor, and of other handlers that offer tools: it defers what comes from further inside.
    #
    #     with handler(harness(model=…, tool_collection="none")):
    #         with handler(DeferredTools()), handler(LexicalToolExtractor()): ...
    #
    # The tools of a request stay the same from turn to turn, also when the catalogue changes.
    #
    # Args:
    #     max_results: Tools that a search finds, at least 1. With more, a model chooses worse.
    #     threshold: Tokens that the definitions of the tools have to exceed for them to be deferred, 0 for always; None
    #         leaves it to `worth_deferring`.
    #     always: Names of tools that are offered as they are. Those of other handlers that end a call or are needed in
    #         every one belong here.
    #
    # Raises:
    #     OptionError: An option has a value that it cannot have.

    def __init__(self, max_results: int = 5, *, threshold: int | None = None, always: Collection[str] = ()) -> None:
        _check_number("max_results", max_results, 1)
        if threshold is not None:
            _check_number("threshold", threshold, 0)
        if isinstance(always, str) or not all(isinstance(name, str) for name in always):
            raise OptionError(f"`always` is {always!r}; it is a collection of names of tools.")
        self.max_results = max_results
        self.threshold = threshold
        self.always = frozenset(always)

    @implements(call_assistant)
    def call_assistant(
        self,
        messages: Sequence[Message],
        response_type: Any,
        env: Mapping[str, Any],
        tools: Set[Tool] = frozenset(),
    ) -> AssistantResult[Any]:
        if not isinstance(env, Scope):  # no call of a skill
            return fwd()
        catalogue = self._catalogue(prompted_tools(tools), env.skill)
        if catalogue is None:
            return fwd()
        env.memo[_Catalogue] = catalogue  # for the decoding of `use_tool`
        message, tool_calls, answer = fwd(messages, response_type, env, catalogue.offered)
        return message, [_meant(call) for call in tool_calls], answer

    def _catalogue(self, tools: Set[Tool], anchor: Tool) -> _Catalogue | None:
        """The catalogue of a turn, or None where there is nothing to defer; the same for the same set of tools."""
        if not isinstance(tools, ToolSet):
            return self._make(tools, anchor)
        # By values and not by this handler, which the set, that of a module above all, may long outlive.
        key = DeferredTools, anchor, self.max_results, self.threshold, self.always
        if key not in tools.memo:
            tools.memo[key] = self._make(tools, anchor)
        return tools.memo[key]

    def _make(self, tools: Set[Tool], anchor: Tool) -> _Catalogue | None:
        if _use_tool in tools:  # one further inside has done it
            return None
        # A skill is not offered to itself, unless it is recursive. The loop sees to that, but not to what is in here.
        usable = [tool for tool in tools if tool != anchor or getattr(tool, "recursive", False)]
        deferred = [tool for tool in usable if tool.__name__ not in self.always]
        if not self._pays(deferred):
            return None
        return _Catalogue(deferred, [tool for tool in usable if tool.__name__ in self.always], self.max_results)

    def _pays(self, deferred: Sequence[Tool]) -> bool:
        if self.threshold is None:
            return worth_deferring(deferred, max_results=self.max_results)
        return bool(deferred) and sum(map(_tokens_of, deferred)) > self.threshold


def _check_number(name: str, value: Any, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise OptionError(f"`{name}` is {value!r}; it is a number, at least {least}.")


_FURTHER_REQUEST = 2500
"""Tokens that the request for a search carries besides: those of a full system prompt."""


def worth_deferring(tools: Iterable[Tool], *, max_results: int = 5) -> bool:
    """Whether a catalogue of tools costs more in the requests of a call than searching it would.

    It is measured on the call for which deferral does least: one that uses a tool and answers. It takes two requests
    with the whole catalogue, or three with the two tools of `DeferredTools`, two of which carry what was found. For the
    third request 2,500 tokens more are reckoned.

    The tokens are those of `estimate_tokens`, the same in any process: what a request offers must not depend on which
    tokenizers happen to be loaded.

    Args:
        tools: The tools.
        max_results: Tools that a search finds.

    >>> @Tool.define
    ... def weather(city: str) -> str:
    ...     '''The weather in a city.'''
    ...     return "sunny"
    >>> worth_deferring([weather])
    False
    >>> worth_deferring(weather.named(f"weather_in_country_{number}") for number in range(100))
    True
    """
    costs = [_tokens_of(tool) for tool in tools]
    if not costs:
        return False
    found = sum(costs) / len(costs) * min(max_results, len(costs))
    return 2 * sum(costs) > 3 * _tokens_of_the_two() + 2 * found + _FURTHER_REQUEST


def _tokens_of(tool: Tool) -> int:
    return estimate_tokens(json.dumps(tool_codec(tool).definition(), ensure_ascii=False))


@functools.cache
def _tokens_of_the_two() -> int:
    return sum(map(_tokens_of, _Catalogue([], [], 1).offered))


class _Catalogue:
    """Tools that are found by searching, and the two that the model is offered in their place.

    Args:
        deferred: The tools that are searched.
        others: Those that are offered as they are.
        max_results: Tools that a search finds.

    Attributes:
        offered: What a request offers.
    """

    def __init__(self, deferred: Iterable[Tool], others: Sequence[Tool], max_results: int) -> None:
        self._deferred = _named(deferred)
        self._callable = {**{tool.__name__: tool for tool in others}, **self._deferred}
        self._max_results = max_results
        self.offered = ToolSet((self.search_tools, _use_tool, *others))

    @Tool.define(idempotent=True, concurrent=True)
    def search_tools(self, query: str) -> str:
        """Find tools: those that fit best, each with name, description and the schema of its parameters.

        Args:
            query: What has to be done, in a few words.
        """
        found = self._search(query)
        if not found:
            return f"Nothing fits these words. The tools are: {_listed(self._deferred)}."
        definitions = [tool_codec(self._deferred[name]).definition(name)["function"] for name in found]
        return json.dumps(definitions, ensure_ascii=False, separators=(",", ":"))

    def decode(self, name: str, arguments: Any, env: Scope) -> _Meant:
        """The call of a tool by its name.

        Raises:
            LookupError: There is no such tool.
            TypeError: The arguments do not fit. (What a ValueError says, pydantic would cut to the length of a line.)
        """
        tool = self._callable.get(name)
        if tool is None:
            alike = _listed(self._search(name))
            raise LookupError(
                f"there is no tool {name!r}. {f'Alike are: {alike}.' if alike else 'Find one with `search_tools`.'}"
            )
        try:
            return _Meant(tool, tool_codec(tool).decode(arguments, context=env))
        except ValueError as error:
            raise TypeError(str(error)) from error

    def _search(self, query: str) -> list[str]:
        return _best(query, {name: self._document(name) for name in self._deferred}, self._max_results)

    def _document(self, name: str) -> tuple[str, str, str]:
        function = tool_codec(self._deferred[name]).definition(name)["function"]
        return name, function["description"], " ".join(_said(function["parameters"]))


class _Meant(NamedTuple):
    """What a call of `use_tool` calls."""

    tool: Tool
    bound_args: inspect.BoundArguments


def _decoded(arguments: Any, info: pydantic.ValidationInfo) -> Any:
    # The loop decodes the real call, as part of decoding that of `use_tool`: so what is wrong with it takes the same
    # way back to the model as what is wrong with any other, wherever the handlers stand that see to that.
    if "name" not in info.data:  # it is refused itself
        return arguments
    catalogue: _Catalogue = cast(Scope, info.context).memo[_Catalogue]
    return catalogue.decode(info.data["name"], arguments, cast(Scope, info.context))


@Tool.define(name="use_tool")
def _use_tool(name: str, arguments: Annotated[dict[str, Any], pydantic.AfterValidator(_decoded)]) -> None:
    # Never carried out: see `_meant`.
    """Call a tool that `search_tools` found.

    Args:
        name: Name of the tool.
        arguments: Its arguments, by the schema of its parameters.
    """


def _meant(call: DecodedToolCall[Any] | ToolCallDecodingError) -> DecodedToolCall[Any] | ToolCallDecodingError:
    """The call that was meant, where one goes through `use_tool`."""
    if isinstance(call, ToolCallDecodingError) or call.tool != _use_tool:
        return call
    name, meant = call.bound_args.arguments["name"], call.bound_args.arguments["arguments"]
    return dataclasses.replace(call, tool=meant.tool, bound_args=meant.bound_args, name=name)


def _named(tools: Iterable[Tool]) -> dict[str, Tool]:
    """The tools by name, in an order that does not depend on theirs; of those with the same name all but one number."""
    named: dict[str, Tool] = {}
    for tool in sorted(tools, key=lambda one: (one.__name__, one.__module__ or "", one.__qualname__, one.description)):
        name, number = tool.__name__, 2
        while name in named:
            name, number = f"{tool.__name__}_{number}", number + 1
        named[name] = tool
    return named


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _said(schema: Any) -> Iterator[str]:
    """What a JSON schema says in words: the names of properties, and descriptions."""
    if isinstance(schema, list):
        for one in schema:
            yield from _said(one)
    elif isinstance(schema, dict):
        for key, value in schema.items():
            if key == "properties" and isinstance(value, dict):
                yield from value
            if key == "description" and isinstance(value, str):
                yield value
            else:
                yield from _said(value)


_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD = re.compile(r"[^\W_]+")
_WORDS_OF_A_QUERY = 50


def _words(text: str) -> Iterator[str]:
    """The words of a text, split at `_` and in camelCase; what is written in camelCase as one word, too."""
    for word in _WORD.findall(safe_text(text)):
        yield word
        parts = _HUMP.split(word)
        if len(parts) > 1:
            yield from parts


def _best(query: str, documents: Mapping[str, tuple[str, str, str]], count: int) -> list[str]:
    """The documents with words of a query in them, ranked by BM25; of equal ones the first by name comes first.

    Args:
        query: Words.
        documents: By name, texts of which the first says most and the last least.
        count: How many.
    """
    # SQLite's full-text index: it comes with Python, and has Porter's stemmer, so that `hotels` finds `hotel`. Each
    # search makes it anew, in 3 ms for a hundred tools: one that is kept is bound to a thread, and has to be closed.
    import sqlite3  # noqa: PLC0415 - few programs search

    words = list(dict.fromkeys(_words(query)))[:_WORDS_OF_A_QUERY]
    names = sorted(documents)
    with contextlib.closing(sqlite3.connect(":memory:")) as base:
        base.execute(
            "CREATE VIRTUAL TABLE tools USING fts5(name, description, parameters, tokenize='porter unicode61')"
        )
        base.executemany(
            "INSERT INTO tools VALUES (?, ?, ?)", ([" ".join(_words(one)) for one in documents[name]] for name in names)
        )
        rows = base.execute(
            "SELECT rowid FROM tools WHERE tools MATCH ? ORDER BY bm25(tools, 4, 2, 1), rowid LIMIT ?",
            (" OR ".join(f'"{word}"' for word in words) or '""', count),
        )
        return [names[row - 1] for (row,) in rows]
