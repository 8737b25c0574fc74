"""Keeping many tools in a catalogue that the model searches, so that requests do not carry all of them."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import json
import re
import weakref
from collections.abc import Collection, Iterable, Iterator, Mapping, MutableMapping, Sequence, Set
from typing import Annotated, Any, NamedTuple, cast

import pydantic
from pydantic_core import PydanticCustomError

from effectful_agents.encoding import tool_codec
from effectful_agents.encoding.functions import PROBLEM
from effectful_agents.errors import OptionError, ToolCallDecodingError
from effectful_agents.messages import Message
from effectful_agents.messages.text import safe_text
from effectful_agents.operations.counting import estimate_tokens
from effectful_agents.operations.history import conversation
from effectful_agents.operations.loop import AssistantResult, DecodedToolCall, call_assistant
from effectful_agents.operations.templates import prompted_tools
from effectful_agents.runtime import ObjectInterpretation, fwd, implements
from effectful_agents.types import History, Scope, Tool
from effectful_agents.types.walk import ToolSet, in_order

__all__ = ["DeferredTools", "worth_deferring"]


class DeferredTools(ObjectInterpretation[Any, Any]):
    """Offer two tools, to search the others and to use one, where there are many.

    Intercepts `call_assistant`: forwards with two tools in the place of the catalogue, and puts in the place of each
    call of `use_tool` the call that was meant. So `call_tool` and whoever handles it see the real tool. Where few tools
    are offered it changes nothing. It adds no section to the system message: that is written before anybody knows the
    tools, and what the model has to know stands in the descriptions of the two.

    It is decided once in a conversation, at the first turn that has tools to defer, and holds for the later calls of
    the same agent, so that the beginning of its requests stays the same while tools come and go. The tools of a request
    stay the same from turn to turn, also when the catalogue changes.

    Outside of the extractor, and of other handlers that offer tools or have them called otherwise: it defers what comes
    from further inside, each tool in the form in which it is called. `harness(defer_tools=…)` puts it there.

    Args:
        max_results: Tools that a search finds, at least 1. With more, a model chooses worse.
        threshold: Tokens that the definitions of the tools have to exceed for them to be deferred, 0 for always; None
            leaves it to `worth_deferring`.
        always: Names of tools that are offered as they are. Those of other handlers that end a call or are needed in
            every one belong here.

    Raises:
        OptionError: An option has a value that it cannot have.

    >>> from effectful_agents import NotHandled, Skill, handler, harness
    >>> from effectful_agents.testing import ScriptedModel, calls
    >>> @Tool.define
    ... def weather(city: str) -> str:
    ...     '''The weather in a city.'''
    ...     return "sunny"
    >>> @Skill.define
    ... def ask(question: str) -> str:
    ...     '''{question}'''
    ...     raise NotHandled
    >>> model = ScriptedModel(calls("use_tool", name="weather", arguments={"city": "Oslo"}), "It is sunny.")
    >>> with handler(harness(defer_tools=0, eval_provider="none")), handler(model):
    ...     ask("How is Oslo?")
    'It is sunny.'
    >>> [tool["function"]["name"] for tool in model.requests[0]["tools"]]
    ['search_tools', 'use_tool']
    """

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
        catalogue = self._catalogue(tools, env)
        if catalogue is None:
            return fwd()
        env.memo[_Catalogue] = catalogue  # for the decoding of `use_tool`
        message, tool_calls, answer = fwd(messages, response_type, env, catalogue.offered)
        return message, [_meant(call) for call in tool_calls], answer

    def _catalogue(self, tools: Set[Tool], env: Scope) -> _Catalogue | None:
        """The catalogue of a turn, or None where nothing is deferred; the same for the same set of tools."""
        # By values and not by this handler, which the set, that of a module above all, may long outlive.
        key = DeferredTools, self.max_results, self.threshold, self.always
        decided = _kept_for_the_conversation(env)
        if decided.get(key) is False or not tools or _use_tool in tools:  # one further inside has done it
            return None
        tools = prompted_tools(tools)
        kept = tools.memo if isinstance(tools, ToolSet) else {}
        made: _Choice | None = kept.get((key, env.skill))
        if made is None:
            made = kept[key, env.skill] = self._choice(tools, env.skill)
        if made.catalogue is None:
            return None
        return made.catalogue if decided.setdefault(key, made.pays) else None

    def _choice(self, tools: Set[Tool], anchor: Tool) -> _Choice:
        # A skill is not offered to itself, unless it is recursive. The loop sees to that, but not to what is in here.
        usable = [tool for tool in tools if tool != anchor or getattr(tool, "recursive", False)]
        deferred = [tool for tool in usable if tool.__name__ not in self.always]
        if not deferred:
            return _Choice(None, pays=False)
        others = [tool for tool in usable if tool.__name__ in self.always]
        return _Choice(_Catalogue(deferred, others, self.max_results), self._pays(deferred))

    def _pays(self, deferred: Sequence[Tool]) -> bool:
        if self.threshold is None:
            return worth_deferring(deferred, max_results=self.max_results)
        return sum(map(_tokens_of, deferred)) > self.threshold


class _Choice(NamedTuple):
    """What could be done with a set of tools: its catalogue, if there is anything in it, and whether that pays."""

    catalogue: _Catalogue | None
    pays: bool


def _kept_for_the_conversation(env: Scope) -> dict[Any, Any]:
    """Where it is kept what holds for a whole conversation: that of the agent, or else the call is all of it."""
    history = conversation(env.skill) if env.skill.agent is not None else None
    return history.memo if isinstance(history, History) else env.memo


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
    sizes = _sizes.setdefault(tool.function, {})
    shown = tool.__name__, tool.description
    if shown not in sizes:
        sizes[shown] = estimate_tokens(json.dumps(tool_codec(tool).definition(), ensure_ascii=False))
    return sizes[shown]


# By what one tool is shown with: it is measured for each set that it is in, and sets are made anew.
_sizes: MutableMapping[Tool, dict[tuple[str, str], int]] = weakref.WeakKeyDictionary()


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
        """Find tools: most are in a catalogue, too many to show, and count as offered to you.

        Gives those that fit best, each with name, description and the schema of its parameters. Search before you
        conclude that there is no tool for something, and with other words if nothing fits; what you have found stays.

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
            PydanticCustomError: The arguments do not fit. It is told in full, as a diagnosis of code in them has to be.
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
            raise PydanticCustomError(PROBLEM, "{problem}", {"problem": str(error)}) from error

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
    for tool in in_order(tools):
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
