"""A step of a run on its way: answered from the journal, or made and written down."""

from __future__ import annotations

import contextvars
import dataclasses
import logging
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from effectful_agents.errors import (
    Denied,
    EncodingError,
    JournalError,
    ReplayDivergence,
    Suspended,
    UncertainEffect,
)
from effectful_agents.handlers.durability.forms import Form
from effectful_agents.handlers.durability.receivers import Attributes
from effectful_agents.handlers.durability.replay import Outcome
from effectful_agents.operations.records import Phase
from effectful_agents.operations.steps import StepEvent
from effectful_agents.tracebacks import summary
from effectful_agents.types import Tool

if TYPE_CHECKING:
    from effectful_agents.handlers.durability.run import Run

__all__ = ["Pending"]

_log = logging.getLogger(__name__)

_ENDS = (JournalError, ReplayDivergence, UncertainEffect)
"""What is not the result of a step, but the end of the run: whoever eats it gets it again at the next step."""


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
        self._known = run.known(form)
        self._entered_own = False
        self._again = False
        self._is_open = False
        self._outer: Pending | None = None
        self._attempt = self._known.attempt
        self._is_replayed = self._known.outcome is Outcome.DONE
        self.is_answered = self._is_replayed and (
            "not made" in self._body() or not (form.again or self._body().get("again"))
        )
        if self._known.outcome is Outcome.UNCERTAIN and not (form.again or form.goes_on):
            if not form.repeatable:
                raise run.ended(UncertainEffect(form.step_id, detail=_how_to_settle(run, form)))
            self._attempt += 1

    # --- from the journal ---------------------------------------------------------------------------------------------

    def answer(self) -> Any:
        """What came of it before."""
        body = self._body()
        if "unwritten" in body:
            raise self._run.ended(JournalError(_how_to_change(self._run, self._form, body["unwritten"])))
        if "self" in body or "unwritten" in body:
            _come_back_for_it(_pending.get())
        if "self" in body and self._known.record is not None:
            self._run.restore(self._form.receiver, body["self"], self._known.record)
        if "error" in body and "settled" not in body:
            raise self._form.error(body["error"])
        return _replayed(self._run.result_of(self._form, body))

    def _body(self) -> Any:
        assert self._known.record is not None
        return self._known.record.body

    # --- made now -----------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        if not self._is_replayed:
            # Nobody has to say what came of such a tool call: the resumed run comes back to it.
            back = "again" if self._form.again else "goes on" if self._form.goes_on else ""
            again = {back: True} if back and self._form.kind == "tool" else {}
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
        # What kept a person from being asked is no answer of theirs, and what goes on without one is no result.
        if isinstance(error, _ENDS) or (isinstance(error, Exception) and self._form.kind == "approval"):
            self._run.ended(error)
            self._leave_open()
        elif isinstance(error, Suspended):
            self._run.suspended(error)
        # A signal is no result, and neither is what only comes through from a step inside.
        elif isinstance(error, Exception) and not (self._is_replayed or self._is_made_again or self._is_open):
            self._failed(error)

    @property
    def _is_made_again(self) -> bool:
        """Whether a resumed run comes back into it where it has failed."""
        return self._form.again or self._form.goes_on

    def _leave_open(self) -> None:
        """Have the steps in which the code is write down no result, whatever they make of what ends the run."""
        here: Pending | None = self
        while here is not None:
            here._is_open = True
            here = here._outer

    def _failed(self, error: Exception) -> None:
        body = {"denied": summary(error)} if isinstance(error, Denied) else {"error": self._form.raised(error)}
        self._write(Phase.COMPLETED, body | self._changed())

    def _changed(self) -> dict[str, Any]:
        """What the step has changed about objects of the program, or that it has to be made again for that."""
        changes = self._attributes.changes()
        unwritable = self._attributes.unwritable
        if changes or unwritable:
            _come_back_for_it(self._outer)
        if self._again or (unwritable and self._form.repeatable) or (self._form.again and self._form.kind == "tool"):
            _come_back_for_it(self._outer)
            return {"again": True}
        whole = {"whole": True} if self._form.kind == "delegate" and not self._form.again else {}
        return whole | ({"unwritten": unwritable} if unwritable else {}) | ({"self": changes} if changes else {})

    def completed(self, result: Any) -> Any:
        """Write down what came of it, and give it as it will be given again."""
        if self._is_open:
            self._run.check()
        if self._is_replayed:
            _come_back_for_it(self._outer)
            return self._compared(result)
        try:
            body = self._form.came(result) | self._changed()
        except EncodingError as error:
            if not self._form.keeps_silent:
                self._failed(error)
                raise
            _log.warning(
                "what came of `%s` at the step `%s` cannot be written down, and a resumed run will ask for it: %s",
                *(self._form.name, self._form.step_id, error),
            )
            return result
        self._write(Phase.COMPLETED, body)
        keeps_own = self._form.again or body.get("again") or "value" not in body
        return result if keeps_own else self._form.result(body)

    def _compared(self, result: Any) -> Any:
        """What was recorded, where it was made again for what it changes; that it came to the same is checked.

        The model, and what comes after, go on with what was recorded: the time, say, may be printed otherwise now.
        """
        form, body = self._form, self._body()
        failed = isinstance(result, StepEvent) and result.error is not None
        same = failed == ("told" in body)
        if form.kind == "call" and "value" in body:
            same = form.came(result).get("value") == body["value"]
        if not same:
            raise self._run.ended(
                ReplayDivergence(
                    f"the step `{form.step_id}` (`{form.name}`) of the run `{self._run.run_id}` was made again, for "
                    "what it changes, and came to something else than before."
                )
            )
        has_result = "message" in body or ("value" in body and form.kind != "call")
        if not has_result or (body.get("final") and "value" not in body):
            return result
        return _replayed(self._run.result_of(form, body))

    def _write(self, phase: Phase, body: dict[str, Any], digest: str = "") -> None:
        form = self._form
        try:
            self._run.write(
                phase=phase,
                kind=form.kind,
                step_id=form.step_id,
                attempt=self._attempt,
                name=form.name,
                digest=digest,
                body=body,
                durability=form.durability,
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
    def not_made_again() -> str:
        """The tool in which the code is and that may not be called again, by name."""
        here = _pending.get()
        while here is not None:
            form = here._form
            if form.kind == "tool" and not (form.again or form.goes_on or form.repeatable):
                return form.name
            here = here._outer
        return ""

    @staticmethod
    def changes_program() -> None:
        """Have the steps in which the code is be made again: an agent was called in them, and remembers that."""
        here = _pending.get()
        while here is not None:
            here._again = True
            here = here._outer


def _come_back_for_it(here: Pending | None) -> None:
    """Have the delegates that a step is in be gone through again, though they have ended: it has changed objects."""
    while here is not None:
        here._again = here._again or (here._form.goes_on and not here._form.again)
        here = here._outer


def _replayed(result: Any) -> Any:
    return dataclasses.replace(result, replayed=True) if isinstance(result, StepEvent) else result


def _how_to_change(run: Run, form: Form[Any], names: Sequence[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in names)
    return (
        f"the run `{run.run_id}` cannot go on after the step `{form.step_id}`: `{form.name}` gave its object the "
        f"attribute {shown}, which cannot be written down, and is not called again since it is not declared "
        "`idempotent`. Make the attribute before the tool is called, or its effect in a tool that is no method; or "
        "declare the tool `rerun=True`, if to call it again does no harm."
    )


def _how_to_settle(run: Run, form: Form[Any]) -> str:
    return (
        f"It is a call of `{form.name}`, which is not declared `idempotent`. Find out, then say so: `effectful-agents "
        f"runs settle {run.run_id} {form.step_id}{run.place}` with `--done VALUE`, `--redo` or `--fail`."
    )
