"""A catalogue of tools: searching it, and calling what was found."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import itertools
import json
import re
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, NamedTuple, cast

import pydantic
from pydantic_core import PydanticCustomError

from effectful_agents.encoding import tool_codec
from effectful_agents.encoding.functions import PROBLEM
from effectful_agents.errors import ToolCallDecodingError
from effectful_agents.handlers.legibility.output_cap import room_for_output
from effectful_agents.messages.text import safe_text
from effectful_agents.operations.loop import DecodedToolCall
from effectful_agents.types import Scope, Tool
from effectful_agents.types.walk import ToolSet, in_order

__all__ = ["Catalogue", "Names", "meant", "use_tool"]

_NAMES = 4000
"""Characters of names, where all of them are told."""


class Catalogue:
    """Tools that are found by searching, and the two that the model is offered in their place.

    Args:
        deferred: The tools that are searched.
        others: Those that are offered as they are.
        max_results: Tools that a search finds.
        names: The deferred ones by the names that they go by here; None: by their own, and of those with the same
            name all but one with a number.

    Attributes:
        offered: What a request offers.
    """

    def __init__(
        self,
        deferred: Iterable[Tool],
        others: Sequence[Tool] = (),
        max_results: int = 1,
        names: Mapping[str, Tool] | None = None,
    ) -> None:
        self.tools = in_order(deferred)
        self.others = others
        self.max_results = max_results
        self.names = Names().named(self.tools) if names is None else names
        self._callable = {**{tool.__name__: tool for tool in others}, **self.names}
        self.offered = ToolSet((self.search_tools, use_tool, *others))

    @Tool.define(idempotent=True, concurrent=True)
    def search_tools(self, query: str) -> str:
        """Find tools: most are in a catalogue, too many to show, and count as offered to you.

        Gives those that fit best, each with name, description and the schema of its parameters. Search before you
        conclude that there is no tool for something, and with other words if nothing fits; what you have found stays.

        Args:
            query: What has to be done, in a few words.
        """
        found, room = self._search(query), room_for_output()
        if not found:
            return f"Nothing fits these words. The tools are: {_listed(self.names, min(_NAMES, room or _NAMES))}."
        texts = [self._definition(name) for name in found]
        return _json(texts if room is None else _fitting(found, texts, room))

    def _definition(self, name: str) -> str:
        return _dumped(tool_codec(self.names[name]).definition(name)["function"])

    def decode(self, name: str, arguments: Any, env: Scope) -> _Call:
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
            return _Call(tool, tool_codec(tool).decode(arguments, context=env))
        except ValueError as error:
            raise PydanticCustomError(PROBLEM, "{problem}", {"problem": str(error)}) from error

    def _search(self, query: str) -> list[str]:
        return _best(query, {name: self._document(name) for name in self.names}, self.max_results)

    def _document(self, name: str) -> tuple[str, str, str]:
        function = tool_codec(self.names[name]).definition(name)["function"]
        return name, function["description"], " ".join(_said(function["parameters"]))


class _Call(NamedTuple):
    """What a call of `use_tool` calls."""

    tool: Tool
    bound_args: inspect.BoundArguments


def _decoded(arguments: Any, info: pydantic.ValidationInfo) -> Any:
    # The loop decodes the real call, as part of decoding that of `use_tool`: so what is wrong with it takes the same
    # way back to the model as what is wrong with any other, wherever the handlers stand that see to that.
    if "name" not in info.data:  # it is refused itself
        return arguments
    catalogue: Catalogue = cast(Scope, info.context).memo[Catalogue]
    return catalogue.decode(info.data["name"], arguments, cast(Scope, info.context))


@Tool.define(name="use_tool")
def use_tool(name: str, arguments: Annotated[dict[str, Any], pydantic.AfterValidator(_decoded)]) -> None:
    # Never carried out: see `meant`.
    """Call a tool that `search_tools` found.

    Args:
        name: Name of the tool.
        arguments: Its arguments, by the schema of its parameters.
    """


def meant(call: DecodedToolCall[Any] | ToolCallDecodingError) -> DecodedToolCall[Any] | ToolCallDecodingError:
    """The call that was meant, where one goes through `use_tool`."""
    if isinstance(call, ToolCallDecodingError) or call.tool != use_tool:
        return call
    name, meant = call.bound_args.arguments["name"], call.bound_args.arguments["arguments"]
    return dataclasses.replace(call, tool=meant.tool, bound_args=meant.bound_args, name=name)


class Names:
    """The names that tools of a conversation go by: one that was given stays with its tool, and is no other's later.

    It matters where several have the same. A name that was never shared goes to whatever has it now: it may be the same
    tool, defined again.
    """

    def __init__(self) -> None:
        self._holders: dict[str, int] = {}  # by the serial number of a tool, which keeps nothing alive
        self._shared: set[str] = set()
        self._seen: weakref.WeakKeyDictionary[Catalogue, Catalogue | None] = weakref.WeakKeyDictionary()

    def of(self, catalogue: Catalogue) -> Catalogue:
        """The catalogue under these names; the same object where they are those that it has."""
        if catalogue not in self._seen:
            names = self.named(catalogue.tools)
            same = list(names.items()) == list(catalogue.names.items())
            # None for itself: the value would keep its own key alive.
            self._seen[catalogue] = (
                None if same else Catalogue(catalogue.tools, catalogue.others, catalogue.max_results, names)
            )
        return self._seen[catalogue] or catalogue

    def named(self, tools: Iterable[Tool]) -> dict[str, Tool]:
        """Tools by name, sorted; of those with the same name all but one have a number."""
        by_name: dict[str, list[Tool]] = {}
        for tool in tools:
            by_name.setdefault(tool.__name__, []).append(tool)
        self._shared |= {name for name, alike in by_name.items() if len(alike) > 1}
        had: dict[int, list[str]] = {}
        for name, serial in self._holders.items():
            had.setdefault(serial, []).append(name)
        named: dict[str, Tool] = {}
        for base, alike in by_name.items():
            free = _numbered(base)
            # Those that have a name keep it.
            for tool in sorted(alike, key=lambda one: one.function.serial not in had):
                serial = tool.function.serial
                wanted = (one for one in had.get(serial, ()) if _is_numbered(one, base))
                candidates = itertools.chain(wanted, free)
                name = next(one for one in candidates if one not in named and self._may_have(serial, one))
                self._holders[name] = serial
                if name != base:
                    self._shared.add(name)
                named[name] = tool
        return dict(sorted(named.items()))

    def _may_have(self, serial: int, name: str) -> bool:
        return name not in self._shared or self._holders.get(name, serial) == serial


def _numbered(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name}_{number}" for number in itertools.count(2))


def _is_numbered(name: str, base: str) -> bool:
    number = name.removeprefix(f"{base}_")
    return name == base or (number != name and number.isdecimal())


def _fitting(names: Sequence[str], texts: Sequence[str], room: int) -> list[str]:
    """The texts that fit, the first ones, whole; then what there is besides, by name."""
    for count in range(len(texts), -1, -1):
        left = names[count:]
        fitting = list(texts[:count])
        if left:
            fitting.append(_dumped({"too_long_to_show": left, "note": _NOTE if count else _NOTE_OF_ONE}))
        if len(_json(fitting)) <= room or not count:
            return fitting
    raise AssertionError("not reached")


_NOTE = "These fit too. Search for one by its name to see it."
_NOTE_OF_ONE = (
    "The parameters are too long to show. Call it with `use_tool` and the arguments that you expect; you are told what "
    "does not fit."
)


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _json(texts: Iterable[str]) -> str:
    return f"[{','.join(texts)}]"


def _listed(names: Iterable[str], room: int | None = None) -> str:
    """Names, as many as there is room for, and how many more there are."""
    quoted = [f"`{name}`" for name in names]
    shown, length = 0, 0
    while shown < len(quoted) and (room is None or length + len(quoted[shown]) + _AROUND <= room):
        length += len(quoted[shown]) + len(", ")
        shown += 1
    more = f" and {len(quoted) - shown:,} more" if shown < len(quoted) else ""
    return ", ".join(quoted[:shown]) + more


_AROUND = 80
"""Characters of what stands around names."""


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
