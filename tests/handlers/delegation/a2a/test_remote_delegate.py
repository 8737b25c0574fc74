"""Agents of other processes as tools, on the SDK's own server."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
import trio
from a2a import types as wire
from hypothesis import given
from hypothesis import strategies as st

from effectful_agents import NotHandled, Risk, Skill, acall, handler, harness
from effectful_agents.errors import DefinitionError, OptionError, PeerError, Suspended
from effectful_agents.handlers.delegation.a2a import A2AClient, AgentCard, RemoteDelegate, TaskState
from effectful_agents.handlers.delegation.a2a.tasks import card_of, task_of
from effectful_agents.handlers.durability import MemoryCheckpointer
from effectful_agents.handlers.policy import HumanInteraction, MemoryLedger, RiskPolicy
from effectful_agents.operations.call_context import CallContext, current_call_context
from effectful_agents.operations.policy import Answer, request_approval
from effectful_agents.operations.steps import DelegateStep, emit
from effectful_agents.operations.world import sleep
from effectful_agents.runtime import fwd
from effectful_agents.testing import ScriptedModel, calls
from tests.handlers.delegation.a2a.conftest import free_port, start

STACK: Any = harness(system_prompt="brief", eval_provider="none")


def delegate(agent: str, **options: Any) -> RemoteDelegate:
    return RemoteDelegate(agent, **{"risk": Risk.SOFT_WRITE, "name": "shop", "poll_every": 0.05} | options)


def sent(agent: str) -> list[str]:
    return httpx.get(f"{agent}/seen").json()["sent"]


def test_a_model_hands_work_to_it(agent):
    shop = RemoteDelegate(agent, risk=Risk.SOFT_WRITE, poll_every=0.05)
    assert shop.__name__ == "print_shop"
    assert shop.description == "Prints things.\n- print: Print a poster."

    @Skill.define
    def ask() -> str:
        """Have a poster printed."""
        raise NotHandled

    steps = []

    def heard(event):
        steps.append(event)
        fwd()

    model = ScriptedModel(calls("print_shop", brief="a poster"), "It is printed.")
    with handler(STACK), handler(model), handler({emit: heard}):
        assert ask() == "It is printed."
    offered = [tool["function"] for tool in model.requests[0]["tools"]]
    assert [tool["name"] for tool in offered] == ["print_shop"]
    assert list(offered[0]["parameters"]["properties"]) == ["brief"]
    assert model.requests[1]["messages"][-1]["content"] == "made: a poster"
    assert any(isinstance(event, DelegateStep) for event in steps)


@pytest.mark.parametrize(
    ("brief", "result"),
    [
        ("a poster", "made: a poster"),
        ("at once", "done at once"),
        ("data", '{"a": [1.0, 2.0]}'),
        ("wait 0.2", "waited"),
    ],
)
def test_what_a_task_has_made(agent, brief, result):
    assert delegate(agent)(brief) == result


def test_pictures_are_parts(agent):
    picture, text = delegate(agent)("picture")
    assert picture["image_url"]["url"].startswith("data:image/png;base64,")
    assert text["text"] == "a dot"


def test_a_task_that_does_not_come_to_its_end_is_an_error_of_the_tool(agent):
    with pytest.raises(PeerError, match="failed: the press is broken") as raised:
        delegate(agent)("fail")
    assert "\x1b" not in str(raised.value)
    assert raised.value.peer == agent
    with pytest.raises(PeerError, match="rejected"):
        delegate(agent)("reject")
    with pytest.raises(PeerError, match=r"longer than 0\.2 s"):
        delegate(agent, timeout=0.2)("wait 60")
    assert [task.state for task in A2AClient(agent).list_tasks()].count(TaskState.CANCELED) == 1


def test_what_a_task_asks_is_asked_of_a_person(agent):
    asked = []

    def person(question):
        asked.append(question)
        return Answer(text="green")

    with handler({request_approval: person}):
        assert delegate(agent)("ask") == "made: green"
        assert delegate(agent)("login") == "made: green"
    assert [question.reason_code for question in asked] == ["input_required", "auth_required"]
    assert "Which colour?" in asked[0].text
    with handler({request_approval: lambda question: Answer(approved=False, reason="no")}):
        with pytest.raises(PeerError, match="nobody answered"):
            delegate(agent)("ask")
    with handler({request_approval: lambda question: Answer(from_nobody=True)}), pytest.raises(PeerError):
        delegate(agent)("ask")


class Stopped(BaseException):
    """The process ends here."""


def program(agent: str, kept: Any, *replies: Any, more: Any = ()) -> Any:
    shop = delegate(agent, description="A shop.")

    @Skill.define
    def ask() -> str:
        """Have a poster printed."""
        raise NotHandled

    stack = harness(system_prompt="brief", eval_provider="none", journal=kept, run_id="monday")
    with handler(stack), handler(ScriptedModel(*replies)):
        with handler(dict(more)):
            assert shop
            return ask()


def test_a_run_that_is_resumed_finds_the_task_that_it_had_begun(agent, monkeypatch):
    kept, before = MemoryCheckpointer(), len(sent(agent))

    def stop(seconds):
        raise Stopped

    def cancel(self, task_id):
        raise PeerError("a process that was killed cancels nothing", peer="")

    with monkeypatch.context() as killed:
        killed.setattr(A2AClient, "cancel", cancel)
        with pytest.raises(Stopped):
            program(agent, kept, calls("shop", brief="wait 0.5"), more={sleep: stop})
    assert sent(agent)[before:] == ["wait 0.5"]
    assert program(agent, kept, "It is printed.") == "It is printed."
    assert sent(agent)[before:] == ["wait 0.5"]
    assert program(agent, kept) == "It is printed."


def test_a_run_that_waits_for_a_person_goes_on_with_the_same_task(agent):
    kept, before = MemoryCheckpointer(), len(sent(agent))
    people = HumanInteraction(b"32 random bytes, kept as a secret", binding="ann", consumption=MemoryLedger())
    with handler(people), pytest.raises(Suspended) as signal:
        program(agent, kept, calls("shop", brief="ask"))
    assert sent(agent)[before:] == ["ask"]
    with handler(people), pytest.raises(Suspended):
        program(agent, kept)
    assert sent(agent)[before:] == ["ask"]
    people.redeem(signal.value.token, "ann", Answer(text="green"))
    with handler(people):
        assert program(agent, kept, "It is green.") == "It is green."
        assert program(agent, kept) == "It is green."
    assert sent(agent)[before:] == ["ask", "green"]


def test_a_call_that_is_cancelled_cancels_the_task(agent):
    async def cancelled() -> None:
        task = asyncio.ensure_future(acall(one, "wait 60"))
        while "wait 60" not in sent(agent):
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    shop = delegate(agent)

    @Skill.define
    def one(brief: str) -> str:
        """{brief}"""
        raise NotHandled

    with handler(STACK), handler(ScriptedModel(calls("shop", brief="wait 60"), "late")):
        assert shop
        asyncio.run(cancelled())
    assert any(task.state is TaskState.CANCELED for task in A2AClient(agent).list_tasks())


def test_from_asyncio_and_trio_and_with_the_trace(agent):
    shop = delegate(agent)
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

    @Skill.define
    def ask() -> str:
        """Have a poster printed."""
        raise NotHandled

    async def main() -> Any:
        model = ScriptedModel(calls("shop", brief="x"), calls("shop", brief="y"), "ok")
        with handler(STACK), handler(model), handler({current_call_context: lambda: CallContext(parent)}):
            assert shop
            await acall(ask)
        return [request["messages"][-1]["content"] for request in model.requests[1:]]

    assert asyncio.run(main()) == ["made: x", "made: y"]
    assert trio.run(main) == ["made: x", "made: y"]
    assert httpx.get(f"{agent}/seen").json()["headers"][-1]["traceparent"] == parent


def test_policies_decide_by_the_risk_that_was_declared(agent):
    shop = delegate(agent, risk=Risk.DESTRUCTIVE)

    @Skill.define
    def ask() -> str:
        """Have a poster printed."""
        raise NotHandled

    model = ScriptedModel(calls("shop", brief="never"), "I may not.")
    with handler(STACK), handler(RiskPolicy(allow=Risk.READ, approve=Risk.READ)), handler(model):
        assert shop
        ask()
    assert "never" not in sent(agent)


def test_an_agent_that_dies_in_the_middle_is_an_error_and_hangs_nobody():
    port = free_port()
    process = start(port)
    url = f"http://127.0.0.1:{port}"
    shop = delegate(url)

    def kill(seconds):
        process.kill()
        process.wait()

    with handler({sleep: kill}), pytest.raises(PeerError):
        shop("wait 60")
    with pytest.raises(PeerError) as raised:
        delegate(url, description="x")("again")
    assert raised.value.retryable


# --- the client, and what agents say of themselves --------------------------------------------------------------------


def test_the_client(agent):
    client = A2AClient(agent, headers=lambda: {"authorization": "Bearer secret"})
    assert isinstance(client.card(), AgentCard)
    assert client.card().streams
    task = client.send("wait 30", context_id="mine")
    assert not task.state.is_final
    assert client.get(task.task_id).context_id == "mine"
    assert [one.task_id for one in client.list_tasks("mine")] == [task.task_id]
    assert client.cancel(task.task_id).state is TaskState.CANCELED
    with pytest.raises(PeerError):
        client.cancel(task.task_id)
    with pytest.raises(PeerError):
        client.get("nothing")
    assert httpx.get(f"{agent}/seen").json()["headers"][-1]["authorization"] == "Bearer secret"
    assert "secret" not in repr(client)


@pytest.mark.parametrize(
    "url", ["http://evil.example/", "https://127.0.0.1:1/", "http://127.0.0.1:99999999/", "not an address", ""]
)
def test_a_card_sends_nobody_elsewhere(url):
    card = wire.AgentCard(name="x", supported_interfaces=[wire.AgentInterface(url=url, protocol_binding="JSONRPC")])
    with pytest.raises(PeerError, match="asked anywhere else"):
        A2AClient("http://127.0.0.1:1")._checked(card)


def test_an_answer_that_is_too_large_is_refused(agent):
    with pytest.raises(PeerError, match="max_bytes"):
        A2AClient(agent, max_bytes=100).card()


def test_what_is_no_agent_is_an_error(agent):
    with pytest.raises(PeerError):
        A2AClient(f"{agent}/seen").card()


@given(st.text(max_size=500), st.text(max_size=9_000), st.lists(st.text(max_size=50), max_size=5))
def test_cards_of_any_kind_are_read_and_bounded(name, description, skills):
    card = wire.AgentCard(name=name, description=description, skills=[wire.AgentSkill(name=one) for one in skills])
    read = card_of(card, "http://x")
    assert len(read.name) <= 200
    assert len(read.description) <= 4_000
    assert len(read.skills) == len(skills)


@pytest.mark.parametrize("state", range(9))
def test_all_states_are_known(state):
    read = task_of(wire.Task(id="t", context_id="c", status=wire.TaskStatus(state=state)))
    assert read.state in TaskState


def test_what_cannot_be_is_refused(agent):
    for options in ({"timeout": 0}, {"poll_every": -1}, {"headers": {}}):
        with pytest.raises(OptionError):
            RemoteDelegate(A2AClient(agent), risk=Risk.READ, name="x", description="x", **options)
    with pytest.raises(OptionError):
        A2AClient("ftp://x")
    with pytest.raises(TypeError):
        RemoteDelegate(agent)  # ty: ignore[missing-argument]
    with pytest.raises(DefinitionError):
        RemoteDelegate(agent, risk=17)  # ty: ignore[invalid-argument-type]
