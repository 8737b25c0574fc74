"""What a server asks: the model and the people of the program, and policies decide."""

from __future__ import annotations

from typing import Any

import pytest

from effectful_agents import NotHandled, Skill, handler, harness, usage
from effectful_agents.errors import Denied, PeerError
from effectful_agents.handlers.delegation.mcp import MCPTools
from effectful_agents.handlers.policy import Policy
from effectful_agents.operations.policy import Answer, Decision, Disposition, EffectKind, request_approval
from effectful_agents.testing import ScriptedModel, calls


@Skill.define
def ask(question: str) -> str:
    """Answer: {question}"""
    raise NotHandled


STACK: Any = harness(system_prompt="brief", eval_provider="none")


@pytest.fixture(params=["auto", "legacy"])
def box(request, address):
    return MCPTools.http(address, prefix="box", protocol=request.param)


def test_a_model_is_asked_by_completion_and_counted(box):
    model = ScriptedModel(calls("box_opined"), "blue", "It is blue.")
    with usage() as used, handler(STACK), handler(model), handler(box):
        assert ask("?") == "It is blue."
    assert model.requests[1]["messages"] == [{"role": "user", "content": "What is the sky like?"}]
    assert model.requests[1]["max_tokens"] == 20
    assert "tools" not in model.requests[1]
    assert model.requests[2]["messages"][-1]["content"] == "the model says blue"
    assert used.requests == 3


def test_a_policy_decides_about_what_a_server_has_asked(box):
    requests = []

    def only_the_program(effect):
        if effect.kind == EffectKind.MODEL_CALL:
            requests.append(effect)
            if len(requests) == 2:
                return Decision(Disposition.DENY_STEP, message="not for servers")
        return None

    model = ScriptedModel(calls("box_opined"), "It would not.")
    with handler(STACK), handler(Policy(only_the_program)), handler(model), handler(box):
        with pytest.raises(Denied, match="not for servers"):  # as where a policy refuses any other request
            ask("?")
    assert len(model.requests) == 1


@pytest.mark.parametrize(
    ("tool", "answer", "told"),
    [
        ("wished", Answer(text="Oslo"), "accept: Oslo"),
        ("wished", Answer(approved=False), "decline: None"),
        ("wished", Answer(approved=False, from_nobody=True), "cancel: None"),
        ("ordered", Answer(text='{"size": 2, "sugar": true}'), "accept: size=2 sugar=True"),
        ("ordered", Answer(text='{"size": "big"}'), "decline: None"),
        ("ordered", Answer(text="two"), "decline: None"),
    ],
)
def test_a_person_is_asked_as_for_an_approval(box, tool, answer, told):
    asked = []

    def person(question):
        asked.append(question)
        return answer

    with handler({request_approval: person}), handler(box):
        assert box.tool(tool)() == told
    assert "asks: " in asked[0].text
    assert asked[0].reason_code == "elicitation"


def test_nobody_is_there_to_be_asked(box):
    with handler(box):
        assert box.tool("wished")() == "cancel: None"


def test_what_keeps_a_person_from_being_asked_is_no_answer(box):
    def broken(question):
        raise OSError("no paper")

    with handler({request_approval: broken}), handler(box), pytest.raises(OSError, match="no paper"):
        box.tool("wished")()


def test_a_server_may_be_refused_both(address):
    with handler(MCPTools.http(address, prefix="box", sampling=False, elicitation=False)) as box:
        with handler({request_approval: lambda question: Answer(text="Oslo")}):
            assert box.tool("wished")() == "decline: None"
        with handler(ScriptedModel("blue")) as model, pytest.raises(PeerError):
            box.tool("opined")()
        assert not model.requests
