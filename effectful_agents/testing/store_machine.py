"""Random courses of events on a store of journals, beside lists with what it should have. Needs hypothesis."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from effectful_agents.errors import LeaseLost, RunInUse
from effectful_agents.operations.records import Lease, Phase, Record, RunStatus, RunStore
from effectful_agents.testing.courses import run_courses
from effectful_agents.testing.run_stores import RunStoreContract
from effectful_agents.testing.stores import CheckpointerContract, step

__all__ = ["run"]

RUNS = st.sampled_from(["r", "s", "\ud800"])
STEPS = st.sampled_from(
    [
        "",
        "000001-call",
        "000001-call/000001-tool",
        "000001-call/000001-tool/000001-call",
        "000001-call/000002-model",
        "000002-call",
    ]
)


@st.composite
def records(draw: st.DrawFn, run_id: str) -> list[Record]:
    """Some records of a run, among which the same keys come again."""
    halves = draw(st.lists(st.tuples(STEPS, st.integers(1, 2), st.sampled_from(Phase)), min_size=1, max_size=4))
    bodies = st.fixed_dictionaries({"status": st.just("failed"), "value": st.text() | st.integers()})
    return [step(run_id, step_id, phase, attempt=attempt, body=draw(bodies)) for step_id, attempt, phase in halves]


def run(contract: CheckpointerContract, folder: Path) -> None:
    """Try random courses of events.

    Args:
        contract: Opens the stores.
        folder: Where each course gets a folder of its own.
    """
    run_courses(_Course, contract, folder)


class _Course(RuleBasedStateMachine):
    """One course of events; `expected` has what the store should have."""

    def __init__(self, contract: CheckpointerContract, folder: Path) -> None:
        super().__init__()
        self.contract: Any = contract
        self.folder = Path(tempfile.mkdtemp(dir=folder))
        self.store: Any = contract.open_store(self.folder)
        self.expected: dict[str, list[Record]] = {}
        self.leases: dict[str, Lease] = {}
        self.lost: list[tuple[str, Lease]] = []
        self.forks = 0
        self.has_runs = isinstance(self.store, RunStore)
        self.can_lapse = isinstance(contract, RunStoreContract) and type(contract).lapse is not RunStoreContract.lapse

    def write_down(self, added: list[Record]) -> None:
        for record in added:
            kept = self.expected.setdefault(record.run_id, [])
            if record.key not in {other.key for other in kept}:
                kept.append(record)

    @rule(data=st.data(), run_id=RUNS)
    def append(self, data: st.DataObject, run_id: str) -> None:
        added = data.draw(records(run_id))
        if run_id in self.leases:
            with pytest.raises(RunInUse):
                self.store.append(*added)
        else:
            self.store.append(*added)
            self.write_down(added)

    @precondition(lambda self: self.contract.keeps and not self.leases)
    @rule(close=st.booleans())
    def open_again(self, close: bool) -> None:
        if close:
            self.contract.close_store(self.store)
        self.store = self.contract.open_store(self.folder)

    @precondition(lambda self: self.has_runs)
    @rule(run_id=RUNS)
    def take(self, run_id: str) -> None:
        if run_id in self.leases:
            with pytest.raises(RunInUse):
                self.store.lease(run_id)
        else:
            self.leases[run_id] = self.store.lease(run_id)

    @precondition(lambda self: self.leases)
    @rule(data=st.data())
    def append_by_lease(self, data: st.DataObject) -> None:
        run_id = data.draw(st.sampled_from(sorted(self.leases)))
        added = data.draw(records(run_id))
        self.leases[run_id].append(*added)
        self.write_down(added)

    @precondition(lambda self: self.leases)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        run_id = data.draw(st.sampled_from(sorted(self.leases)))
        lease = self.leases.pop(run_id)
        lease.release()
        self.lost.append((run_id, lease))

    @precondition(lambda self: self.lost)
    @rule(data=st.data())
    def use_what_was_given_back(self, data: st.DataObject) -> None:
        run_id, lease = data.draw(st.sampled_from(self.lost))
        lease.release()
        with pytest.raises(LeaseLost):
            lease.append(step(run_id, "000009-tool"))

    @precondition(lambda self: self.has_runs)
    @rule(run_id=RUNS)
    def delete(self, run_id: str) -> None:
        if run_id in self.leases:
            with pytest.raises(RunInUse):
                self.store.delete(run_id)
        else:
            self.store.delete(run_id)
            self.expected.pop(run_id, None)

    @precondition(lambda self: self.leases and self.can_lapse)
    @rule(data=st.data())
    def take_over(self, data: st.DataObject) -> None:
        run_id = data.draw(st.sampled_from(sorted(self.leases)))
        self.lost.append((run_id, self.leases[run_id]))
        self.contract.lapse(self.store, run_id)
        self.leases[run_id] = self.store.lease(run_id)

    @precondition(lambda self: self.has_runs and self.expected)
    @rule(data=st.data())
    def fork(self, data: st.DataObject) -> None:
        run_id, new_id = data.draw(st.sampled_from(sorted(self.expected))), f"fork {self.forks}"
        self.forks += 1
        written = [record for record in self.expected[run_id] if record.kind != "run"]
        at = data.draw(st.sampled_from([None, *sorted({record.step_id for record in written})]))
        opened, *shared = self.expected[new_id] = list(self.store.fork(run_id, new_id, at).records)
        assert dict(opened.body) == {"forked_from": run_id, "at": at}
        keys = [record.key[1:] for record in shared]
        before = [record for record in written if at is None or record.step_id.split("/") < at.split("/")]
        around = [record for record in before if at is not None and at.startswith(f"{record.step_id}/")]
        # All that comes before the step is there, in its order; of what the step is in, perhaps not the end.
        assert keys == [record.key[1:] for record in before if record not in around or record.key[1:] in keys]
        assert all(record.kind == "call" for record in around if record.key[1:] in keys)

    @invariant()
    def journals_are_as_expected(self) -> None:
        for run_id, written in self.expected.items():
            assert self.store.load(run_id).records == written

    @invariant()
    def the_list_is_as_expected(self) -> None:
        if not self.has_runs:
            return
        listed = {info.run_id: info for info in self.store.runs()}
        assert listed.keys() == self.expected.keys()
        for run_id, info in listed.items():
            steps = {record.step_id for record in self.expected[run_id] if record.kind in ("model", "tool")}
            assert info.steps == len(steps)
            assert (info.status is RunStatus.RUNNING) == (run_id in self.leases)

    def teardown(self) -> None:
        for lease in self.leases.values():
            lease.release()
        self.contract.close_store(self.store)
