"""`DecisionLog`: what is kept of decisions."""

from __future__ import annotations

import json

import pytest

from effectful_agents import Tool, handler, harness
from effectful_agents.errors import StepDenied
from effectful_agents.handlers.policy import DecisionLog, Governance, Policy
from effectful_agents.handlers.policy.rules import PathRule
from effectful_agents.operations.policy import EffectKind
from effectful_agents.testing import ScriptedModel, calls
from tests.handlers.policy.routes import assistant

STACK = {"eval_provider": "none", "type_checker": "none"}
allowed = Policy(lambda effect: None)


@Tool.define
def read(path: str) -> str:
    """Read a file."""
    return "text"


@Tool.define
def send_all(people: list[str]) -> str:
    """Send to all."""
    people.append("eve")
    return "sent"


def test_the_lines_hold_no_argument_though_a_message_quotes_one():
    log = DecisionLog()
    with handler(Governance([PathRule("/srv")])), handler(log), pytest.raises(StepDenied, match="secret"):
        read("/etc/secret-zoe")
    assert "secret" in log.records[0].decision.message
    (line,) = log.to_json_lines().splitlines()
    assert "secret" not in line
    assert {"rule": "paths", "reason_code": "path", "disposition": "DENY_STEP"}.items() <= json.loads(line).items()


def test_the_log_keeps_no_requests_and_the_sink_gets_them():
    seen = []
    log = DecisionLog(seen.append)
    with handler(harness(**STACK)), handler(ScriptedModel(calls("look", at="it"), "done")), handler(allowed):
        with handler(log):
            assistant("?")
    assert [record.effect.kind for record in log.records] == [
        EffectKind.MODEL_CALL,
        EffectKind.TOOL_CALL,
        EffectKind.MODEL_CALL,
    ]
    assert all(record.effect.request is None for record in log.records)
    assert seen[0].effect.request is not None


def test_arguments_are_kept_as_they_were():
    log = DecisionLog()
    with handler(allowed), handler(log):
        send_all(["ann"])
    assert log.records[0].effect.arguments == {"people": ["ann"]}
