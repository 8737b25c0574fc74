"""What stands in a request, as a provider gets it."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import pydantic
import pytest

from effectful_agents import Agent, NotHandled, Skill, Tool, harness
from tests.handlers.provision.http.server import Server, listening
from tests.handlers.provision.wire.conversation import ATTEMPTS, converse, script, will_answer
from tests.handlers.provision.wire.examples import EXAMPLES, FOLDER, run

ROOT = FOLDER.parent


def stack(server: Server, **options: Any) -> Any:
    return harness(**{"model": "openai/test", "base_url": server.url, "api_key": "x"} | options)


@pytest.fixture(scope="module", params=["brief", "full"])
def everything(
    request: pytest.FixtureRequest, running_server: Server, tmp_path_factory: pytest.TempPathFactory
) -> list[Any]:
    """The requests of all examples and of a conversation in which everything happens."""
    running_server.clear()
    will_answer(running_server, all_replies())
    with stack(running_server, system_prompt=request.param, num_retries=ATTEMPTS):
        run_all(tmp_path_factory.mktemp("examples"))
    assert len(running_server.bodies) == len(all_replies())
    return running_server.bodies


def all_replies() -> list[Any]:
    return [reply for example in EXAMPLES.values() for reply in example.replies] + [reply.body for reply in script()]


def run_all(folder: Path) -> None:
    for name in EXAMPLES:
        run(name, folder)
    converse(listening)


# Fields

# The documented fields of each kind of message, of those that we have something to say in.
MESSAGES = {
    "system": {"role", "content"},
    "user": {"role", "content"},
    "assistant": {"role", "content", "tool_calls"},
    "tool": {"role", "content", "tool_call_id"},
}


def test_a_request_has_documented_fields_and_none_that_says_nothing(everything: list[Any]):
    for body in everything:
        optional = {"tools", "response_format"} | ({"stream", "stream_options"} if body.get("stream") else set())
        assert {"model", "messages"} <= body.keys() <= {"model", "messages"} | optional
        assert body.get("tools") != []
        assert all(value not in (None, {}, []) for value in body.values())
        for message in body["messages"]:
            assert message.keys() <= MESSAGES[message["role"]]
            assert message.get("content") != ""


def test_tools_and_forms_have_documented_fields(everything: list[Any]):
    for body in everything:
        for tool in body.get("tools", ()):
            assert tool.keys() == {"type", "function"}
            assert tool["function"].keys() == {"name", "description", "parameters"}
        if form := body.get("response_format"):
            assert form.keys() == {"type", "json_schema"}
            assert form["json_schema"].keys() == {"name", "schema", "strict"}


def test_calls_have_the_identifiers_that_the_model_gave_them(everything: list[Any]):
    given = {call["id"] for reply in all_replies() for call in reply["choices"][0]["message"].get("tool_calls", ())}
    for body in everything:
        for message in body["messages"]:
            for call in message.get("tool_calls", ()):
                assert call.keys() == {"id", "type", "function"}
                assert call["id"] in given
            assert message.get("tool_call_id") in given | {None}


def test_settings_are_sent_as_they_are_given_and_those_of_the_harness_are_not(server: Server, tmp_path: Path):
    options = {"eval_provider": "none", "num_retries": 3}
    with stack(server, temperature=0.5, seed=7, timeout=9, provider_options={"top_p": 0.9}, **options):
        run("limerick", tmp_path)
    (body,) = server.bodies
    assert body.keys() == {"model", "messages", "temperature", "seed", "top_p"}


class Friend(Agent):
    """A friend."""

    @Skill.define
    def send(self, text: str) -> str:
        """{text}"""
        raise NotHandled


def test_what_a_service_tells_besides_the_reply_is_not_sent_back(server: Server):
    """As OpenAI and those that are like it answer; some of them refuse to be told the same."""
    message = {"role": "assistant", "content": "Hi", "refusal": None, "annotations": [{"type": "url_citation"}]}
    beside = {"reasoning": "hm", "citations": ["https://example.org"]}
    choice = {"index": 0, "message": message | beside, "logprobs": None, "finish_reason": "stop"}
    server.will({"id": "r1", "choices": [choice], "service_tier": "default", "system_fingerprint": "f"})
    friend = Friend()
    with stack(server):
        friend.send("One?")
        friend.send("Two?")
    # The reasoning is the model's own, and helps it to go on.
    assert server.bodies[1]["messages"][2] == {"role": "assistant", "content": "Hi", "reasoning_content": "hm"}


# Descriptions


@dataclasses.dataclass
class Room:
    """A room in a hotel.

    Attributes:
        beds: How many can sleep in it.
    """

    beds: int
    view: Annotated[str, pydantic.Field(description="What is seen from its window.")]


class Offer(pydantic.BaseModel):
    """What a hotel offers."""

    rooms: list[Room] = pydantic.Field(description="The rooms that are free.")
    until: str | None = pydantic.Field(None, description="When it ends.")


@Tool.define
def prices(city: str, nights: Annotated[int, pydantic.Field(description="How long.")] = 1) -> int:
    """The price of a room.

    Args:
        city: Where it is.
    """
    return 100 * nights


@Skill.define
def offer(city: str) -> Offer:
    """Make an offer for {city}."""
    raise NotHandled


def described(schema: Any) -> dict[str, str]:
    """The descriptions of the properties in a schema, and in all those that it is made of."""
    if isinstance(schema, list):
        return {name: text for part in schema for name, text in described(part).items()}
    if not isinstance(schema, dict):
        return {}
    own = {name: part.get("description", "") for name, part in schema.get("properties", {}).items()}
    return own | described(list(schema.values()))


def test_parameters_and_fields_have_the_descriptions_that_their_authors_gave_them(server: Server):
    answer = {"rooms": [{"beds": 2, "view": "the sea"}], "until": None}
    will_answer(server, [{"choices": [{"message": {"role": "assistant", "content": json.dumps(answer)}}]}])
    with stack(server):
        assert offer("Oslo").rooms == [Room(2, "the sea")]
    (body,) = server.bodies
    (function,) = [tool["function"] for tool in body["tools"] if tool["function"]["name"] == "prices"]
    assert function["description"] == "The price of a room."
    assert described(function["parameters"]) == {"city": "Where it is.", "nights": "How long."}
    schema = body["response_format"]["json_schema"]["schema"]
    assert schema["description"] == "What a hotel offers."
    assert schema["properties"]["rooms"]["items"]["description"] == "A room in a hotel."
    assert described(schema) == {
        "rooms": "The rooms that are free.",
        "until": "When it ends.",
        "beds": "How many can sleep in it.",
        "view": "What is seen from its window.",
    }


def test_the_examples_describe_their_tools_and_answers(everything: list[Any]):
    tools = {tool["function"]["name"]: tool["function"] for body in everything for tool in body.get("tools", ())}
    assert tools["cities"]["description"] == "The cities that can be visited."
    assert tools["weather"]["description"].startswith("The weather in a city.")
    forms = [body["response_format"]["json_schema"] for body in everything if "response_format" in body]
    about = {form["name"]: form["schema"].get("description") for form in forms}
    assert about["KnockKnockJoke"] == "The two lines of a knock-knock joke that change from joke to joke."
    assert about["Summary"] == "What a text is about."


# Which tools


class Clerk(Agent):
    """A clerk."""

    @Tool.define
    def look_up(self, word: str) -> str:
        """Look a word up."""
        return word

    @Skill.define
    def translate(self, text: str) -> str:
        """Translate {text}"""
        raise NotHandled

    @Skill.define
    def shorten(self, text: str) -> str:
        """Shorten {text}"""
        raise NotHandled


def test_neither_methods_nor_skills_of_the_module_are_offered_where_no_tools_are_wanted(server: Server):
    with stack(server, tool_collection="none", system_prompt="brief"):
        Clerk().translate("this")
    assert server.bodies[0].keys() == {"model", "messages"}


# Processes


def requests_of_a_process(server: Server, folder: Path, seed: str, how: str) -> list[bytes]:
    """What a process of its own sends that runs everything, in a folder of its own, which is its home too."""
    folder.mkdir()
    server.clear()
    will_answer(server, all_replies() * 2)
    environment = {**os.environ, "PYTHONHASHSEED": seed, "HOME": str(folder), "PYTHONPATH": str(ROOT)}
    line = [sys.executable, "-m", "tests.handlers.provision.wire.process", server.url, how]
    done = subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return list(server.raw)


@pytest.mark.parametrize("how", ["http", pytest.param("litellm", marks=pytest.mark.slow)])
def test_two_processes_send_the_same_bytes(how: str, server: Server, tmp_path: Path):
    first = requests_of_a_process(server, tmp_path / "first-place", "1", how)
    other = requests_of_a_process(server, tmp_path / "other", "2", how)
    assert len(first) == 2 * len(all_replies())
    assert first == other
    assert not any(b"first-place" in request for request in first)
