"""One run: its journal while it is written, and what is answered from it."""

from __future__ import annotations

import contextlib
import contextvars
import threading
import time
from collections.abc import Callable, Coroutine, Generator
from types import TracebackType
from typing import Any, Self

from effectful_agents.errors import (
    AgentsError,
    Denied,
    EncodingError,
    JournalError,
    ReplayDivergence,
    UncertainEffect,
)
from effectful_agents.handlers.durability.forms import Form
from effectful_agents.handlers.durability.receivers import Attributes, restore
from effectful_agents.handlers.durability.replay import Known, Outcome, Replay
from effectful_agents.handlers.durability.requests import RequestLog, difference
from effectful_agents.operations.records import SCHEMA, Checkpointer, Durability, Lease, Phase, Record, RunStore
from effectful_agents.operations.steps import StepIds
from effectful_agents.tracebacks import summary
from effectful_agents.types import Tool

__all__ = ["Pending", "Run"]

_ENDS = (JournalError, ReplayDivergence, UncertainEffect)
"""What is not the result of a step, but the end of the run: whoever eats it gets it again at the next step."""


class Run:
    """A run that goes on in this process.

    Args:
        run_id: Its name.
        checkpointer: What keeps its journal.
        owner: The handler that it belongs to.

    Attributes:
        root: Gives the calls that the program makes their places.
        requests: Writes requests down.
        finished: Whether it had come to its end before.
    """

    def __init__(self, run_id: str, checkpointer: Checkpointer, owner: Any) -> None:
        self.run_id = run_id
        self.owner = owner
        self.root = StepIds(run_id=run_id)
        self.requests = RequestLog()
        self.finished = False
        self._checkpointer = checkpointer
        self._lease: Lease | None = None
        self._waiting: list[Record] = []
        self._writing = threading.RLock()
        self._ended_by: BaseException | None = None

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
            self._close("finished" if self._ended_by is None else _status(self._ended_by), self._ended_by)
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
        if not self.finished:
            self._write_about_run(Phase.ATTEMPTED)

    def _close(self, status: str, error: BaseException | None) -> None:
        if self.finished:
            return
        body = {"status": status} | ({"error": summary(error)} if error is not None else {})
        try:
            self._write_about_run(Phase.COMPLETED, body)
        except JournalError:
            if error is None:
                raise
            # The run is as if the process had ended here, and the first error tells more.

    def _write_about_run(self, phase: Phase, body: dict[str, Any] | None = None) -> None:
        self.write(
            Record(
                run_id=self.run_id,
                step_id="",
                attempt=self._opening,
                phase=phase,
                kind="run",
                body=body or {},
                at=time.time(),
            )
        )

    def write(self, record: Record) -> None:
        """Keep a record; one that can wait is kept together with the next that cannot."""
        with self._writing:
            self._waiting.append(record)
            if record.durability is Durability.DURABLE:
                (self._lease or self._checkpointer).append(*self._waiting)
                self._waiting.clear()

    # --- steps --------------------------------------------------------------------------------------------------------

    def attempt_of(self, step_id: str) -> tuple[int, bool] | None:
        """Which attempt of a step comes now, and whether it is answered from the journal; None where it is new."""
        known = self._replay.of(step_id)
        if known.record is None:
            return None
        return known.attempt + (known.outcome is Outcome.UNCERTAIN), known.outcome is Outcome.DONE

    def recorded(self, form: Form[Any]) -> Record | None:
        """What was recorded as the result of a call, if it can be had without making the call.

        It cannot where the call changed objects of the program, which it has to change again.
        """
        known = self._known(form)
        done = known.outcome is Outcome.DONE and known.record is not None and "value" in known.record.body
        return known.record if done and not self._replay.changes_program(form.step_id) else None

    def make[R](self, form: Form[R], body: Callable[[], R], ids: StepIds | None = None) -> R:
        """Make a step, or answer it from the journal.

        Args:
            form: The step.
            body: Makes it.
            ids: Where what it does inside gets its identifiers from, unless the body sees to it.
        """
        pending = Pending(self, form)
        if pending.is_answered:
            return pending.answer()
        with pending, ids or contextlib.nullcontext():
            result = body()
        return pending.completed(result)

    async def make_awaited(self, form: Form[Any], coroutine: Coroutine[Any, Any, Any], ids: StepIds) -> Any:
        """As `make`, for what is awaited."""
        with contextlib.closing(coroutine):
            pending = Pending(self, form)
            if pending.is_answered:
                return pending.answer()
            with pending, ids:
                result = await coroutine
            return pending.completed(result)

    def _known(self, form: Form[Any]) -> Known:
        """What the journal knows of a step.

        Raises:
            ReplayDivergence: It was another step.
        """
        if self._ended_by is not None:
            raise self._ended_by
        known = self._replay.of(form.step_id)
        if known.asked is None:
            instead = self._replay.instead(form.step_id)
            if instead is not None:
                raise self.ended(ReplayDivergence(_other_step(self.run_id, form, instead)))
            return known
        where = form.differs(self._replay.state, known.asked)
        if where or known.asked.digest != form.digest or known.asked.name != form.name:
            where = where or difference(known.asked.name, form.name, "what is called") or "what is asked is different"
            raise self.ended(
                ReplayDivergence(
                    f"the run `{self.run_id}` does not go on as it began: at the step `{form.step_id}`, {where}. "
                    "Resume it with the program that it was begun with, or make a run of what both share: "
                    f"`effectful-agents fork {self.run_id} --at {form.step_id}`."
                )
            )
        return known

    def ended[E: BaseException](self, error: E) -> E:
        """Have the run end with an error, whoever eats it."""
        self._ended_by = self._ended_by or error
        return error

    def is_last(self, record: Record) -> bool:
        """Whether the run stopped at a step."""
        return self._replay.is_last(record)


