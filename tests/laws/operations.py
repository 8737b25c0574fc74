"""Every operation of the package, with arguments to perform it with."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from collections.abc import Callable
from typing import Any

from effectful.ops.types import Operation

import effectful_agents.operations
from effectful_agents import Agent, NotHandled, Skill, Tool
from effectful_agents.messages import StreamStart, Usage
from effectful_agents.operations import code
from effectful_agents.operations.call_context import current_call_context
from effectful_agents.operations.history import (
    admit_message,
    agents_called,
    append_message,
    conversation,
    get_history,
    load_state,
    save_state,
)
from effectful_agents.operations.journal import attempt_of, not_made_again, perform_step, record, recorded_below
from effectful_agents.operations.loop import (
    DecodedToolCall,
    call_agent,
    call_assistant,
    call_id,
    call_system,
    call_tool,
    call_user,
    completion,
    count_tokens,
    deliver,
    model_in_use,
    send_request,
    steer,
    write_system,
)
from effectful_agents.operations.memory import (
    consolidate_memory,
    flush_memory,
    forget,
    memory_in_use,
    recall,
    recalled,
    remember,
)
from effectful_agents.operations.policy import (
    ALLOW,
    DecisionRecord,
    EffectKind,
    ProposedEffect,
    Question,
    decide,
    decided,
    request_approval,
)
from effectful_agents.operations.prices import cost_of
from effectful_agents.operations.prompt import section
from effectful_agents.operations.session import exec_code, repl_env, repl_history
from effectful_agents.operations.steps import ModelStep, Phase, emit
from effectful_agents.operations.templates import skill_prompt
from effectful_agents.operations.usage import RequestUsage, tell_usage
from effectful_agents.operations.world import fresh_id, now, random, sleep

USER: Any = {"role": "user", "content": "?"}


@Tool.define
def measure(text: str) -> int:
    """Measure a text."""
    return len(text)


@Skill.define
def ask(question: str) -> str:
    """{question}"""
    raise NotHandled


GUIDE = Agent(__agent_id__="guide")

CALL: Any = DecodedToolCall(measure, inspect.signature(measure).bind("abc"), "c1", "measure")

STEP = ModelStep(step_id="000001-model", phase=Phase.ATTEMPTED, skill=ask, request={"messages": [USER]})


EFFECT = ProposedEffect(kind=EffectKind.TOOL_CALL, name="measure", tool=measure, arguments={"text": "abc"})


def _taken() -> int:
    return 3


def _made() -> ModelStep:
    return STEP


TREE = ast.parse("1")
BYTECODE = compile("x = 1", "<code>", "exec")
EXPRESSION = compile("1 + 1", "<code>", "eval")

PERFORM: dict[Operation, Callable[[], Any]] = {
    call_agent: lambda: ask("?"),
    call_system: lambda: call_system(section("Harness"), section("Task", "Do it.")),
    write_system: lambda: write_system(section("", section("Task", "Do it."))),
    call_user: lambda: call_user(section("ask", "?")),
    call_assistant: lambda: call_assistant([USER], str, {}, frozenset()),
    call_tool: lambda: call_tool(CALL),
    deliver: lambda: deliver("done", str),
    completion: lambda: completion(messages=[USER], seed=1),
    send_request: lambda: send_request(messages=[USER], seed=1),
    steer: lambda: steer(),
    count_tokens: lambda: count_tokens([USER]),
    call_id: lambda: call_id(1, 2),
    model_in_use: lambda: model_in_use(),
    perform_step: lambda: perform_step(STEP, _made),
    attempt_of: lambda: attempt_of("000001-model"),
    not_made_again: lambda: not_made_again(),
    record: lambda: record(_taken),
    recorded_below: lambda: recorded_below("000001-tool"),
    get_history: lambda: get_history(),
    append_message: lambda: append_message(USER),
    admit_message: lambda: admit_message(USER),
    decide: lambda: decide(EFFECT),
    decided: lambda: decided(DecisionRecord(effect=EFFECT, decision=ALLOW)),
    request_approval: lambda: request_approval(Question(text="May it?")),
    cost_of: lambda: cost_of("nobody/knows-this", Usage(input=1, output=1)),
    current_call_context: lambda: current_call_context(),
    agents_called: lambda: agents_called(),
    conversation: lambda: conversation(ask),
    load_state: lambda: load_state(GUIDE),
    save_state: lambda: save_state(GUIDE, "once"),
    recall: lambda: recall("tea", 3, kind="fact"),
    remember: lambda: remember("Tea.", kind="fact", tags=("drink",), metadata={"n": 1}),
    forget: lambda: forget("1", before=3.0),
    flush_memory: lambda: flush_memory(),
    consolidate_memory: lambda: consolidate_memory(2),
    recalled: lambda: recalled(),
    memory_in_use: lambda: memory_in_use(),
    skill_prompt: lambda: skill_prompt(ask),
    code.type_check: lambda: code.type_check("x = 1", 1, 1, lenient=True),
    code.run_doctests: lambda: code.run_doctests(measure, {}),
    code.arguments_from_code: lambda: code.arguments_from_code(measure, CALL.bound_args),
    code.risk_of_code: lambda: code.risk_of_code(),
    code.parse: lambda: code.parse("x = 1", "<code>"),
    code.compile: lambda: code.compile(TREE, "<code>"),
    code.exec: lambda: code.exec(BYTECODE, {}),
    code.eval: lambda: code.eval(EXPRESSION, {}),
    emit: lambda: emit(StreamStart()),
    tell_usage: lambda: tell_usage(RequestUsage(model="gpt-5-mini", usage=Usage(input=1, output=1), skill=ask)),
    exec_code: lambda: exec_code(BYTECODE),
    repl_env: lambda: repl_env(),
    repl_history: lambda: repl_history(),
    now: lambda: now(),
    sleep: lambda: sleep(0),
    fresh_id: lambda: fresh_id(),
    random: lambda: random(),
}


def operations_of_the_package() -> set[Operation]:
    """Every public operation in `effectful_agents.operations`."""
    package = effectful_agents.operations
    modules = [
        importlib.import_module(f"{package.__name__}.{one.name}") for one in pkgutil.iter_modules(package.__path__)
    ]
    return {
        getattr(module, name)
        for module in modules
        for name in getattr(module, "__all__", ())
        if isinstance(getattr(module, name), Operation)
    }
