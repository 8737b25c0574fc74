"""One run: its journal while it is written, and what is answered from it."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import time
from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from typing import Any

from effectful_agents.errors import (
    JournalError,
    ReplayDivergence,
    Suspended,
    UncertainEffect,
)
from effectful_agents.handlers.durability.forms import Form
from effectful_agents.handlers.durability.kept_agents import KeptAgents
from effectful_agents.handlers.durability.pending import Pending
from effectful_agents.handlers.durability.receivers import Restored
from effectful_agents.handlers.durability.replay import Known, Outcome, Replay
from effectful_agents.handlers.durability.requests import RequestLog
from effectful_agents.handlers.durability.runs import unsettled
from effectful_agents.operations.recorded import difference
from effectful_agents.operations.records import SCHEMA, Checkpointer, Durability, Lease, Phase, Record, RunStore
from effectful_agents.operations.steps import StepIds
from effectful_agents.operations.usage import tell_replayed, tell_usage
from effectful_agents.runtime import interpretation
from effectful_agents.tracebacks import summary

__all__ = ["Run"]


class Run:
    """A run that goes on in this process.

    Args:
        run_id: Its name.
        checkpointer: What keeps its journal.
        owner: The handler that it belongs to.

    Attributes:
        root: Gives the calls that the program makes their places.
        requests: Writes requests down.
        kept: The agents that are kept in a database.
        finished: Whether it had come to its end before.
        place: What says on a command line where the journal is.
    """

    def __init__(self, run_id: str, checkpointer: Checkpointer, owner: Any) -> None:
        self.run_id = run_id
        self.owner = owner
        self.root = StepIds(run_id=run_id)
        self.requests = RequestLog()
        self.kept = KeptAgents()
        self._restored = Restored()
        self.finished = False
        path = getattr(checkpointer, "path", None)
        self.place = f" --database {path}" if path else ""
        self._checkpointer = checkpointer
        self._lease: Lease | None = None
        self._waiting: list[Record] = []
        self._writing = threading.RLock()
        self._ended_by: BaseException | None = None
        self._suspended_by: Suspended | None = None
        self._met: set[str] = set()

    # --- from its beginning to its end -------------------------------------------------------------------------------

    @contextlib.contextmanager
    def opened(self) -> Generator[None]:
        """Have the run for the time of the block, and write down how it ends."""
        if isinstance(self._checkpointer, RunStore):
            self._lease = self._checkpointer.lease(self.run_id)
        try:
            self._open()
            try:
                yield
            except BaseException as error:
                self._close(_status(self._ended_by or error), error)
                raise
            # A program that eats the signal has not come to its end for that.
            ended_by = self._ended_by or self._suspended_by
            self._close("finished" if ended_by is None else _status(ended_by), ended_by)
        finally:
            if self._lease is not None:
                self._lease.release()

    def _open(self) -> None:
        state = self._checkpointer.load(self.run_id)
        newest = max((record.schema for record in state.records), default=SCHEMA)
        if newest > SCHEMA:
            raise JournalError(
                f"the journal of the run `{self.run_id}` was written by a later version ({newest}, this one knows "
                f"{SCHEMA}); update effectful-agents."
            )
        self._replay = Replay(state)
        last = state.completed("")
        self.finished = last is not None and last.body.get("status") == "finished"
        before = state.attempted("")
        self._opening = 1 if before is None else before.attempt + 1
        self._reopened = False
        if not self.finished:
            self._write_about_run(Phase.ATTEMPTED)

    def _close(self, status: str, error: BaseException | None) -> None:
        if status == "finished" and (left := self._left_open()):
            status = "uncertain"
            error = UncertainEffect(left, detail="The program came to its end without that step.")
        if self.finished and not self._reopened and status == "finished":
            return
        self._reopen()
        told = {} if error is None else {"error": str(error) if isinstance(error, Suspended) else summary(error)}
        body = {"status": status} | told
        try:
            self._write_about_run(Phase.COMPLETED, body)
        except JournalError:
            # Whoever has a token relies on it that the run can be gone on with.
            if error is None or isinstance(error, Suspended):
                raise
            # The run is as if the process had ended here, and the first error tells more.

    def _left_open(self) -> str | None:
        """A step whose effect nobody knows, and that the program has not come to this time."""
        return next((step_id for step_id in unsettled(self._replay.state) if step_id not in self._met), None)

    def _reopen(self) -> None:
        """Write down that a run which had ended goes on."""
        if self.finished and not self._reopened:
            self._reopened = True
            self._write_about_run(Phase.ATTEMPTED)

    def _write_about_run(self, phase: Phase, body: dict[str, Any] | None = None) -> None:
        self.write(phase=phase, kind="run", step_id="", attempt=self._opening, body=body or {})

    def write(self, **fields: Any) -> None:
        """Keep a record of these fields; one that can wait is kept together with the next that cannot."""
        record = Record(run_id=self.run_id, at=time.time(), **fields)
        self._reopen()
        with self._writing:
            self._waiting.append(record)
            if record.durability is Durability.DURABLE:
                self._flush(record)

    def _flush(self, latest: Record) -> None:
        try:
            (self._lease or self._checkpointer).append(*self._waiting)
        except BaseException as error:
            # A step that was not written down as attempted is not made. What came of one is still to be kept.
            if latest.phase is Phase.ATTEMPTED:
                self._waiting.remove(latest)
            if isinstance(error, Exception) and not isinstance(error, JournalError):
                raise JournalError(
                    f"the journal of the run `{self.run_id}` could not be written: {summary(error)}"
                ) from error
            raise
        self._waiting.clear()

    # --- steps --------------------------------------------------------------------------------------------------------

    def tell_used_below(self, step_id: str) -> None:
        """Tell what the requests had used that a step made which is answered whole, and not made again."""
        if tell_usage in interpretation():
            for asked in self._replay.below(step_id):
                came = self._replay.state.completed(asked.step_id) if asked.kind == "model" else None
                if came is not None:
                    tell_replayed(asked.body, came.body.get("response"))

    def attempt_of(self, step_id: str) -> tuple[int, bool] | None:
        """Which attempt of a step comes now, and whether it is answered from the journal; None where it is new."""
        known = self._replay.of(step_id)
        if known.record is None:
            return None
        return known.attempt + (known.outcome is Outcome.UNCERTAIN), known.outcome is Outcome.DONE

    def recorded_below(self, step_id: str) -> Sequence[Record]:
        """What a step did inside that is only told again."""
        return self._replay.below(step_id)

    def recorded(self, form: Form[Any]) -> Record | None:
        """What was recorded as the result of a call, if it can be had without making the call.

        It cannot where the call changed objects of the program, which it has to change again.
        """
        known = self.known(form)
        done = known.outcome is Outcome.DONE and known.record is not None and "value" in known.record.body
        return known.record if done and not self._replay.changes_program(form.step_id) else None

    def result_of[R](self, form: Form[R], body: Mapping[str, Any]) -> R:
        """The result that was recorded for a step.

        Raises:
            JournalError: It is none of the step's type.
        """
        try:
            return form.result(body)
        except ValueError as error:
            raise self.ended(JournalError(self._unreadable(form, body, error))) from error

    def _unreadable(self, form: Form[Any], body: Mapping[str, Any], error: ValueError) -> str:
        if "settled" in body:
            return (
                f"the value that was settled for the step `{form.step_id}` is no result of `{form.name}`: {error}. "
                f"Settle it again: `effectful-agents runs settle {self.run_id} {form.step_id}{self.place}` with "
                "`--done VALUE`, as JSON of what the tool is declared to return, `--redo` or `--fail`."
            )
        return (
            f"what is recorded for the step `{form.step_id}` of `{form.name}` cannot be read any more: {error}. "
            "Has the type of its result changed?"
        )

    def make[R](self, form: Form[R], body: Callable[[], R], ids: StepIds | None = None) -> R:
        """Make a step, or answer it from the journal.

        Args:
            form: The step.
            body: Makes it.
            ids: Where what it does inside gets its identifiers from, unless the body sees to it.
        """
        pending = Pending(self, form)
        if pending.is_answered:
            self.tell_used_below(form.step_id)
            return pending.answer()
        with pending, ids or contextlib.nullcontext():
            result = body()
        return pending.completed(result)

    async def make_awaited(self, form: Form[Any], coroutine: Coroutine[Any, Any, Any], ids: StepIds) -> Any:
        """As `make`, for what is awaited."""
        with contextlib.closing(coroutine):
            pending = Pending(self, form)
            if pending.is_answered:
                self.tell_used_below(form.step_id)
                return pending.answer()
            with pending, ids:
                result = await coroutine
            return pending.completed(result)

    def known(self, form: Form[Any]) -> Known:
        """What the journal knows of a step.

        Raises:
            ReplayDivergence: It was another step.
        """
        self.check()
        self._met.add(form.step_id)
        known = self._replay.of(form.step_id)
        if known.asked is None:
            instead = self._replay.instead(form.step_id)
            if instead is not None:
                raise self.ended(ReplayDivergence(_other_step(self, form, instead)))
            return known
        if form.may_change and known.asked.name == form.name:
            if form.told_again or known.asked.digest == form.digest:
                return known
            return dataclasses.replace(known, outcome=Outcome.NEW, attempt=known.asked.attempt + 1)
        where = form.differs(self._replay.state, known.asked)
        if where or known.asked.digest != form.digest or known.asked.name != form.name:
            where = where or difference(known.asked.name, form.name, "what is called") or "what is asked is different"
            raise self.ended(
                ReplayDivergence(
                    f"the run `{self.run_id}` does not go on as it began: at the step `{form.step_id}`, {where}. "
                    "Resume it with the program that it was begun with, or make a run of what both share: "
                    f"`effectful-agents fork {self.run_id} --at {form.step_id}{self.place}`."
                )
            )
        return known

    def ended[E: BaseException](self, error: E) -> E:
        """Have the run end with an error, whoever eats it."""
        self._ended_by = self._ended_by or error
        return error

    def check(self) -> None:
        """Raise what the run has ended with, if it has."""
        if self._ended_by is not None:
            raise self._ended_by

    def suspended(self, signal: Suspended) -> None:
        """Note that the run waits for somebody."""
        self._suspended_by = signal

    def restore(self, receiver: Any, changed: Mapping[str, Any], record: Record) -> None:
        """Change an object as a step did, whose end was recorded."""
        self._restored.restore(receiver, changed, self._replay.ended(record))


def _status(error: BaseException) -> str:
    if isinstance(error, UncertainEffect):
        return "uncertain"
    if isinstance(error, Suspended):
        return "suspended"
    if isinstance(error, ReplayDivergence):
        return "diverged"
    return "failed" if isinstance(error, Exception) else "interrupted"


def _other_step(run: Run, form: Form[Any], instead: str) -> str:
    return (
        f"the run `{run.run_id}` does not go on as it began: at the step `{instead}` there is now `{form.step_id}` "
        f"(`{form.name}`). Resume it with the program that it was begun with, or make a run of what both share: "
        f"`effectful-agents fork {run.run_id} --at {instead}{run.place}`."
    )
