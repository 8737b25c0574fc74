"""The events of calls as the records that a journal would have of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from effectful_agents.operations.records import Phase, Record, RunState
from effectful_agents.operations.steps import DelegateStep, ModelStep, StepEvent, ToolStep, make_step_id
from effectful_agents.tracebacks import summary

__all__ = ["records_of"]


def records_of(events: Iterable[StepEvent]) -> RunState:
    """The steps of calls, as far as prompts and their costs need them.

    Outside of a run each call counts its steps from 1, so the calls are told apart by their order, as in a run.
    """
    taker = _Taker()
    records = [record for event in events if (record := taker.record(event)) is not None]
    return RunState(records[0].run_id if records else "", records)


class _Taker:
    """Takes events in order."""

    def __init__(self) -> None:
        self._call = 1
        self._seen: set[str] = set()
        self._latest: dict[str, tuple[str, list[Any], dict[str, Any]]] = {}

    def record(self, event: StepEvent) -> Record | None:
        """The record of an event; None for one that has nothing to do with prompts."""
        kind = {ModelStep: "model", DelegateStep: "delegate", ToolStep: "tool"}.get(type(event))
        if kind is None:
            return None
        body: Mapping[str, Any] = {}
        step_id = self._step_id(event)
        if isinstance(event, ModelStep):
            body = self._asked(step_id, event) if event.phase is Phase.ATTEMPTED else _came(event)
        return Record(
            run_id=event.run_id,
            step_id=step_id,
            attempt=event.attempt,
            phase=event.phase,
            kind=kind,
            name=event.skill.__name__,
            body=body,
        )

    def _step_id(self, event: StepEvent) -> str:
        if event.run_id:
            return event.step_id
        if event.phase is Phase.ATTEMPTED:
            if event.step_id in self._seen:
                self._call, self._seen = self._call + 1, set()
            self._seen.add(event.step_id)
        return f"{make_step_id(self._call, 'call')}/{event.step_id}"

    def _asked(self, step_id: str, event: ModelStep) -> dict[str, Any]:
        request: dict[str, Any] = {name: value for name, value in event.request.items() if value is not None}
        messages = list(request.pop("messages", ()))
        call = step_id.rpartition("/")[0]
        base, before, rest = self._latest.get(call) or self._like(messages) or (None, [], {})
        keep = _agreeing(before, messages)
        self._latest[call] = self._latest[""] = (step_id, messages, request)
        body: dict[str, Any] = {"messages": messages[keep:], "set": request} | {
            "unset": [name for name in rest if name not in request]
        }
        if base is not None:
            body |= {"base": base, "keep": keep}
            body["set"] = {name: value for name, value in request.items() if rest.get(name) != value}
        if "model" in request:
            body["model"] = request["model"]
        return body

    def _like(self, messages: list[Any]) -> tuple[str, list[Any], dict[str, Any]] | None:
        """The latest request of all, where it begins alike."""
        latest = self._latest.get("")
        return latest if latest is not None and latest[1][:1] == messages[:1] else None


def _agreeing(ones: list[Any], others: list[Any]) -> int:
    length = min(len(ones), len(others))
    if ones[:length] == others[:length]:  # the usual case, and quick: they are the same objects
        return length
    return next(place for place in range(length) if ones[place] != others[place])


def _came(event: ModelStep) -> dict[str, Any]:
    if event.response is not None:
        return {"response": event.response}
    return {} if event.error is None else {"error": {"text": summary(event.error)}}
