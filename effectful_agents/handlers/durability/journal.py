"""Runs that survive the process: every step is written down before and after, and never made twice."""

from __future__ import annotations

import contextlib
import contextvars
import inspect
import os
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

from effectful_agents.errors import ConfigurationError
from effectful_agents.handlers.durability.forms import CallForm, DirectForm, RecordForm, form_of
from effectful_agents.handlers.durability.kept_agents import LoadForm, SaveForm
from effectful_agents.handlers.durability.pending import Pending
from effectful_agents.handlers.durability.run import Run
from effectful_agents.handlers.durability.sqlite_checkpointer import SqliteCheckpointer
from effectful_agents.operations.history import conversation, load_state, save_state
from effectful_agents.operations.journal import attempt_of, not_made_again, perform_step, record, recorded_below
from effectful_agents.operations.loop import call_agent
from effectful_agents.operations.records import SCHEMA, Checkpointer, Record
from effectful_agents.operations.steps import StepEvent, current_ids
from effectful_agents.operations.world import fresh_id
from effectful_agents.runtime import ObjectInterpretation, fwd, implements
from effectful_agents.types import Agent, Skill, Tool

__all__ = ["Journal"]

_run: contextvars.ContextVar[Run | None] = contextvars.ContextVar("effectful_agents_run", default=None)
"""The run that the code is in."""


