"""The words of a text, and how well a text fits some words."""

from __future__ import annotations

import collections
import itertools
import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

__all__ = ["query_words", "scores", "words_of"]

_PLAIN = re.compile(r"[a-z0-9]+")
# Scripts that put no spaces between words: of these each two neighbours are a word.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+"
)
_MOST = 256
"""Words of a query that count: the first and the last, where there are more."""


def words_of(text: str) -> list[str]:
    """The words of a text as they are compared: in small letters, and without accents.

    >>> words_of("The Café's menu: 2 crêpes")
    ['the', 'cafe', 's', 'menu', '2', 'crepes']
    >>> words_of("お茶が好き")
    ['お茶', '茶か', 'か好', '好き']
    """
    if text.isascii():
        return _PLAIN.findall(text.lower())
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold())
    return list(itertools.chain.from_iterable(map(_parts, _runs(folded))))


def _runs(text: str) -> Iterator[str]:
    """What stands between characters that belong to no word."""
    run: list[str] = []
    for character in text:
        if unicodedata.combining(character):
            continue  # an accent
        if character.isalnum() or unicodedata.category(character)[0] == "M":
            run.append(character)
        elif run:
            yield "".join(run)
            run = []
    if run:
        yield "".join(run)


def _parts(run: str) -> Iterator[str]:
    place = 0
    for found in _UNSPACED.finditer(run):
        if found.start() > place:
            yield run[place : found.start()]
        characters = found[0]
        yield from (one + other for one, other in itertools.pairwise(characters))
        if len(characters) == 1:
            yield characters
        place = found.end()
    if place < len(run):
        yield run[place:]


def query_words(query: str) -> list[str]:
    """The words of a query, each once."""
    words = list(dict.fromkeys(words_of(query)))
    return words if len(words) <= _MOST else [*words[: _MOST // 2], *words[-_MOST // 2 :]]


def scores(query: Sequence[str], texts: Sequence[Iterable[str]], *, count: int, average: float) -> list[float]:
    """How well texts fit the words of a query, by the formula that is known as BM25; 0 where they share none.

    Args:
        query: The words, each once.
        texts: The words of each text that has one of them; of no other text, or the rare words would not be known.
        count: How many texts there are in all.
        average: How many words each has on average.
    """
    wanted = frozenset(query)
    counted = []
    having: collections.Counter[str] = collections.Counter()
    for text in texts:
        length, found = 0, collections.Counter[str]()
        for word in text:
            length += 1
            if word in wanted:
                found[word] += 1
        having.update(found.keys())
        counted.append((length, found))
    rarity = {word: math.log(1 + (count - number + 0.5) / (number + 0.5)) for word, number in having.items()}
    # The words in the order of the query: sums of floats depend on it.
    order = [word for word in query if word in rarity]
    result = []
    for length, found in counted:
        long = 1.2 * (0.25 + 0.75 * length / average) if average else 1.2
        result.append(sum(rarity[word] * 2.2 * found[word] / (found[word] + long) for word in order if word in found))
    return result
