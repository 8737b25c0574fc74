"""Choosing tools by the words of a call."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from effectful_agents.errors import OptionError
from effectful_agents.handlers.routing.context import RoutingContext, check_known, names_of
from effectful_agents.types import Tool

__all__ = ["KeywordRouter", "keyword_router"]


class KeywordRouter:
    """What `keyword_router` makes: a function from what is known in a turn to the names of tools.

    Attributes:
        names: All names that it may give, in the order of its table.
        registered: The names that there are, if they were given.
    """

    names: tuple[str, ...]
    registered: tuple[str, ...] | None

    def __init__(
        self,
        table: Mapping[str, Iterable[str | Tool]],
        registered: Iterable[str | Tool] | None,
        default: Iterable[str | Tool],
    ) -> None:
        if not isinstance(table, Mapping):
            raise OptionError(f"`keyword_router` takes a dictionary from cues to names of tools, not {table!r}.")
        self._cues: list[tuple[tuple[str, ...], tuple[str, ...]]] = []
        self._table: dict[str, tuple[str, ...]] = {}
        for cue, given in table.items():
            words = tuple(_words(cue)) if isinstance(cue, str) else ()
            if not words:
                raise OptionError(f"{cue!r} is no cue for `keyword_router`: there is no word in it.")
            self._table[cue] = names_of(given, f"what `keyword_router` has for {cue!r}")
            self._cues.append((words, self._table[cue]))
        self._default = names_of(default, "`default` of `keyword_router`")
        self.names = tuple(dict.fromkeys((*(name for _, names in self._cues for name in names), *self._default)))
        self.registered = None if registered is None else names_of(registered, "`registered` of `keyword_router`")
        if self.registered is not None:
            mend = f"`registered` has {', '.join(map(repr, self.registered)) or 'none'}."
            check_known(self.names, self.registered, "`keyword_router`", mend)

    def __call__(self, context: RoutingContext) -> tuple[str, ...]:
        """The names for all cues in the text, or the default where there is none."""
        words = list(_words(context.text))
        found = [names for cue, names in self._cues if _holds(words, cue)]
        return tuple(dict.fromkeys(name for names in found for name in names)) if found else self._default

    def __repr__(self) -> str:
        return f"keyword_router({self._table!r})"

    @property
    def digest(self) -> str:
        """A digest of the table: another one for another table."""
        rows = [sorted((cue, sorted(names)) for cue, names in self._table.items()), sorted(self._default)]
        return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


def keyword_router(
    table: Mapping[str, Iterable[str | Tool]],
    *,
    registered: Iterable[str | Tool] | None = None,
    default: Iterable[str | Tool] = (),
) -> KeywordRouter:
    """Choose tools by the words that a call says.

    A cue is a word or several, and is found where the text has the same words one after the other: whole words, in any
    case, whatever stands between them that is no letter or digit. In scripts that put no space between words, such as
    Chinese or Thai, each character counts as a word. The tools of all cues that are found are offered.

    Args:
        table: Names of tools, or the tools, by cue.
        registered: The tools that there are, so that a misspelled name is told here; None for no such check.
        default: What is offered where no cue is found; nothing by default.

    Returns:
        A router for `ToolRouter`.

    Raises:
        OptionError: A cue has no word in it, or something else is no name of a tool.
        ConfigurationError: A name is not among the registered ones.

    >>> from effectful_agents import NotHandled, Skill
    >>> @Skill.define
    ... def ask(question: str) -> str:
    ...     '''{question}'''
    ...     raise NotHandled
    >>> router = keyword_router({"mail": ["read_mail"], "next week": ["calendar"]}, default=["search"])
    >>> for text in ("Any MAIL for next-week?", "Mailboxes?"):
    ...     router(RoutingContext(text, ask, (), 1, {}))
    ('read_mail', 'calendar')
    ('search',)
    """
    return KeywordRouter(table, registered, default)


_SPACELESS = (
    *((0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x3040, 0x30FF), (0x31F0, 0x31FF), (0x3400, 0x4DBF)),
    *((0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x323AF)),
)
"""Thai and Lao, Myanmar, Khmer, kana, and Han: written without spaces between words."""


def _words(text: str) -> Iterator[str]:
    """The words of a text, folded so that two spellings of the same are equal."""
    word: list[str] = []
    for character in _folded(text):
        alone = any(first <= ord(character) <= last for first, last in _SPACELESS)
        # A mark belongs to its letter; by itself it would end the word in the middle.
        if not alone and (character.isalnum() or character == "_" or unicodedata.category(character)[0] == "M"):
            word.append(character)
            continue
        if word:
            yield "".join(word)
            word = []
        if alone:
            yield character
    if word:
        yield "".join(word)


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def _holds(words: Sequence[str], cue: Sequence[Any]) -> bool:
    length = len(cue)
    return any(tuple(words[place : place + length]) == cue for place in range(len(words) - length + 1))
