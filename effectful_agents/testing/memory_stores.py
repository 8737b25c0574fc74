"""What every store of memories promises, as tests that run on any of them.

The class is for pytest, which this module needs, as `effectful_agents.testing` does not. A class derived from it says
how a store is opened, and has all its tests:

    from effectful_agents.testing.memory_stores import MemoryStoreContract

    class TestMyStore(MemoryStoreContract):
        def open_store(self, folder):
            return MyStore(folder / "memories")
"""

from __future__ import annotations

import datetime
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from effectful_agents.errors import AgentsError, OptionError
from effectful_agents.operations.memory import Memory, MemoryScope, MemoryStore

__all__ = ["MemoryStoreContract", "a_memory", "texts_of"]

ANN = MemoryScope("acme", user="ann")
SCOPES = (
    ANN,
    MemoryScope("acme", user="bob"),
    MemoryScope("acme"),
    MemoryScope("acme", agent="ann"),
    MemoryScope("acme", user="ann", session="1"),
    MemoryScope('acme", "ann'),
    MemoryScope("\U0001f600"),
)
"""Scopes that a store may take for each other."""

HARD_TEXTS = (
    " ",
    "'",
    '"',
    '"tea',
    "tea*",
    "-tea",
    "^tea",
    "(tea",
    "tea)",
    "words : tea",
    "{scope words} : tea",
    "tea AND",
    "NOT tea",
    "OR",
    "NEAR(tea, 2)",
    'it\'s "tea"; DROP TABLE memories; --',
    "tea \x00 tea",
    "\ud83d alone",
    "日本語のお茶",
    "\U0001f600",
    "%s ? :x ?1 _%",
    "a" * 10_000,
    " ".join(f"w{number}" for number in range(5_000)),
)
"""Texts that are no query in some language, or that a store may stumble over."""


def a_memory(id: str, text: str = "Tea.", scope: MemoryScope = ANN, **fields: Any) -> Memory:
    """A memory, by default one of Ann's.

    >>> a_memory("1").scope.user
    'ann'
    """
    return Memory(id, text, scope, **fields)


def texts_of(memories: Iterable[Memory]) -> list[str]:
    """The texts of memories, in their order."""
    return [memory.text for memory in memories]


