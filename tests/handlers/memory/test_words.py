"""The words of texts, and what two stores find by them."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effectful_agents.handlers.memory import InMemoryStore, SqliteMemoryStore
from effectful_agents.handlers.memory.words import query_words, scores, words_of
from effectful_agents.operations.memory import Memory
from tests.handlers.memory.remembering import ANN, BOB


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        (" \n!?", []),
        ("The snake_case of don't", ["the", "snake", "case", "of", "don", "t"]),
        ("Straße STRASSE", ["strasse", "strasse"]),
        ("Café CAFE\u0301 naïve", ["cafe", "cafe", "naive"]),
        ("ﬁne x² ½", ["fine", "x2", "1", "2"]),
        ("東京都 Tokyo", ["東京", "京都", "tokyo"]),
        ("木", ["木"]),
        ("iPhone15を買う", ["iphone15", "を買", "買う"]),
        ("Москва Ёлка", ["москва", "елка"]),
        ("a\x00b\ud800c", ["a", "b", "c"]),
    ],
)
def test_words(text: str, words: list[str]) -> None:
    assert words_of(text) == words


@given(st.text())
def test_words_are_what_the_index_takes_for_words(text: str) -> None:
    for word in words_of(text):
        assert word
        assert not any(
            one.isspace() or one in "\"'()*:^-+.,{}\0" or (one.isascii() and not one.isalnum()) for one in word
        )
        assert not any("\ud800" <= one <= "\udfff" for one in word)


@given(st.text())
def test_large_and_small_letters_are_alike(text: str) -> None:
    assert words_of(text.casefold()) == words_of(text)


def test_of_a_long_query_the_beginning_and_the_end_count() -> None:
    words = query_words(" ".join(f"w{number}" for number in [*range(1000), *range(1000)]))
    assert len(words) == len(set(words)) == 256
    assert (words[0], words[127], words[128], words[-1]) == ("w0", "w127", "w872", "w999")


def test_rare_words_tell_more_and_long_texts_less() -> None:
    texts = [["tea"], ["milk"], ["tea", *["x"] * 9], ["tea", "tea"]]
    tea, milk, long, twice = scores(["tea", "milk"], texts, count=10, average=3.0)
    assert milk > tea > long > 0
    assert twice > tea
    assert scores(["tea"], [], count=0, average=0.0) == []


WORDS = st.sampled_from(["tea", "milk", "Öl", "garden", "THE", "東京", "don't", "a_b", '"', "\ud800", "x" * 40])
TEXTS = st.lists(WORDS, min_size=1, max_size=8).map(" ".join)


@given(st.lists(st.tuples(TEXTS, st.integers(0, 3), st.booleans()), max_size=12), TEXTS, st.integers(0, 12))
@settings(max_examples=25)
def test_both_stores_find_the_same_in_the_same_order(
    written: list[tuple[str, int, bool]], query: str, limit: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        stores = InMemoryStore(), SqliteMemoryStore(Path(folder) / "memory.db")
        for store in stores:
            for place, (text, at, is_anns) in enumerate(written):
                scope = ANN if is_anns else BOB
                store.write(scope, [Memory(f"m{place}", text, scope, float(at), "fact" if at else "note")])
        one, other = ([list(store.search(ANN, query, limit, kind)) for kind in (None, "fact")] for store in stores)
        assert one == other
        stores[1].close()
