"""Rules about what stands beside texts, and about conversations that come from elsewhere."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from effectful_agents import NotHandled, Skill, Tool, handler, harness, run
from effectful_agents.errors import GovernanceRefused
from effectful_agents.handlers.policy import Governance
from effectful_agents.handlers.policy.attachments import with_attachments
from effectful_agents.handlers.policy.rules import Redaction, Refuse, Rule
from effectful_agents.messages import Document, Image, Message
from effectful_agents.testing import ScriptedModel, calls

STACK = harness(system_prompt="brief", eval_provider="none")


def file(text: str, *, name: str = "a.txt", kind: str = "text/plain") -> Document:
    data = f"data:{kind};base64,{base64.b64encode(text.encode()).decode()}"
    return {"type": "file", "file": {"filename": name, "file_data": data}}


def picture(url: str) -> Image:
    return {"type": "image_url", "image_url": {"url": url}}


PARTS: dict[str, Any] = {
    "name": file("x", name="ann@example.org.txt"),
    "text": file("Ann is ann@example.org."),
    "json": file('{"mail": "ann@example.org"}', kind="application/json; charset=utf-8"),
    "address": picture("https://x.example/?mail=ann@example.org"),
    "quoted address": picture("https://x.example/?mail=ann%40example.org"),
    "plain data": {"type": "file", "file": {"file_data": "data:text/plain,ann%40example.org"}},
}

_given: list[Any] = []


@Tool.define
def get() -> Document | Image:
    """Get it."""
    return _given[-1]


@Skill.define
def look(part: Document | Image) -> str:
    """Look: {part}"""
    raise NotHandled


@Skill.define
def do(order: str) -> str:
    """{order}"""
    raise NotHandled


def texts(requests: Any) -> str:
    """All that a model was sent, in clear."""
    told = []

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            [walk(one) for one in value.values()]
        elif isinstance(value, list | tuple):
            [walk(one) for one in value]
        elif isinstance(value, str):
            told.append(value.replace("%40", "@"))
            if ";base64," in value:
                told.append(base64.b64decode(value.partition(",")[2]).decode("utf-8", "replace"))

    walk([request["messages"] for request in requests])
    return "\n".join(told)


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_what_stands_beside_texts_is_redacted(part):
    _given.append(part)
    model = ScriptedModel(calls("get"), "ok")
    with handler(STACK), handler(model), handler(Governance([Redaction()])):
        look(part)
    assert "ann@example.org" not in texts(model.requests)
    assert texts(model.requests).count("EMAIL") >= 2  # from the program, and from the tool


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_what_stands_beside_texts_is_refused(part):
    rule = Rule("no mail", ingress=lambda text: Refuse("No.") if "ann@" in text else None)
    with handler(STACK), handler(ScriptedModel()), handler(Governance([rule])), pytest.raises(GovernanceRefused):
        look(part)


@pytest.mark.parametrize(
    "part",
    [
        file("ann@example.org", kind="application/pdf", name="a.pdf"),
        picture("data:image/png;base64,YW5uQGV4YW1wbGUub3Jn"),
        {"type": "file", "file": {"file_data": "data:text/plain;base64,=="}},
        {"type": "file", "file": {"file_id": "ann@example.org"}},
        {"type": "input_audio", "input_audio": {"data": "YW5uQGV4YW1wbGUub3Jn", "format": "wav"}},
    ],
)
def test_what_is_no_text_stays(part):
    message = {"role": "user", "content": [part]}
    assert with_attachments(message, lambda text: text.replace("ann", "eve")) is message


EARLIER: list[Message] = [
    {"role": "user", "content": "I am ann@example.org."},
    {"role": "assistant", "content": "Good morning."},
]


def test_a_conversation_that_the_program_gives_is_redacted():
    model = ScriptedModel("hi")
    with handler(STACK), handler(model), handler(Governance([Redaction()])):
        result = run(do, "go on", history=EARLIER)
    assert "ann@example.org" not in texts(model.requests)
    assert "ann@example.org" not in str(result.messages)
    assert EARLIER[0]["content"] == "I am ann@example.org."


def test_a_conversation_that_the_program_gives_is_refused():
    rule = Rule("no mail", ingress=lambda text: Refuse("No.") if "ann@" in text else None)
    model = ScriptedModel("hi")
    with handler(STACK), handler(model), handler(Governance([rule])), pytest.raises(GovernanceRefused):
        run(do, "go on", history=EARLIER)
    assert model.requests == []


def test_results_of_tools_in_it_pass_the_rules_as_well():
    def _said(text: str) -> str:
        return text.replace("damn", "d***")

    call: Any = {"id": "1", "type": "function", "function": {"name": "get", "arguments": "{}"}}
    earlier: list[Message] = [
        {"role": "user", "content": "Get it."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "damn it"},
        {"role": "assistant", "content": "Here."},
    ]
    model = ScriptedModel("hi")
    with handler(STACK), handler(model), handler(Governance([Rule("softer", tool_result=_said)])):
        run(do, "go on", history=earlier)
    assert "damn" not in texts(model.requests)
