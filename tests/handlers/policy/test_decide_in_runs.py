"""Decisions in runs that are resumed: what has happened has, what was denied is asked again or stays denied."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from effectful_agents import handler, harness
from effectful_agents.errors import AgentsError, Denied, ReplayDivergence
from effectful_agents.handlers.durability import Journal, MemoryCheckpointer
from effectful_agents.handlers.policy import DecisionLog, Limits, Policy
from effectful_agents.operations.policy import Decision, Disposition, ProposedEffect
from effectful_agents.testing import ScriptedModel, calls
from tests.handlers.policy.routes import ROUTES, TO, assistant, in_repl, send, sent

DENY = Policy(lambda effect: Disposition.DENY_STEP if effect.tool == send else None, "deny")
STOP = Policy(lambda effect: Disposition.TERMINATE_RUN if effect.tool == send else None, "stop")


class Crash(BaseException):
    """The process ends here."""


def run(store: MemoryCheckpointer, model: ScriptedModel, *handlers: Any, **settings: Any) -> Any:
    options = {"eval_provider": "none", "type_checker": "none", **settings}
    with handler(harness(**options)), handler(model), handler(Journal("r", store)), contextlib.ExitStack() as stack:
        for one in handlers:
            stack.enter_context(handler(one))
        return assistant("Send it.")


def crashing(*replies: Any) -> ScriptedModel:
    """A model with which the process ends when it is asked once more."""

    def crash(request: Any) -> Any:
        raise Crash

    return ScriptedModel(*replies, crash)


@pytest.fixture(autouse=True)
def _nothing_sent() -> None:
    sent.clear()


@pytest.mark.parametrize("route", ROUTES)
def test_what_was_denied_and_survived_stays_denied_when_the_policy_is_gone(route):
    settings, replies = ROUTES[route]
    store = MemoryCheckpointer()
    with contextlib.suppress(Crash, AgentsError):
        run(store, crashing(*replies[:-1]), DENY, **settings)
    with contextlib.suppress(AgentsError):
        run(store, ScriptedModel("done", "done", "done"), **settings)
    assert sent == []


@pytest.mark.parametrize("route", ROUTES)
def test_what_was_allowed_is_not_done_again_nor_undone_by_a_new_policy(route):
    settings, replies = ROUTES[route]
    store = MemoryCheckpointer()
    with contextlib.suppress(Crash):
        run(store, crashing(*replies[:-1]), Policy(lambda effect: None), **settings)
    assert sent == [TO]
    log = DecisionLog()
    again = ScriptedModel("done", "done", "done")
    with contextlib.suppress(AgentsError):
        run(store, again, DENY, log, **settings)
    assert sent == [TO]
    assert [record.effect for record in log.records if record.effect is not None and record.effect.tool == send] == []


@pytest.mark.parametrize("route", ["json", "snippet", "through a tool", "through a skill"])
def test_a_terminated_run_is_asked_again_when_it_is_resumed(route):
    settings, replies = ROUTES[route]
    store = MemoryCheckpointer()
    with pytest.raises(Denied):
        run(store, ScriptedModel(*replies), STOP, **settings)
    with pytest.raises(Denied):
        run(store, ScriptedModel("done"), STOP, **settings)
    assert sent == []
    run(store, ScriptedModel("done", "done", "done"), **settings)
    assert sent == [TO]


@pytest.mark.parametrize("route", ROUTES)
def test_amended_arguments_are_found_again(route):
    amend = Policy(lambda effect: Decision(arguments={"to": "ann"}) if effect.tool == send else None)
    settings, replies = ROUTES[route]
    store = MemoryCheckpointer()
    with contextlib.suppress(Crash):
        run(store, crashing(*replies[:-1]), amend, **settings)
    assert sent == ["ann"]
    with contextlib.suppress(ReplayDivergence):
        run(store, ScriptedModel("done", "done", "done"), amend, **settings)
    assert sent == ["ann"]


def test_a_denial_that_was_last_is_asked_again():
    store = MemoryCheckpointer()
    with contextlib.suppress(Crash):
        run(store, crashing(calls("send", to=TO)), DENY)
    model = ScriptedModel("done")
    # The request after the denial was attempted: the program went on with it, and does so again.
    assert run(store, model) == "done"
    assert sent == []
    assert "not done" in str(model.requests[0]["messages"][-1])


def test_what_a_run_did_before_it_was_resumed_counts():
    store = MemoryCheckpointer()
    seen: list[bool] = []

    def judge(effect: ProposedEffect) -> None:
        if effect.tool == send:
            seen.append(effect.replayed)

    with contextlib.suppress(Crash):
        run(store, crashing(calls("send", to="1"), calls("send", to="2")), Policy(judge))
    assert seen == [False, False]
    with pytest.raises(AgentsError, match="tool_calls"):
        run(store, ScriptedModel(calls("send", to="3"), "done"), Policy(judge), Limits(tool_calls=2))
    assert seen[2:4] == [True, True]
    assert sent == ["1", "2"]


def test_denied_code_goes_on_in_the_same_way():
    code = f"try:\n    send({TO!r})\nexcept Exception:\n    x = 1\nlook('it')\nprint(x)\n"
    store = MemoryCheckpointer()
    with contextlib.suppress(Crash):
        run(store, crashing(in_repl(code)), DENY, eval_provider="builtin")
    model = ScriptedModel("done")
    assert run(store, model, eval_provider="builtin") == "done"
    assert sent == []
    assert model.requests[0]["messages"][-1]["content"].startswith("1")
    with handler(harness(eval_provider="none")), handler(ScriptedModel()):
        assert run(store, ScriptedModel(), eval_provider="builtin") == "done"
