"""What deciding about effects adds: to a tool call by code, and to a run of two model calls."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

import pytest

from bench.stacks import Report, skill_with_tools, whole
from effectful_agents import Risk, Tool, handler
from effectful_agents.handlers.policy import Governance, GrantEffects, Limits, Policy, RiskPolicy
from effectful_agents.handlers.policy.rules import ArgumentRule, Redaction
from effectful_agents.operations.policy import decide
from effectful_agents.runtime import Layers
from effectful_agents.testing import ScriptedModel, calls

pytestmark = pytest.mark.benchmark(timer=time.process_time)

ROUNDS, WARMUP, CALLS = 1000, 100, 100
TEXT = "Write to ann@example.org, or call +49 30 901820. " * 4

POLICIES: dict[str, Callable[[], Any]] = {
    "none": contextlib.nullcontext,
    "decide alone": lambda: handler({decide: lambda effect: None}),
    "Policy": lambda: handler(Policy(lambda effect: None)),
    "RiskPolicy": lambda: handler(RiskPolicy(allow=Risk.READ)),
    "GrantEffects": lambda: handler(GrantEffects()),
    "Limits": lambda: handler(Limits(turns=10**9, tool_calls=10**9)),
    "Governance, arguments": lambda: handler(Governance([ArgumentRule(allow=lambda arguments: True)])),
    "Governance, redaction": lambda: handler(Governance([Redaction(restore=True)])),
    "five policies": lambda: handler(Layers(*(GrantEffects() for _ in range(5)))),
}


@Tool.define
def note(text: str) -> str:
    """Note a text."""
    return text


@pytest.mark.parametrize("name", POLICIES)
def test_tool_called_by_code(benchmark: Any, report: Callable[[str, str], None], name: str) -> None:
    def call() -> None:
        for _ in range(CALLS):
            note(TEXT)

    benchmark.group = "a tool called by code"
    with POLICIES[name]():
        benchmark.pedantic(call, rounds=ROUNDS // CALLS, warmup_rounds=1)
    if benchmark.stats is not None:  # not with --benchmark-disable
        report(f"a tool called by code, {name}", f"{benchmark.stats.stats.median / CALLS * 1e6:8.1f} µs per call")


@pytest.mark.parametrize("name", POLICIES)
def test_run_of_two_model_calls(benchmark: Any, per_model_call: Any, name: str) -> None:
    skill = skill_with_tools(1)
    script = [calls("tool_0", city="Oslo"), '{"city": "Oslo", "degrees": 3.5}']
    # One round more than is measured: pytest-benchmark runs the function once by itself when it is disabled.
    model = ScriptedModel(*script * (ROUNDS + WARMUP + 1))
    benchmark.group = "two model calls, a policy"
    with handler(model), handler(whole()), POLICIES[name]():
        value = benchmark.pedantic(skill, args=("Oslo",), rounds=ROUNDS, warmup_rounds=WARMUP)
    assert value == Report("Oslo", 3.5)
    per_model_call(f"two model calls, whole stack, {name}", 2)