class MemoryStoreContract:
    """What every `MemoryStore` promises. Derive a class whose name begins with `Test`, and write `open_store`."""

    keeps = True
    """Whether what a store has written is there when the same folder is opened again."""
    examples = 25
    """How many random courses of events are tried, where hypothesis is installed."""

    def open_store(self, folder: Path) -> MemoryStore:
        """Open the store that is kept in a folder; in an empty one, a new store."""
        raise NotImplementedError(f"{type(self).__name__} says how a store is opened: write `open_store`")

    def close_store(self, store: Any) -> None:
        """Close a store that `open_store` gave; by default its own `close`, if it has one."""
        getattr(store, "close", lambda: None)()

    def test_it_is_a_memory_store(self, tmp_path: Path) -> None:
        assert isinstance(self.open_store(tmp_path), MemoryStore)

    def test_an_empty_store_has_nothing(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        assert list(store.search(ANN, "tea", 5)) == list(store.recent(ANN, 5)) == list(store.memories(ANN)) == []
        assert (store.flush(ANN, "b"), store.forget(ANN, everything=True)) == (0, 0)

    # --- writing ------------------------------------------------------------------------------------------------------

    def test_memories_come_back_as_they_were(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        written = [
            a_memory("1", "Tea.", at=2.5, kind="fact", tags=("drink", ""), metadata={"source": {"page": [1, None]}}),
            a_memory("", "A text.\nWith lines.", at=2.5),
            a_memory("3", "Coffee.", at=1_700_000_000.123456),
        ]
        store.write(ANN, written[:1])
        store.write(ANN, [])
        store.write(ANN, written[1:])
        assert list(store.memories(ANN)) == written
        assert list(store.recent(ANN, 2)) == [written[2], written[1]]
        assert list(store.search(ANN, "tea", 5)) == [written[0]]

    @pytest.mark.parametrize("text", HARD_TEXTS, ids=lambda text: ascii(text)[:20])
    def test_any_text_is_kept_and_may_be_searched_for(self, tmp_path: Path, text: str) -> None:
        store = self.open_store(tmp_path)
        memory = a_memory(text[:100], text, kind=text[:20], tags=(text[:20],), metadata={text[:20]: text[:20]})
        store.write(ANN, [memory, a_memory("other", "Something else altogether.")])
        assert next(iter(store.memories(ANN))) == memory
        found = list(store.search(ANN, text, 5))
        assert all(one == memory for one in found)
        assert list(store.search(ANN, text, 5, text[:20])) == found
        assert list(store.recent(ANN, 5, text[:20])) == [memory]
        store.forget(ANN, [text[:100]])
        assert texts_of(store.memories(ANN)) == ["Something else altogether."]

    def test_what_was_written_is_not_written_again(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        first = a_memory("1", "Tea.")
        store.write(ANN, [first, a_memory("1", "Coffee.")])
        store.write(ANN, [a_memory("1", "Milk."), a_memory("2", "Water.", at=1.0)])
        store.write(ANN, [a_memory("1", "Wine.")], batch="b")
        assert store.flush(ANN, "b") == 0
        assert texts_of(store.memories(ANN)) == ["Tea.", "Water."]
        assert list(store.search(ANN, "coffee milk wine", 5)) == []

    def test_of_memories_that_cannot_all_be_kept_none_is(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        wrong = [
            a_memory("2", scope=MemoryScope("acme")),
            a_memory("2", metadata={"x": {1}}),
            a_memory("2", metadata={"x": float("nan")}),
            a_memory("2", at=float("inf")),
            a_memory("2", metadata={1: "a key that is no text"}),
        ]
        for memory in wrong:
            with pytest.raises(AgentsError):
                store.write(ANN, [a_memory("1"), memory, a_memory("3")])
        assert list(store.memories(ANN)) == []

    def test_what_the_caller_changes_afterwards_is_not_kept(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        metadata = {"pages": [1]}
        store.write(ANN, [a_memory("1", metadata=metadata)])
        metadata["pages"].append(2)
        (found,) = store.search(ANN, "tea", 5)
        assert found.metadata == {"pages": [1]}
        found.metadata["pages"].append(3)
        for again in (store.memories(ANN), store.recent(ANN, 1), store.search(ANN, "tea", 1)):
            assert again[0].metadata == {"pages": [1]}

    # --- scopes -------------------------------------------------------------------------------------------------------

    def test_another_scope_never_sees_it(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        for place, scope in enumerate(SCOPES):
            store.write(scope, [a_memory("same id", f"Tea number {place}.", scope)])
        for place, scope in enumerate(SCOPES):
            expected = [f"Tea number {place}."]
            assert texts_of(store.memories(scope)) == texts_of(store.recent(scope, 99)) == expected
            assert texts_of(store.search(scope, "tea number 0 1 2 3 4 5 6", 99)) == expected
        assert not store.replace(SCOPES[1], ["another id"], [])
        assert store.forget(SCOPES[0], ["same id"], before=9.0, everything=True) == 1
        assert [len(store.memories(scope)) for scope in SCOPES] == [0, 1, 1, 1, 1, 1, 1]

    def test_what_others_remember_changes_no_ranking(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        mine = ["green tea", "black tea with milk", "milk", "a long story about a garden with tea in it", "tea tea"]
        store.write(ANN, [a_memory(text, text) for text in mine])
        before = texts_of(store.search(ANN, "milk tea garden", 9))
        other = SCOPES[1]
        store.write(other, [a_memory(str(number), "milk garden story " * number, other) for number in range(50)])
        assert texts_of(store.search(ANN, "milk tea garden", 9)) == before

    # --- what is found ------------------------------------------------------------------------------------------------

    def test_a_search_finds_what_shares_a_word(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        texts = ["Ann likes GREEN tea.", "Bob was born in Malmö.", "The crème brûlée was good.", "東京で会議があった。"]
        store.write(ANN, [a_memory(text, text) for text in texts])
        assert texts_of(store.search(ANN, "Which tea is green?", 9)) == texts[:1]
        assert texts_of(store.search(ANN, "malmo", 9)) == texts[1:2]
        assert texts_of(store.search(ANN, "CREME BRULEE!", 9)) == texts[2:3]
        assert texts_of(store.search(ANN, "会議", 9)) == texts[3:]

    def test_where_nothing_fits_nothing_is_found(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.write(ANN, [a_memory("1", "Tea.")])
        for query in ("coffee", "te", "", "  ", "!?", "scope", "words", ANN.digest, ANN.key):
            assert list(store.search(ANN, query, 5)) == []

    def test_what_fits_best_comes_first(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        texts = [
            *("the tea is green", "the tea is black", "the sea is green", "the sky is high", "the end is near"),
            "a way to the sea that is long, and windy and cold in winter",
        ]
        store.write(ANN, [a_memory(text, text) for text in texts])
        found = texts_of(store.search(ANN, "the green tea", 9))
        assert found[0] == "the tea is green"
        assert set(found[1:3]) == {"the tea is black", "the sea is green"}  # `the` is everywhere
        assert found[-1] == texts[-1]  # a word in many tells less
        assert texts_of(store.search(ANN, "the green tea", 1)) == found[:1]

    def test_of_what_fits_alike_the_latest_comes_first(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.write(ANN, [a_memory(id, "Tea.", at=at) for id, at in (("a", 1.0), ("b", 3.0), ("c", 2.0), ("d", 3.0))])
        assert [memory.id for memory in store.search(ANN, "tea", 9)] == ["d", "b", "c", "a"]
        assert [memory.id for memory in store.recent(ANN, 9)] == ["d", "b", "c", "a"]
        assert [memory.id for memory in store.memories(ANN)] == ["a", "c", "b", "d"]

    def test_no_more_are_found_than_are_asked_for(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.write(ANN, [a_memory(str(number), "Tea.", kind="fact" if number % 2 else "note") for number in range(9)])
        for limit, expected in ((-1, 0), (0, 0), (1, 1), (4, 4), (9, 9), (99, 9)):
            assert len(store.search(ANN, "tea", limit)) == len(store.recent(ANN, limit)) == expected
            assert [memory.id for memory in store.memories(ANN, limit)] == [str(number) for number in range(expected)]
        for found in (store.search(ANN, "tea", 99, "fact"), store.recent(ANN, 99, "fact")):
            assert [memory.id for memory in found] == ["7", "5", "3", "1"]
        assert list(store.search(ANN, "tea", 99, "nothing")) == list(store.recent(ANN, 99, "")) == []

    # --- batches ------------------------------------------------------------------------------------------------------

    def test_a_batch_is_seen_when_it_is_flushed(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.write(ANN, [a_memory("1", "One tea.")], batch="a")
        store.write(ANN, [a_memory("2", "Two teas, one tea."), a_memory("3", "Tea at three.")], batch="b")
        assert list(store.search(ANN, "tea", 5)) == list(store.recent(ANN, 5)) == list(store.memories(ANN)) == []
        assert store.flush(MemoryScope("acme"), "b") == store.flush(ANN, "") == store.flush(ANN, "c") == 0
        assert store.flush(ANN, "b") == 2
        assert store.flush(ANN, "b") == 0
        assert {memory.id for memory in store.search(ANN, "tea", 5)} == {"2", "3"}
        assert store.flush(ANN, "a") == 1
        assert [memory.id for memory in store.memories(ANN)] == ["1", "2", "3"]

    def test_what_is_not_flushed_goes_over_to_the_next_batch(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.write(ANN, [a_memory("1", "Tea.")], batch="lost")
        store.write(ANN, [a_memory("1", "Coffee.")], batch="found")
        assert (store.flush(ANN, "lost"), store.flush(ANN, "found")) == (0, 1)
        assert texts_of(store.memories(ANN)) == ["Tea."]
        store.write(ANN, [a_memory("2", "Milk.")], batch="lost")
        store.write(ANN, [a_memory("2", "Milk.")])
        assert texts_of(store.memories(ANN)) == ["Tea.", "Milk."]

    # --- forgetting ---------------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("before", ["2020-01-01", b"", datetime.date(2020, 1, 1), float("nan"), True], ids=str)
    def test_a_time_that_is_none_deletes_nothing(self, tmp_path: Path, before: Any) -> None:
        store = self.open_store(tmp_path)
        store.write(ANN, [a_memory("1", "Tea.")])
        with pytest.raises(OptionError):
            store.forget(ANN, before=before)
        assert texts_of(store.memories(ANN)) == ["Tea."]

    def test_one_text_is_no_list_of_identifiers(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.write(ANN, [a_memory("1", "Tea."), a_memory("2", "Milk.")])
        for ids in "12", [1]:
            with pytest.raises(OptionError):
                store.forget(ANN, ids)  # ty: ignore[invalid-argument-type]
        assert texts_of(store.memories(ANN)) == ["Tea.", "Milk."]

    def test_what_was_forgotten_is_gone_and_stays_so(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        everything = [a_memory(str(number), f"Tea number {number}.", at=float(number)) for number in range(6)]
        store.write(ANN, everything)
        assert store.forget(ANN, ["1", "1", "nobody"]) == 1
        assert store.forget(ANN, before=3.0) == 2
        assert store.forget(ANN, ["4"], before=4.0) == 2
        assert [memory.id for memory in store.memories(ANN)] == ["5"]
        assert store.forget(ANN) == 0
        assert store.forget(ANN, everything=True) == 1
        store.write(ANN, everything)
        store.write(ANN, everything, batch="b")
        assert store.flush(ANN, "b") == 0
        assert list(store.memories(ANN)) == list(store.search(ANN, "tea", 9)) == []
        store.write(ANN, [a_memory("new", "Tea again.")])
        assert texts_of(store.memories(ANN)) == ["Tea again."]

    def test_what_nobody_has_seen_is_forgotten_too(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.write(ANN, [a_memory(str(number), at=float(number)) for number in range(3)], batch="b")
        store.forget(ANN, ["0"], before=2.0)
        assert store.flush(ANN, "b") == 1

    # --- replacing ----------------------------------------------------------------------------------------------------

    def test_memories_take_the_place_of_others(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        old = [a_memory(str(number), f"Tea number {number}.") for number in range(3)]
        store.write(ANN, old)
        new = [a_memory("new", "Three teas.", kind="summary")]
        assert store.replace(ANN, ["0", "1"], new)
        assert texts_of(store.memories(ANN)) == ["Tea number 2.", "Three teas."]
        assert store.replace(ANN, ["0", "1"], new)  # it is done already
        store.write(ANN, old)
        assert texts_of(store.memories(ANN)) == ["Tea number 2.", "Three teas."]
        assert store.replace(ANN, ["2", "new"], [])
        assert list(store.memories(ANN)) == []

    def test_where_one_is_gone_nothing_takes_its_place(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.write(ANN, [a_memory("1"), a_memory("2", "A secret.")])
        store.write(ANN, [a_memory("3")], batch="b")
        store.forget(ANN, ["2"])
        for missing in ("2", "3", "nobody"):
            assert not store.replace(ANN, ["1", missing], [a_memory(f"in the place of {missing}", "Tea and a secret.")])
        assert [memory.id for memory in store.memories(ANN)] == ["1"]

    # --- several at once, and later -----------------------------------------------------------------------------------

    def test_what_was_written_is_there_when_it_is_opened_again(self, tmp_path: Path) -> None:
        if not self.keeps:
            pytest.skip("this store ends with its process")
        store = self.open_store(tmp_path)
        store.write(ANN, [a_memory("1", "Tea."), a_memory("2", "Milk.")])
        store.write(ANN, [a_memory("3", "Wine.")], batch="b")
        other = self.open_store(tmp_path)
        assert texts_of(other.search(ANN, "milk", 5)) == ["Milk."]
        other.forget(ANN, ["2"])
        assert list(store.search(ANN, "milk", 5)) == []
        for each in (store, other):
            self.close_store(each)
        again = self.open_store(tmp_path)
        again.write(ANN, [a_memory("2", "Milk.")])
        assert again.flush(ANN, "b") == 1
        assert texts_of(again.memories(ANN)) == ["Tea.", "Wine."]

    def test_threads_write_at_once(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        start, errors = threading.Barrier(4), list[BaseException]()

        def write(number: int) -> None:
            scope = MemoryScope("acme", user=str(number))
            try:
                start.wait()
                for place in range(8):
                    store.write(ANN, [a_memory(f"shared {place}", "Tea."), a_memory(f"{number} {place}", "Tea.")])
                    store.write(scope, [a_memory(str(place), "Tea.", scope)], batch="b")
                    store.search(ANN, "tea", 3)
                store.flush(scope, "b")
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors
        assert len(store.memories(ANN)) == len(store.search(ANN, "tea", 99)) == 8 + 4 * 8
        for number in range(4):
            mine = store.memories(MemoryScope("acme", user=str(number)))
            assert [memory.id for memory in mine] == [str(place) for place in range(8)]

    def test_any_course_of_events(self, tmp_path: Path) -> None:
        pytest.importorskip("hypothesis", reason="random courses of events need hypothesis")
        from effectful_agents.testing import memory_machine  # noqa: PLC0415 - needs hypothesis

        memory_machine.run(self, tmp_path)
