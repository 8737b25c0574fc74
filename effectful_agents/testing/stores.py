"""What every store of journals promises, as tests that run on any of them.

The two classes are for pytest, which this module needs, as `effectful_agents.testing` does not. A class derived from
one of them says how a store is opened, and has all its tests:

    from effectful_agents.testing.stores import CheckpointerContract

    class TestMyStore(CheckpointerContract):
        def open_store(self, folder):
            return MyStore(folder / "journals")
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from effectful_agents.errors import JournalError
from effectful_agents.operations.records import Checkpointer, Durability, Phase, Record

__all__ = ["CheckpointerContract", "step", "steps_of"]

HARD_TEXTS = (
    "",
    " ",
    'it\'s "quoted"; --',
    "日本語",
    "\U0001f600",
    "\ud83d alone",
    "\udcff\udcfe",
    "a\x00b",
    "%s ? :x",
)
"""Texts that a store may stumble over."""


def step(run_id: str, step_id: str, phase: Phase = Phase.ATTEMPTED, **fields: Any) -> Record:
    """A record of a step, whose kind is the one that its identifier ends with.

    >>> step("r", "000001-call/000002-tool", name="weather").kind
    'tool'
    """
    kind = step_id.rpartition("-")[2] or "run"
    given: dict[str, Any] = {"kind": kind, **fields}
    return Record(run_id=run_id, step_id=step_id, phase=phase, **given)


def steps_of(records: Iterable[Record]) -> list[tuple[str, int, str]]:
    """Which step, attempt and phase each record is of.

    >>> steps_of([step("r", "000001-tool")])
    [('000001-tool', 1, 'attempted')]
    """
    return [(record.step_id, record.attempt, record.phase.value) for record in records]


class CheckpointerContract:
    """What every `Checkpointer` promises. Derive a class whose name begins with `Test`, and write `open_store`."""

    keeps = True
    """Whether what a store has written is there when the same folder is opened again."""
    examples = 25
    """How many random courses of events are tried, where hypothesis is installed."""

    def open_store(self, folder: Path) -> Checkpointer:
        """Open the store that is kept in a folder; in an empty one, a new store."""
        raise NotImplementedError(f"{type(self).__name__} says how a store is opened: write `open_store`")

    def close_store(self, store: Any) -> None:
        """Close a store that `open_store` gave; by default its own `close`, if it has one."""
        getattr(store, "close", lambda: None)()

    def test_it_is_a_checkpointer(self, tmp_path: Path) -> None:
        assert isinstance(self.open_store(tmp_path), Checkpointer)

    def test_the_journal_of_an_unknown_run_is_empty(self, tmp_path: Path) -> None:
        state = self.open_store(tmp_path).load("nobody")
        assert (state.run_id, state.records) == ("nobody", [])

    def test_records_come_back_as_they_were_in_their_order(self, tmp_path: Path) -> None:
        written = [
            step("r", "", at=1.5, body={"skill": "report"}),
            step("r", "000002-model", digest="abc", body={"messages": [{"role": "user", "content": "Hi"}]}, at=2.25),
            step("r", "000001-tool", name="weather", durability=Durability.DEFERRABLE, schema=7),
            step("r", "000001-tool", Phase.COMPLETED, attempt=3, at=1_700_000_000.123456),
        ]
        store = self.open_store(tmp_path)
        store.append(*written[:1])
        store.append(*written[1:3])
        store.append()
        store.append(written[3])
        assert store.load("r").records == written

    @pytest.mark.parametrize(
        "value",
        [
            *[None, True, 0, -1, 2**53 + 1, 10**40, 0.1, -0.0, 1e308],
            *HARD_TEXTS,
            "long " * 100_000,
            [],
            {},
            {"keys": {"in": 1, "this": 2, "order": 3}},
            [[[[[[{"deep": [{}]}]]]]]],
        ],
        ids=lambda value: ascii(value)[:20],
    )
    def test_any_json_comes_back(self, tmp_path: Path, value: Any) -> None:
        store = self.open_store(tmp_path)
        store.append(step("r", "000001-tool", body={"value": value, "values": [value]}))
        (record,) = store.load("r").records
        assert repr(record.body) == repr({"value": value, "values": [value]})

    @pytest.mark.parametrize("text", HARD_TEXTS[1:], ids=ascii)
    def test_any_text_names_a_run_a_step_or_a_tool(self, tmp_path: Path, text: str) -> None:
        store = self.open_store(tmp_path)
        written = step(text, text, kind="tool", name=text, digest=text)
        store.append(written, step(text + " ", text, kind="tool"))
        store.append(written)
        assert store.load(text).records == [written]

    def test_runs_do_not_mix(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        one, other = step("one", "000001-tool", name="a"), step("other", "000001-tool", name="b")
        store.append(one, other)
        assert (store.load("one").records, store.load("other").records) == ([one], [other])

    def test_a_record_with_the_key_of_another_is_passed_over(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        first = step("r", "000001-tool", body={"city": "Oslo"})
        again = dataclasses.replace(first, body={"city": "Rome"}, at=9.0)
        following = step("r", "000002-tool")
        store.append(first, again)
        store.append(again, following, following)
        assert store.load("r").records == [first, following]

    def test_another_attempt_and_the_other_phase_are_other_records(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        written = [step("r", "000001-tool", phase, attempt=attempt) for attempt in (1, 2, 12) for phase in Phase]
        for record in written:
            store.append(record)
        assert store.load("r").records == written

    def test_of_records_that_cannot_all_be_kept_none_is(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.append(step("r", "000001-tool"))
        with pytest.raises(JournalError):
            store.append(step("r", "000002-tool"), step("s", "000001-tool"), step("r", "000003-tool", body={"x": {1}}))
        assert steps_of(store.load("r").records) == [("000001-tool", 1, "attempted")]
        assert store.load("s").records == []

    def test_what_the_caller_changes_afterwards_is_not_kept(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        body = {"messages": ["one"]}
        store.append(step("r", "000001-tool", body=body))
        body["messages"].append("two")
        loaded = store.load("r")
        assert loaded.records[0].body == {"messages": ["one"]}
        loaded.add(step("r", "000009-tool"))
        loaded.records[0].body["messages"].append("three")
        assert store.load("r").records == [step("r", "000001-tool", body={"messages": ["one"]})]

    def test_what_was_written_is_there_when_it_is_opened_again(self, tmp_path: Path) -> None:
        if not self.keeps:
            pytest.skip("this store ends with its process")
        store = self.open_store(tmp_path)
        written = [step("r", "000001-tool", phase, body={"text": "\ud800"}) for phase in Phase]
        store.append(written[0])
        assert self.open_store(tmp_path).load("r").records == written[:1]
        self.close_store(store)
        again = self.open_store(tmp_path)
        again.append(*written)
        assert again.load("r").records == written

    def test_threads_write_at_once(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        start, errors = threading.Barrier(4), []

        def write(number: int) -> None:
            try:
                start.wait()
                for seq in range(1, 11):
                    store.append(
                        step("shared", f"{seq:06}-tool", attempt=number), step(f"own {number}", f"{seq:06}-tool")
                    )
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=write, args=(number,)) for number in range(1, 5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors
        shared = store.load("shared").records
        assert len(shared) == 40
        in_order = [f"{seq:06}-tool" for seq in range(1, 11)]
        for number in range(1, 5):
            assert [record.step_id for record in shared if record.attempt == number] == in_order
            assert [record.step_id for record in store.load(f"own {number}").records] == in_order

    def test_any_course_of_events(self, tmp_path: Path) -> None:
        pytest.importorskip("hypothesis", reason="random courses of events need hypothesis")
        from effectful_agents.testing import store_machine  # noqa: PLC0415 - needs hypothesis

        store_machine.run(self, tmp_path)
