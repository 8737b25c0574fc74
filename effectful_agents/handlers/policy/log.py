"""Keeping what was decided."""

from __future__ import annotations

import dataclasses
import json
import logging
from collections.abc import Callable, Sequence
from typing import Any

from effectful_agents.handlers.policy.rules.options import plain_function
from effectful_agents.operations.policy import DecisionRecord, decided
from effectful_agents.runtime import ObjectInterpretation, fwd, implements

__all__ = ["DecisionLog"]

_log = logging.getLogger(__name__)


class DecisionLog(ObjectInterpretation[Any, Any]):
    """Keep every decision about an effect: who asked for what, by which rule it was decided, and when.

    Arguments are kept as they were then, requests to models are not.

    Effects are decided about where a policy is installed; without one there is nothing to keep. Of a run that is
    resumed, what it does again from its journal is not decided again.

    Args:
        sink: Gets each record as well, from whichever thread it comes. If it raises, that is logged, and what was
            decided stands.

    >>> from effectful_agents import NotHandled, Skill, Tool, handler, harness
    >>> from effectful_agents.handlers.policy import GrantEffects
    >>> from effectful_agents.testing import ScriptedModel, calls
    >>> @Tool.define
    ... def send(text: str) -> str:
    ...     '''Send a mail.'''
    ...     return "sent"
    >>> @Skill.define
    ... def inform(topic: str) -> str:
    ...     '''Inform everybody of {topic}.'''
    ...     raise NotHandled
    >>> log = DecisionLog()
    >>> with handler(harness()), handler(ScriptedModel(calls("send", text="Hi"), "I could not.")):
    ...     with handler(GrantEffects("model_call")), handler(log):
    ...         inform("lunch")
    'I could not.'
    >>> [(record.effect.kind.value, record.decision.rule) for record in log.records]
    [('model_call', ''), ('tool_call', 'grants'), ('model_call', '')]
    """

    def __init__(self, sink: Callable[[DecisionRecord], None] | None = None) -> None:
        if sink is not None:
            plain_function(sink, "`sink` of a `DecisionLog`")
        self._records: list[DecisionRecord] = []
        self._sink = sink

    @property
    def records(self) -> Sequence[DecisionRecord]:
        """What was decided, in order."""
        return tuple(self._records)

    def to_json_lines(self) -> str:
        """The records as one line of JSON each: names and codes of reasons, without arguments and messages.

        The message of a decision may quote an argument.
        """
        return "".join(json.dumps(row(record), ensure_ascii=False) + "\n" for record in self._records)

    @implements(decided)
    def decided(self, record: DecisionRecord) -> None:
        self.add(record)
        fwd()

    def add(self, record: DecisionRecord) -> None:
        """Keep a record, without the request of a model call, which would hold the conversation again at each turn."""
        self._records.append(_kept(record))
        try:
            if self._sink is not None:
                self._sink(record)
        except Exception:
            _log.exception("the sink of a decision log failed")


def _kept(record: DecisionRecord) -> DecisionRecord:
    effect = record.effect
    if effect is None:
        return record
    # Lists and dicts as they were when it was decided: code may change them later.
    arguments = {name: _copied(value) for name, value in effect.arguments.items()}
    return dataclasses.replace(record, effect=dataclasses.replace(effect, request=None, arguments=arguments))


def _copied(value: Any) -> Any:
    if type(value) in (list, tuple, set, frozenset):
        return type(value)(_copied(one) for one in value)
    return {key: _copied(one) for key, one in value.items()} if type(value) is dict else value


def row(record: DecisionRecord) -> dict[str, Any]:
    """A record as plain JSON, without arguments and messages."""
    effect, decision = record.effect, record.decision
    about = (
        {}
        if effect is None
        else {
            "run_id": effect.run_id,
            "step_id": effect.step_id,
            "by_code": effect.by_code,
            "kind": effect.kind.value,
            "name": effect.name,
            "risk": effect.risk.name,
        }
    )
    return {
        "at": record.at,
        "who": [caller.__name__ for caller in record.callers],
        "stage": record.stage,
        **about,
        "disposition": decision.disposition.name,
        "reason_code": decision.reason_code,
        "rule": decision.rule,
        "answered_by": record.answer.by if record.answer is not None else None,
    }
