"""Runs as things: finding one, and saying what came of a step of which nobody knows."""

from __future__ import annotations

import dataclasses
import enum
import getpass
import json
import socket
from collections.abc import Iterator, Sequence
from typing import Any, Final

from effectful_agents.errors import JournalError
from effectful_agents.handlers.durability.bodies import text_of_body
from effectful_agents.handlers.durability.forking import no_such
from effectful_agents.operations.records import Checkpointer, Durability, Phase, Record, RunState, RunStore
from effectful_agents.operations.world import now

__all__ = ["find_run", "journal_lines", "settle", "unsettled"]


def find_run(store: Checkpointer, run_id: str) -> RunState:
    """The journal of a run that there is.

    Raises:
        JournalError: There is none; the message has the names that are nearly so.
    """
    state = store.load(run_id)
    if not state.records:
        known = [info.run_id for info in store.runs()] if isinstance(store, RunStore) else []
        raise JournalError(no_such("run", run_id, known, f"in `{getattr(store, 'path', 'this store')}`"))
    return state


def unsettled(state: RunState) -> Sequence[str]:
    """The steps that a run stops at until somebody says what came of them: effects that may have happened.

    Requests to models are made again, and so are tools that are declared `idempotent`; calls are entered again.
    """
    return [step_id for step_id in state.uncertain() if _must_not_happen_twice(state.attempted(step_id))]


class _NotGiven(enum.Enum):
    """Tells "nothing" from None, which is a value."""

    NOT_GIVEN = enum.auto()


_NOT_GIVEN: Final = _NotGiven.NOT_GIVEN


def settle(
    store: Checkpointer,
    run_id: str,
    step_id: str,
    *,
    done: Any = _NOT_GIVEN,
    redo: bool = False,
    fail: str | None = None,
) -> Record:
    """Say what came of a step of which nobody knows, or have it made once more. That is itself recorded.

    Args:
        store: What keeps the journal.
        run_id: The run; nobody may have it now.
        step_id: The step.
        done: It happened, and this is its result, as the JSON of a value of the tool's type.
        redo: It did not happen: it is made when the run is resumed. So can be a step that failed.
        fail: It did not happen and is not made: it failed, for this reason.

    Returns:
        What was recorded.

    Raises:
        JournalError: There is no such run or step, what came of it is known, or not exactly one answer is given. An
            answer can be given anew as long as the run has not gone on with it.
        RunInUse: Somebody has the run.

    >>> from effectful_agents.handlers.durability import MemoryCheckpointer
    >>> store = MemoryCheckpointer()
    >>> store.append(Record(run_id="r", step_id="000001-tool", phase=Phase.ATTEMPTED, kind="tool", name="pay"))
    >>> unsettled(store.load("r")), dict(settle(store, "r", "000001-tool", done=12).body)["value"]
    (['000001-tool'], 12)
    >>> unsettled(store.load("r"))
    []
    """
    answers = [
        *([{"settled": "done", "value": done}] if done is not _NOT_GIVEN else []),
        *([{"settled": "redo"}] if redo else []),
        *([{"settled": "fail", "error": fail}] if fail is not None else []),
    ]
    if len(answers) != 1:
        raise JournalError("a step is settled in one way: with `done=VALUE`, `redo=True` or `fail=WHY`.")
    find_run(store, run_id)  # before it is leased, which would be refused for a run that is not there as well
    lease = store.lease(run_id) if isinstance(store, RunStore) else None
    try:
        record = _settlement(store.load(run_id), step_id, {**answers[0], "by": _who()})
        (lease or store).append(record)
    finally:
        if lease is not None:
            lease.release()
    return record


def journal_lines(state: RunState) -> Iterator[str]:
    """A journal as lines of JSON, a record each, in ASCII."""
    for record in state.records:
        fields = dataclasses.asdict(dataclasses.replace(record, body={})) | {"body": json.loads(text_of_body(record))}
        yield json.dumps(fields)


def _must_not_happen_twice(attempted: Record | None) -> bool:
    return (
        attempted is not None
        and attempted.kind == "tool"
        and attempted.durability is Durability.DURABLE
        and not (attempted.body.get("again") or attempted.body.get("goes on"))
    )


def _settlement(state: RunState, step_id: str, body: dict[str, Any]) -> Record:
    asked, came = state.attempted(step_id), state.completed(step_id)
    last = came or asked
    if not step_id or last is None:
        raise JournalError(no_such("step", step_id, state.steps(), f"in the run `{state.run_id}`"))
    if came is None and last.kind != "tool":
        raise JournalError(f"the step `{step_id}` is a `{last.kind}`: it is taken up again when the run is resumed.")
    if came is not None and not _can_be_changed(state, came, body["settled"]):
        raise JournalError(
            f"what came of the step `{step_id}` is recorded. Only a step that nobody knows about is settled, and one "
            f"that failed can be made once more (`redo`); to go back further, fork the run: `effectful-agents fork "
            f"{state.run_id} --at {step_id}`."
        )
    return Record(
        run_id=state.run_id,
        step_id=step_id,
        # What is recorded of an attempt stays; the latest attempt counts.
        attempt=last.attempt + (came is not None),
        phase=Phase.COMPLETED,
        kind=last.kind,
        name=last.name,
        body=body,
        at=now(),
    )


def _can_be_changed(state: RunState, came: Record, answer: str) -> bool:
    if answer == "redo" and "error" in came.body:
        return True
    # Until the run has gone on with it, an answer can be corrected: it may have been no value of the tool's type.
    later = state.records[state.records.index(came) + 1 :]
    return "settled" in came.body and all(record.kind == "run" for record in later)


def _who() -> str:
    try:
        user = getpass.getuser()
    except (OSError, KeyError, ImportError):  # in a container, a user may have no name
        user = "somebody"
    return f"{user}@{socket.gethostname()}"