_pending: contextvars.ContextVar[Pending | None] = contextvars.ContextVar("effectful_agents_pending", default=None)
"""The step in which the code is."""


class Pending:
    """A step that is about to be made, or answered. A context manager, around what makes it.

    Args:
        run: The run.
        form: The step.

    Raises:
        UncertainEffect: It may have happened, and must not happen again.
        ReplayDivergence: The run had another step here.
    """

    def __init__(self, run: Run, form: Form[Any]) -> None:
        self._run = run
        self._form = form
        self._known = run._known(form)
        self._entered_own = False
        self._again = False
        self._outer: Pending | None = None
        record = self._known.record
        self._attempt = self._known.attempt
        self.is_answered = False
        if self._known.outcome is Outcome.DONE and record is not None:
            failed = "error" in record.body and "settled" not in record.body
            if failed and form.repeatable and run.is_last(record):
                self._attempt += 1  # the run ended with it: now it may go better
            else:
                self.is_answered = not (form.again or record.body.get("again"))
                self._is_replayed = True
        elif self._known.outcome is Outcome.UNCERTAIN and not form.again:
            if not form.repeatable:
                raise run.ended(UncertainEffect(form.step_id, detail=_how_to_settle(run, form)))
            self._attempt += 1

    _is_replayed = False

    # --- from the journal ---------------------------------------------------------------------------------------------

    def answer(self) -> Any:
        """What came of it before."""
        body = self._body()
        if "error" in body and "settled" not in body:
            raise self._form.error(body["error"])
        if "self" in body:
            restore(self._form.receiver, body["self"])
        try:
            return self._form.result(body)
        except ValueError as error:
            raise self._run.ended(
                JournalError(
                    f"what is recorded for the step `{self._form.step_id}` of `{self._form.name}` cannot be read any "
                    f"more: {error}. Has the type of its result changed?"
                )
            ) from error

    def _body(self) -> Any:
        assert self._known.record is not None
        return self._known.record.body

    # --- made now -----------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        if not self._is_replayed:
            again = {"again": True} if self._form.again and self._form.kind == "tool" else {}
            self._write(Phase.ATTEMPTED, {**self._form.asked, **again}, self._form.digest)
        receiver = None if self._form.again or self._is_replayed else self._form.receiver
        self._attributes = Attributes(receiver)
        self._outer = _pending.get()
        _pending.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _pending.set(self._outer)
        if isinstance(error, _ENDS):
            self._run.ended(error)
        # A signal is no result, and neither is what only comes through from a step inside.
        elif isinstance(error, Exception) and not self._is_replayed and not self._form.again:
            self._failed(error)

    def _failed(self, error: Exception) -> None:
        body = {"denied": summary(error)} if isinstance(error, Denied) else {"error": self._form.raised(error)}
        self._write(Phase.COMPLETED, body)

    def completed(self, result: Any) -> Any:
        """Write down what came of it, and give it as it will be given again."""
        if self._is_replayed:
            return self._compared(result)
        try:
            body = self._form.came(result)
        except EncodingError as error:
            self._failed(error)
            raise
        changes = self._attributes.changes()
        if self._again or changes is None or (self._form.again and self._form.kind == "tool"):
            body["again"] = True
        elif changes:
            body["self"] = changes
        self._write(Phase.COMPLETED, body)
        keeps_own = self._form.again or body.get("again") or "value" not in body
        return result if keeps_own else self._form.result(body)

    def _compared(self, result: Any) -> Any:
        """What was recorded, where it was made again for what it changes; that it came to the same is checked."""
        body = self._body()
        if self._form.kind == "call":
            return self._same_value(result, body)
        if "value" not in body and "message" not in body:
            return result
        try:
            recorded = self._form.result(body)
        except AgentsError:
            return result
        if body.get("final") and "value" not in body:
            return result
        return recorded

    def _same_value(self, result: Any, body: Any) -> Any:
        if "value" in body and self._form.came(result)["value"] != body["value"]:
            raise self._run.ended(
                ReplayDivergence(
                    f"the call `{self._form.name}` of the run `{self._run.run_id}` came to another value than before."
                )
            )
        return result

    def _write(self, phase: Phase, body: dict[str, Any], digest: str = "") -> None:
        form = self._form
        try:
            self._run.write(
                Record(
                    run_id=self._run.run_id,
                    step_id=form.step_id,
                    attempt=self._attempt,
                    phase=phase,
                    kind=form.kind,
                    name=form.name,
                    digest=digest,
                    body=body,
                    durability=form.durability,
                    at=time.time(),
                )
            )
        except JournalError as error:
            self._run.ended(error)
            raise

    # --- what the code in it asks -------------------------------------------------------------------------------------

    @staticmethod
    def is_own(tool: Tool) -> bool:
        """Whether a tool is called because it is what the step consists of; true once a step."""
        here = _pending.get()
        if here is None or here._entered_own or here._form.tool != tool:
            return False
        here._entered_own = True
        return True

    @staticmethod
    def changes_program() -> None:
        """Have the steps in which the code is be made again: an agent was called in them, and remembers that."""
        here = _pending.get()
        while here is not None:
            here._again = True
            here = here._outer


def _status(error: BaseException) -> str:
    if isinstance(error, UncertainEffect):
        return "uncertain"
    if isinstance(error, ReplayDivergence):
        return "diverged"
    return "failed" if isinstance(error, Exception) else "interrupted"


def _other_step(run_id: str, form: Form[Any], instead: str) -> str:
    return (
        f"the run `{run_id}` does not go on as it began: at the step `{instead}` there is now `{form.step_id}` "
        f"(`{form.name}`). Resume it with the program that it was begun with, or make a run of what both share: "
        f"`effectful-agents fork {run_id} --at {instead}`."
    )


def _how_to_settle(run: Run, form: Form[Any]) -> str:
    return (
        f"It is a call of `{form.name}`, which is not declared `idempotent`. Find out, then say so: `effectful-agents "
        f"runs settle {run.run_id} {form.step_id}` with `--done VALUE`, `--redo` or `--fail`."
    )
