"""What every store of runs promises beyond the journals: leases, lists, forks."""

from __future__ import annotations

import dataclasses
import threading
from pathlib import Path
from typing import Any, override

import pytest

from effectful_agents.errors import JournalError, LeaseLost, RunInUse
from effectful_agents.messages import Usage
from effectful_agents.operations.records import Lease, Phase, Record, RunInfo, RunStatus, RunStore
from effectful_agents.testing.stores import CheckpointerContract, step, steps_of

__all__ = ["RunStoreContract"]


class RunStoreContract(CheckpointerContract):
    """What every `RunStore` promises. Derive a class whose name begins with `Test`, and write its two methods."""

    @override
    def open_store(self, folder: Path) -> RunStore:
        raise NotImplementedError(f"{type(self).__name__} says how a store is opened: write `open_store`")

    def lapse(self, store: Any, run_id: str) -> None:
        """Have the lease of a run count as one whose holder has not been heard of for too long.

        The store's way to do it, as with the time when it expires; without it two tests are skipped.
        """
        pytest.skip("write `lapse` to have this tested")

    def test_it_is_a_run_store(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        assert isinstance(store, RunStore)
        assert isinstance(store.lease("r"), Lease)

    # --- leases -------------------------------------------------------------------------------------------------------

    def test_one_at_a_time_has_a_run(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        lease = store.lease("r")
        with pytest.raises(RunInUse, match="`r`"):
            store.lease("r")
        other = store.lease("another run")
        lease.release()
        with pytest.raises(RunInUse):
            store.lease("another run")
        other.release()
        store.lease("r").release()

    def test_whoever_has_a_run_writes_and_nobody_else(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        lease = store.lease("r")
        lease.append(step("r", "000001-tool"), step("r", "000001-tool", Phase.COMPLETED))
        lease.renew()
        lease.append(step("r", "000001-tool"), step("r", "000002-tool"))
        with pytest.raises(RunInUse):
            store.append(step("s", "000001-tool"), step("r", "000003-tool"))
        assert store.load("s").records == []
        expected = [("000001-tool", 1, "attempted"), ("000001-tool", 1, "completed"), ("000002-tool", 1, "attempted")]
        assert steps_of(store.load("r").records) == expected
        lease.release()
        store.append(step("r", "000003-tool"))
        assert len(store.load("r").records) == 4

    def test_a_lease_is_for_one_run(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        lease = store.lease("r")
        with pytest.raises(JournalError, match="`s`"):
            lease.append(step("r", "000001-tool"), step("s", "000001-tool"))
        assert store.load("r").records == store.load("s").records == []

    def test_a_lease_that_was_given_back_writes_nothing(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        lease = store.lease("r")
        lease.release()
        lease.release()
        with pytest.raises(LeaseLost):
            lease.append(step("r", "000001-tool"))
        with pytest.raises(LeaseLost):
            lease.renew()
        second = store.lease("r")
        lease.release()
        with pytest.raises(RunInUse):
            store.lease("r")
        second.append(step("r", "000001-tool"))
        assert len(store.load("r").records) == 1

    def test_who_was_not_heard_of_loses_the_run_to_whoever_asks(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        lost = store.lease("r")
        lost.append(step("r", "000001-tool"))
        self.lapse(store, "r")
        lease = store.lease("r")
        for act in (lambda: lost.append(step("r", "000002-tool", name="late")), lost.renew):
            with pytest.raises(LeaseLost, match="`r`"):
                act()
        lost.release()
        with pytest.raises(RunInUse):
            store.lease("r")
        lease.append(step("r", "000002-tool", name="in time"))
        assert [record.name for record in store.load("r").records] == ["", "in time"]
        lease.release()
        with pytest.raises(LeaseLost):
            lost.append(step("r", "000003-tool"))

    def test_a_run_whose_holder_was_not_heard_of_is_nobodys(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        lease = store.lease("r")
        lease.append(step("r", "000001-tool"))
        self.lapse(store, "r")
        assert self.info(store, "r").status is RunStatus.INTERRUPTED
        store.delete("r")
        with pytest.raises(LeaseLost):
            lease.append(step("r", "000002-tool"))
        assert store.runs() == []

    def test_of_several_who_ask_at_once_one_gets_the_run(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        start, got, refused = threading.Barrier(4), list[Lease](), list[RunInUse]()

        def ask() -> None:
            start.wait()
            try:
                got.append(store.lease("r"))
            except RunInUse as error:
                refused.append(error)

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (len(got), len(refused)) == (1, 3)

    # --- the list -----------------------------------------------------------------------------------------------------

    def info(self, store: RunStore, run_id: str) -> RunInfo:
        """What the list of runs has of one."""
        return next(info for info in store.runs() if info.run_id == run_id)

    def test_a_list_says_what_the_journals_do(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        usage = {"prompt_tokens": 100, "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": 0}}
        store.append(
            step("r", "", at=10.0),
            step("r", "000001-call", name="report", at=11.0),
            step("r", "000001-call/000001-model", at=12.0),
            step(
                "r",
                "000001-call/000001-model",
                Phase.COMPLETED,
                body={"response": {"model": "gpt-5", "usage": usage}},
                at=13.0,
            ),
        )
        store.append(
            step("r", "000001-call/000002-tool", at=14.0),
            step("r", "000001-call/000002-tool/000001-call", name="inner", at=15.0),
            step("r", "000001-call/000002-tool/000001-call/000001-model", at=16.0),
            step(
                "r",
                "000001-call/000002-tool/000001-call/000001-model",
                Phase.COMPLETED,
                body={"response": {"usage": {"input": 5, "output": 1, "reasoning": 1}}},
                at=17.0,
            ),
            step("r", "000001-call/000002-tool", attempt=2, at=18.0),
            step("r", "000002-call", name="second", at=19.0),
        )
        info = self.info(store, "r")
        first, second = Usage.from_wire(usage), Usage(input=5, output=1, reasoning=1)
        expected = RunInfo(
            run_id="r",
            status=RunStatus.INTERRUPTED,
            skill="report",
            steps=3,
            last_step="000001-call/000002-tool",
            created=10.0,
            updated=19.0,
            usage=dataclasses.asdict(first + second),
            models={"gpt-5": dataclasses.asdict(first), "": dataclasses.asdict(second)},
        )
        assert info == expected
        store.append(step("r", "000001-call/000001-model", body={}, at=99.0))  # it is there already
        assert self.info(store, "r") == expected

    @pytest.mark.parametrize("status", [status for status in RunStatus if status is not RunStatus.RUNNING])
    def test_how_a_run_was_closed(self, tmp_path: Path, status: RunStatus) -> None:
        store = self.open_store(tmp_path)
        lease = store.lease("r")
        lease.append(step("r", ""))
        running = self.info(store, "r")
        assert running.status is RunStatus.RUNNING
        assert running.holder
        lease.append(step("r", "", Phase.COMPLETED, body={"status": status.value, "error": "it rained"}))
        lease.release()
        closed = self.info(store, "r")
        assert (closed.status, closed.error, closed.holder) == (status, "it rained", "")
        store.append(step("r", "", attempt=2))
        opened = self.info(store, "r")
        assert (opened.status, opened.error) == (RunStatus.INTERRUPTED, "")

    def test_a_run_whose_uncertain_step_was_settled_waits_to_be_resumed(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.append(step("r", ""), step("r", "000001-tool"))
        store.append(step("r", "", Phase.COMPLETED, body={"status": "uncertain", "error": "who knows"}))
        store.append(step("r", "000001-tool", Phase.COMPLETED, body={"settled": "done", "value": 3}))
        info = self.info(store, "r")
        assert (info.status, info.error) == (RunStatus.INTERRUPTED, "")

    def test_the_latest_run_comes_first(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        assert store.runs() == []
        store.append(step("a", ""))
        store.append(step("b", ""))
        assert [info.run_id for info in store.runs()] == ["b", "a"]
        store.append(step("a", "000001-tool"))
        assert [info.run_id for info in store.runs()] == ["a", "b"]

    def test_a_run_that_was_deleted_begins_anew(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        lease = store.lease("r")
        lease.append(step("r", "000001-tool"), step("r", "000002-tool"))
        store.append(step("s", "000001-tool"))
        with pytest.raises(RunInUse):
            store.delete("r")
        lease.release()
        store.delete("r")
        store.delete("nobody")
        assert [info.run_id for info in store.runs()] == ["s"]
        assert store.load("r").records == []
        store.append(step("r", "000002-tool"))
        assert steps_of(store.load("r").records) == [("000002-tool", 1, "attempted")]
        assert self.info(store, "r").steps == 1

    # --- forks --------------------------------------------------------------------------------------------------------

    def journal(self) -> list[Record]:
        """The journal of a run that has ended: two calls, in the first two tools at once, one of them a skill."""
        call = "000001-call"

        def both(step_id: str, **fields: Any) -> list[Record]:
            return [step("r", step_id, phase, body={"model": "gpt-5"}, **fields) for phase in Phase]

        inner, late = both(f"{call}/000003-delegate"), both(f"{call}/000002-tool")
        nested = f"{call}/000003-delegate/000001-call"
        return [
            step("r", ""),
            step("r", call, name="report"),
            *both(f"{call}/000001-model", at=3.0),
            late[0],
            inner[0],
            step("r", nested),
            *both(f"{nested}/000001-model"),
            late[1],
            *both(f"{nested}/000002-model"),
            step("r", nested, Phase.COMPLETED),
            inner[1],
            step("r", call, Phase.COMPLETED),
            *both("000002-call"),
            step("r", "", Phase.COMPLETED, body={"status": "finished"}),
        ]

    def test_a_fork_shares_all(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.append(*self.journal())
        state = store.fork("r", "new")
        assert state.run_id == "new"
        assert state.records == store.load("new").records
        opened, *shared = state.records
        assert (opened.kind, opened.phase, dict(opened.body)) == (
            "run",
            Phase.ATTEMPTED,
            {"forked_from": "r", "at": None},
        )
        assert steps_of(shared) == steps_of(record for record in self.journal() if record.kind != "run")
        assert {record.run_id for record in shared} == {"new"}
        info = self.info(store, "new")
        assert (info.status, info.skill, info.steps) == (RunStatus.INTERRUPTED, "report", 5)

    def test_a_fork_may_ask_another_model(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.append(*self.journal())
        bodies = {record.kind: record.body for record in store.fork("r", "new").records[2:]}
        assert dict(bodies["model"]) == {}
        assert dict(bodies["tool"]) == {"model": "gpt-5"}
        assert store.load("r").records == self.journal()

    @pytest.mark.parametrize(
        ("at", "begun", "ended"),
        [
            ("000001-call", [], []),
            ("000001-call/000001-model", ["call"], []),
            ("000001-call/000002-tool", ["call", "model"], ["model"]),
            # The tool before it ended later than it began.
            ("000001-call/000003-delegate", ["call", "model", "tool"], ["model", "tool"]),
            # The delegate that it is in is called again; what it had asked is not asked again.
            (
                "000001-call/000003-delegate/000001-call/000002-model",
                ["call", "model", "tool", "call", "model"],
                ["model", "model", "tool"],
            ),
            ("000002-call", ["call", "model", "tool", "delegate", "call", "model", "model"], None),
        ],
    )
    def test_a_fork_shares_what_comes_before_a_step(
        self, tmp_path: Path, at: str, begun: list[str], ended: list[str] | None
    ) -> None:
        store = self.open_store(tmp_path)
        store.append(*self.journal())
        opened, *shared = store.fork("r", "new", at).records
        assert dict(opened.body) == {"forked_from": "r", "at": at}
        assert [record.kind for record in shared if record.phase is Phase.ATTEMPTED] == begun
        assert sorted(record.kind for record in shared if record.phase is Phase.COMPLETED) == sorted(
            begun if ended is None else ended
        )

    def test_a_fork_goes_its_own_way(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.append(*self.journal())
        store.fork("r", "new", "000002-call")
        before = len(store.load("r").records)
        store.append(step("new", "000002-call", name="other"))
        assert store.load("new").records[-1].name == "other"
        assert len(store.load("r").records) == before
        store.delete("r")
        assert store.fork("new", "newer").steps() == store.load("new").steps()

    def test_a_fork_needs_a_run_a_step_and_a_new_name(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.append(*self.journal())
        with pytest.raises(JournalError, match="`q`"):
            store.fork("q", "new")
        with pytest.raises(JournalError, match=r"`000001-call/000001-tool`.*`000001-call/000001-model`"):
            store.fork("r", "new", "000001-call/000001-tool")
        with pytest.raises(JournalError, match="`r` already"):
            store.fork("r", "r")
        lease = store.lease("new")
        with pytest.raises(RunInUse):
            store.fork("r", "new")
        lease.release()
        assert store.load("new").records == []
