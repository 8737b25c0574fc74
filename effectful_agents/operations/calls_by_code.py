"""Tools that code calls, of the program or of a model: each call is decided about before it is made."""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import logging
import threading
import weakref
from collections.abc import Generator
from typing import Any

from effectful_agents.errors import StepDenied
from effectful_agents.operations.authority import authorize
from effectful_agents.operations.code import arguments_from_code
from effectful_agents.operations.effects import arguments_by_name, bound_to, effect_of_call, effect_of_code
from effectful_agents.operations.journal import attempt_of, record
from effectful_agents.operations.policy import (
    Decision,
    Disposition,
    ProposedEffect,
    callers,
    is_decided,
    same_objects,
)
from effectful_agents.operations.steps import StepIds, current_ids
from effectful_agents.runtime import interpretation
from effectful_agents.types import Tool

__all__ = ["authorize_code", "carrying_out"]

_log = logging.getLogger(__name__)

_carried_out: contextvars.ContextVar[list[Tool]] = contextvars.ContextVar("effectful_agents_carried_out")
"""The tool whose call has been decided about and that is about to be called; empty once it was."""


@contextlib.contextmanager
def carrying_out(tool: Tool) -> Generator[None]:
    """Where a tool is called once because a model called it, which has been decided about."""
    token = _carried_out.set([tool])
    code = _code_allowed.set(len(callers()) if tool.runs_code else None)
    try:
        with _at_work if is_decided() else contextlib.nullcontext():
            yield
    finally:
        _code_allowed.reset(code)
        _carried_out.reset(token)


class _AtWork:
    """How many tools are at work, in the whole process, whose calls were decided about.

    A plain thread that one of them starts has left its handlers behind, and cannot be told from a thread of the
    program's own. So what it calls is not refused, but told.
    """

    def __init__(self) -> None:
        self._changing = threading.Lock()
        self._count = 0
        self._told: weakref.WeakSet[Tool] = weakref.WeakSet()

    def __enter__(self) -> None:
        with self._changing:
            self._count += 1

    def __exit__(self, *_: object) -> None:
        with self._changing:
            self._count -= 1

    def tell_of(self, tool: Tool) -> None:
        """Log, once for each tool, that it is called where no handlers are, if that may be what has happened."""
        if not self._count or interpretation() or threading.current_thread() is threading.main_thread():
            return
        function = tool.function
        with self._changing:
            if function in self._told:
                return
            self._told.add(function)
        _log.warning(
            "`%s` is called in the thread `%s`, which has no handlers, while a tool is at work that policies decided "
            "about. If that tool has started the thread, nobody decides about this call: wrap what the thread runs in "
            "`effectful_agents.propagate`.",
            *(tool.own_name, threading.current_thread().name),
        )


_at_work = _AtWork()


_code_allowed: contextvars.ContextVar[int | None] = contextvars.ContextVar(
    "effectful_agents_code_allowed", default=None
)
"""How many calls the code is in that has been decided about and runs; None where none does."""


@contextlib.contextmanager
def authorize_code() -> Generator[None]:
    """Where code of a model is run: ask about it, unless it runs because a tool call was decided about.

    Code runs before that where a model wrote it as an argument, or as an answer.

    Raises:
        StepDenied: It may not run.
    """
    inside = len(callers())
    if not is_decided() or _code_allowed.get() == inside:
        yield
        return
    authorize(effect_of_code())
    token = _code_allowed.set(inside)
    try:
        yield
    finally:
        _code_allowed.reset(token)


def _is_carried_out(tool: Tool) -> bool:
    left = _carried_out.get([])
    if tool not in left:
        return False
    left.clear()
    return True


def _before_call(tool: Tool, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What a tool is to be called with, if it may be.

    Raises:
        StepDenied: It may not be called.
        Denied: It may not, and the call in which it would be ends.
    """
    if _is_carried_out(tool):
        return args, kwargs
    ids = current_ids()
    if not is_decided() and (ids is None or not ids.run_id):
        _at_work.tell_of(tool)
        return args, kwargs
    if tool.skill is not None and not callers():  # a call of the program's: what it does is asked about
        return args, kwargs
    place = None if ids is None else _Place(ids, "tool" if tool.skill is None else "call")
    if place is not None and place.was_denied:
        raise place.denied(StepDenied(Decision(Disposition.DENY_STEP)))
    if not is_decided():
        return args, kwargs
    asked = tool.arguments_of(*args, **kwargs)
    bound = arguments_from_code(tool, asked)
    effect = effect_of_call(tool, bound, by_code=True)
    if place is not None:
        effect = place.of(effect)
    try:
        effect = authorize(effect)
    except StepDenied as error:
        raise error if place is None else place.denied(error) from None
    if same_objects(effect.arguments, arguments_by_name(asked)):
        return args, kwargs
    bound = bound_to(bound.signature, effect.arguments)
    return bound.args, bound.kwargs


Tool.before_call = _before_call


class _Place:
    """Where a call by code is among the steps of its run, and whether it was denied there.

    A denial that the program survived is written down. So a run that is resumed goes on in the same way, whatever has
    become of the policies meanwhile.
    """

    def __init__(self, ids: StepIds, kind: str) -> None:
        self._ids = ids
        self._kind = kind
        # Others may call tools at the same time, while somebody is asked about this one.
        self._step_id = ids.reserve(kind) if ids.run_id else ids.coming(kind)
        self._denial = StepIds(prefix=f"{self._step_id}/denied/", run_id=ids.run_id)

    @property
    def was_denied(self) -> bool:
        return attempt_of(self._denial.coming("record"))[1]

    def of(self, effect: ProposedEffect) -> ProposedEffect:
        replayed = attempt_of(self._step_id)[1]
        return dataclasses.replace(effect, step_id=self._step_id, run_id=self._ids.run_id, replayed=replayed)

    def denied(self, error: StepDenied) -> Exception:
        """The error to raise: this one, or what was raised before."""

        def deny() -> None:
            raise error

        self._ids.next(self._kind)
        try:
            with self._denial:
                record(deny)
        except Exception as raised:
            return raised
        return error
