"""What a request begins with is what the one before it was, byte for byte, so that a provider's cache hits."""

from __future__ import annotations

import itertools
import json

import pytest

from effectful_agents import harness
from tests.handlers.provision.http.server import Server, listening
from tests.handlers.provision.wire.conversation import ATTEMPTS, WRONG, converse, script, will_answer


class Sent:
    """A request on the wire.

    Attributes:
        head: All bytes up to the end of its last message.
        body: The request.
        kept: Whether the requests after it begin with it: no reply in it is asked again, and its call did not fail.
    """

    def __init__(self, raw: bytes, kept: bool) -> None:
        self.body = json.loads(raw)
        self.kept = kept
        messages = json.dumps(self.body["messages"], ensure_ascii=False, separators=(",", ":")).encode()
        before, as_sent, _ = raw.partition(messages)
        assert as_sent
        self.head = before + messages.removesuffix(b"]")
        self.shows_a_misfit = WRONG.encode() in raw

    @property
    def roles(self) -> list[str]:
        return [message["role"] for message in self.body["messages"]]

    def field(self, name: str) -> str:
        return json.dumps(self.body.get(name))


@pytest.fixture(scope="module", params=["brief", "full"])
def sent(request: pytest.FixtureRequest, running_server: Server) -> list[Sent]:
    """The requests of a long conversation, of which the second half is streamed."""
    running_server.clear()
    replies = script()
    will_answer(running_server, [reply.body for reply in replies])
    options = {"base_url": running_server.url, "api_key": "x", "num_retries": ATTEMPTS}
    with harness(model="openai/test", system_prompt=request.param, **options):
        converse(listening)
    return [Sent(raw, reply.kept) for raw, reply in zip(running_server.raw, replies, strict=True)]


def test_the_conversation_is_long_and_has_all_that_can_happen(sent: list[Sent]):
    last = sent[-1].body["messages"]
    assert len([message for message in last if message["role"] == "assistant"]) >= 20
    results = [message["content"] for message in last if message["role"] == "tool"]
    assert any("LookupError" in result for result in results)
    assert any("sunny" in result for result in results)
    assert {bool(request.body.get("stream")) for request in sent} == {False, True}
    assert len({request.field("response_format") for request in sent}) == 4


def test_each_request_begins_with_the_one_before(sent: list[Sent]):
    before = sent[0]
    for after in sent[1:]:
        assert after.head.startswith(before.head + b",")
        if after.kept:
            before = after


def test_of_attempts_that_were_discarded_nothing_is_left(sent: list[Sent]):
    """The request after them is the one before them, with the reply that did fit and what came of it."""
    assert [request.shows_a_misfit for request in sent].count(True) == 2 * 5
    assert not any(request.shows_a_misfit for request in sent if request.kept)
    kept = [request for request in sent if request.kept]
    for before, after in itertools.pairwise(kept):
        assert after.roles[len(before.roles) :] in (
            ["assistant", "user"],
            ["assistant", "tool"],
            ["assistant", "tool", "tool"],
        )


def test_the_tools_are_the_same_in_each(sent: list[Sent]):
    assert sent[0].body["tools"]
    assert len({request.field("tools") for request in sent}) == 1


def test_another_type_of_the_answer_is_said_in_its_own_field_only(sent: list[Sent]):
    forms = {request.field("response_format") for request in sent}
    assert len(forms) == 4
    for form in forms:
        like = [request for request in sent if request.field("response_format") == form]
        assert {request.field("tools") for request in like} == {sent[0].field("tools")}
        assert all(request.body["messages"][0] == sent[0].body["messages"][0] for request in like)
    others = {frozenset(request.body) - {"response_format", "stream", "stream_options"} for request in sent}
    assert others == {frozenset({"model", "messages", "tools"})}