class Journal(ObjectInterpretation[Any, Any]):
    """Make what happens in the block a run, which can be resumed: nothing in it is paid or done twice.

    Requests to models, tool calls and `record`ed values are written down, as attempted and then as completed. The same
    program with the same `run_id` goes on where it stopped: what was completed is answered from the journal, in order,
    and what was not is made. A step that was attempted, and of which nobody knows what came, is made again if that does
    no harm (a request to a model, a tool that is `idempotent`); any other raises `UncertainEffect` until somebody
    settles it.

    Code that changes objects of the program is run again: snippets and bodies that a model wrote, skills called as
    tools, tools in which an agent is called or that are declared `rerun=True`. The steps inside them are answered from
    the journal. What a method that is a tool changes about its object is written down, and changed again.

    A run that has come to its end gives its values at once. Calls that the program makes itself have to come in the
    same order; those of several tasks do if they are begun in order.

    Args:
        run_id: The run; None for a new one, whose name is then in `run_id`.
        checkpointer: What keeps the journal: a path of a SQLite file, or a `Checkpointer`.

    Attributes:
        run_id: The run; None while the block has not been entered and none was given.

    Raises:
        ConfigurationError: `run_id` is empty, or `checkpointer` cannot keep a journal.
        RunInUse: On entering the block: another process, or another block, has the run.
        JournalError: The journal cannot be written or read.
        ReplayDivergence: From a call: the program asks something else than what was recorded.
        UncertainEffect: From a call: see above.

    >>> from effectful_agents import NotHandled, Skill, handler, harness
    >>> from effectful_agents.handlers.durability import MemoryCheckpointer
    >>> from effectful_agents.testing import ScriptedModel
    >>> @Skill.define
    ... def limerick(theme: str) -> str:
    ...     '''Write a limerick about {theme}.'''
    ...     raise NotHandled
    >>> store = MemoryCheckpointer()
    >>> with handler(harness()), handler(ScriptedModel("There was a young man…")):
    ...     with handler(Journal("monday", store)):
    ...         limerick("youth")
    'There was a young man…'
    >>> with handler(harness()), handler(ScriptedModel()), handler(Journal("monday", store)):
    ...     limerick("youth")
    'There was a young man…'
    """

    def __init__(self, run_id: str | None, checkpointer: Checkpointer | str | os.PathLike[str]) -> None:
        if run_id is not None and not (isinstance(run_id, str) and run_id):
            raise ConfigurationError(f"`run_id` is {run_id!r}; it is a name, or None for a new one.")
        if isinstance(checkpointer, str | os.PathLike):
            checkpointer = SqliteCheckpointer(checkpointer)
        if not isinstance(checkpointer, Checkpointer):
            raise ConfigurationError(
                f"`checkpointer` (`journal` of `harness`) is {type(checkpointer).__name__}; give the path of a file, "
                "or an object with `append` and `load`."
            )
        self.run_id = run_id
        self.checkpointer = checkpointer
        self._names_run = run_id is None

    def manifest(self) -> Mapping[str, object]:
        """What the manifest of a stack says of it."""
        return {"stages": ["run.journal"], "versions": {"journal": str(SCHEMA)}}

    @contextlib.contextmanager
    def while_installed(self) -> Generator[None]:
        # What is a run: from here to the end of the block. A block inside of it with the same journal goes on with it.
        outer = _run.get()
        if outer is not None and outer.owner is self:
            yield
            return
        if self._names_run:
            self.run_id = fresh_id()
        assert self.run_id is not None
        run = Run(self.run_id, self.checkpointer, self)
        _run.set(run)
        try:
            with run.opened(), run.root:
                yield
        finally:
            _run.set(outer)

    def _running(self) -> Run | None:
        """The run; None where another journal inside of this one has the code, as a run of its own."""
        run = _run.get()
        if run is None:
            raise ConfigurationError(
                "a journal is written in the block of `with handler(Journal(…))`, with the `handler` of "
                "`effectful_agents`; this code is outside of it."
            )
        return run if run.owner is self else None

    @implements(perform_step)
    def perform_step(self, step: StepEvent, body: Callable[[], Any]) -> Any:
        run = self._running()
        return fwd() if run is None else run.make(form_of(step, run.requests), fwd)

    @implements(attempt_of)
    def attempt_of(self, step_id: str) -> tuple[int, bool]:
        run = self._running()
        known = None if run is None else run.attempt_of(step_id)
        return fwd() if known is None else known

    @implements(not_made_again)
    def not_made_again(self) -> str:
        return (Pending.not_made_again() if self._running() is not None else "") or fwd()

    @implements(recorded_below)
    def recorded_below(self, step_id: str) -> Sequence[Record]:
        run = self._running()
        return (() if run is None else run.recorded_below(step_id)) or fwd()

    @implements(call_agent)
    def call_agent(self, skill: Skill, /, *args: Any, **kwargs: Any) -> Any:
        run, ids = self._running(), current_ids()
        if run is None:
            return fwd()
        if ids is not run.root:
            value = fwd()
            if _remembers(skill):
                Pending.changes_program()
            return value
        form = CallForm(ids.next("call"), skill, args, kwargs)
        if run.finished and skill.agent is None and (found := run.recorded(form)):
            run.tell_used_below(form.step_id)
            return run.result_of(form, found.body)

        def make() -> Any:
            with ids.opening(form.step_id):
                return fwd()

        return run.make(form, make)

    @implements(Tool.__apply__)
    def call_directly(self, tool: Tool, /, *args: Any, **kwargs: Any) -> Any:
        # By code: what the model calls is a step already.
        run, ids = self._running(), current_ids()
        if run is None or ids is None or tool.skill is not None or Pending.is_own(tool):
            return fwd()
        form = DirectForm(ids.next("tool"), tool, args, kwargs)
        below = ids.below(form.step_id)
        return run.make_awaited(form, fwd(), below) if tool.is_async else run.make(form, fwd, below)

    @implements(load_state)
    def load_state(self, agent: Agent) -> None:
        run, ids = self._running(), current_ids()
        if run is None or ids is None or not agent.__persistent__ or run.kept.is_saving(agent):
            return fwd()
        form = LoadForm(ids.next("record"), agent, run.kept)
        return run.make(form, lambda: run.kept.load(agent, fwd), ids.below(form.step_id))

    @implements(save_state)
    def save_state(self, agent: Agent, mark: str = "") -> None:
        run, ids = self._running(), current_ids()
        if run is None or ids is None or not agent.__persistent__:
            return fwd()
        form = SaveForm(ids.next("record"), agent, run.kept)

        def save() -> None:
            run.kept.save(agent, lambda: fwd(agent, mark or run.kept.mark(form.step_id, self.checkpointer, run.run_id)))

        return run.make(form, save, ids.below(form.step_id))

    @implements(record)
    def record(self, fn: Callable[[], Any], tp: Any = None) -> Any:
        run, ids = self._running(), current_ids()
        if run is None or ids is None:
            return fwd()
        name, kind = getattr(fn, "__name__", ""), _type_of(fn) if tp is None else tp
        form = RecordForm(ids.next("record"), name, kind, is_identifier=fn is fresh_id)
        below = ids.below(form.step_id)
        if inspect.iscoroutinefunction(fn):
            return run.make_awaited(form, fwd(), below)
        return run.make(form, fwd, below)


def _remembers(skill: Skill) -> bool:
    """Whether a call of a skill, that was made, is in a history that is kept."""
    return skill.agent is not None and not getattr(conversation(skill), "passing", False)


def _type_of(fn: Callable[..., Any]) -> Any:
    """What a function is annotated to return, where that can be read."""
    try:
        annotation = inspect.signature(fn, eval_str=True).return_annotation
    except Exception:  # a builtin has no signature, and an annotation may be anything
        return Any
    return Any if annotation is inspect.Signature.empty else annotation
