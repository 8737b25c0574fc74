"""The part of a journal that a new run can share."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterator, Sequence, Set

from effectful_agents.errors import JournalError
from effectful_agents.operations.records import Phase, Record, RunState
from effectful_agents.operations.world import now

__all__ = ["forked_records", "no_such"]


def forked_records(state: RunState, new_id: str, at: str | None = None) -> list[Record]:
    """The first records of a run that begins as another one did.

    Kept is what comes before a step in the program: steps with earlier positions, whole, also where they ended later
    than it began, since tools may run at the same time. Of the calls that the step is nested in, it is kept that they
    began; a tool that it is nested in is called again. How the other run was opened and closed is its own affair, and
    so are the approvals of what has not happened yet: it would happen in both.

    Args:
        state: The journal to begin as.
        new_id: The new run.
        at: The first step that is not shared; None shares all that is there.

    Returns:
        A record that says where the new run comes from, and those that are shared, without the model that was asked:
        a new run may ask another one.

    Raises:
        JournalError: The journal is empty, or has no such step.

    >>> steps = [
    ...     Record(run_id="a", step_id=step, phase=phase, kind="model")
    ...     for step in ("000001-call/000001-model", "000001-call/000002-model")
    ...     for phase in Phase
    ... ]
    >>> [record.step_id for record in forked_records(RunState("a", steps), "b", "000001-call/000002-model")]
    ['', '000001-call/000001-model', '000001-call/000001-model']
    """
    if not state.records:
        raise JournalError(f"there is no run `{state.run_id}` to begin as.")
    if at is not None and at not in state.steps():
        raise JournalError(no_such("step", at, state.steps(), f"in the run `{state.run_id}`"))
    shared = _without_open_approvals(state.records if at is None else list(_before(state, at)))
    body = {"forked_from": state.run_id, "at": at}
    opened = Record(run_id=new_id, step_id="", phase=Phase.ATTEMPTED, kind="run", body=body, at=now())
    return [opened, *(_shared(record, new_id) for record in shared if record.kind != "run")]


def no_such(what: str, name: str, names: Sequence[str], where: str) -> str:
    """Say that there is no run or step of a name, and which ones are called nearly so.

    >>> no_such("run", "raport", ["report", "news"], "in `runs.db`")
    'there is no run `raport` in `runs.db`. Is `report` meant?'
    """
    near = difflib.get_close_matches(name, names, n=3)
    if near:
        advice = f"Is {' or '.join(f'`{one}`' for one in near)} meant?"
    else:
        shown = ", ".join(f"`{one}`" for one in names[:10]) + (", …" if len(names) > 10 else "")
        advice = f"There are: {shown}." if names else "There are none."
    return f"there is no {what} `{name}` {where}. {advice}"


def _before(state: RunState, at: str) -> Iterator[Record]:
    path = at.split("/")
    latest = {record.step_id: record.attempt for record in state.records if record.phase is Phase.ATTEMPTED}
    for record in state.records:
        own = record.step_id.split("/")
        if path[: len(own)] == own:  # the step itself, or what it is nested in
            opens = record.phase is Phase.ATTEMPTED or record.attempt < latest.get(record.step_id, 0)
            if record.kind == "call" and record.step_id != at and opens:
                yield record
        elif own < path:  # positions have a fixed width, so that steps sort as they happen
            yield record


def _without_open_approvals(records: Sequence[Record]) -> list[Record]:
    """Records without what persons said of that which has not come to its end: they approved one effect."""
    done = {record.step_id for record in records if record.phase is Phase.COMPLETED}
    kept: list[Record] = []
    after: set[str] = set()  # what comes later, with all that it is nested in
    for record in reversed(records):
        path = record.step_id.split("/")
        if _is_settled(path, done, after):
            kept.append(record)
        if "aside" not in path and record.kind != "run":
            after.update("/".join(path[:length]) for length in range(len(path)))
    return kept[::-1]


def _is_settled(path: Sequence[str], done: Set[str], after: Set[str]) -> bool:
    """Whether a step is no part of a question, or of one about something that has happened, or will not."""
    places = [place for place, part in enumerate(path) if part in ("approval", "question", "aside")]
    if not places:
        return True
    about = "/".join(path[: places[0]])
    # What is no step of its own has happened where the code around it went on, or came to its end.
    return about in done or (path[places[0]] == "aside" and about in after)


def _shared(record: Record, new_id: str) -> Record:
    body = dict(record.body)
    if record.kind == "model":
        body.pop("model", None)
    return dataclasses.replace(record, run_id=new_id, body=body)
