"""How a conversation with tools reads for a model that knows none."""

import json
from typing import Any

import pytest

from effectful_agents.errors import ConfigurationError, ResultDecodingError
from effectful_agents.handlers.provision.local.grammar import Said, SaidCall
from effectful_agents.handlers.provision.local.prompt import chat, said_before
from effectful_agents.messages import Message, ToolDefinition

TOOLS: list[ToolDefinition] = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "description": "The weather\n  in a city.",
            "parameters": {
                "type": "object",
                "$defs": {"City": {"enum": ["Rome", "Oslo"]}},
                "properties": {
                    "city": {"$ref": "#/$defs/City", "description": "Where."},
                    "days": {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}]},
                },
                "required": ["city"],
            },
        },
    }
]
SYSTEM: Message = {"role": "system", "content": "Be brief."}
QUESTION: Message = {"role": "user", "content": "Where is it warm?"}


def call(arguments: str, id: str = "c1") -> Any:
    function = {"name": "weather", "arguments": arguments}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": id, "type": "function", "function": function}]}


def result(text: str, id: str = "c1") -> Message:
    return {"role": "tool", "tool_call_id": id, "content": text}


def answer(text: str) -> Message:
    return {"role": "assistant", "content": text}


def sent_back(text: str) -> Message:
    return ResultDecodingError(ValueError("too cold"), {"role": "assistant", "content": text}).to_feedback_message()


def test_the_listing_of_the_tools_ends_the_system_message():
    text = chat([SYSTEM, QUESTION], TOOLS)[0]["content"]
    assert text.startswith("Be brief.\n\n")
    assert text.endswith(
        '- weather(city: "Rome" | "Oslo", days?: list of integer | null): The weather in a city.\n  city: Where.'
    )
    assert chat([QUESTION], TOOLS)[0] == {"role": "system", "content": text.removeprefix("Be brief.\n\n")}


def test_a_model_that_is_held_to_a_form_is_told_what_for_unless_somebody_said_something_else():
    said = chat([QUESTION], for_a_program=True)
    assert [message["role"] for message in said] == ["system", "user"]
    assert "value of a Python function" in said[0]["content"]
    with_tools = chat([QUESTION], TOOLS, for_a_program=True)[0]["content"]
    assert "use the tools" in with_tools
    assert with_tools.endswith("\n\n" + chat([QUESTION], TOOLS)[0]["content"])
    assert chat([SYSTEM, QUESTION], for_a_program=True) == [SYSTEM, QUESTION]


def test_without_tools_a_conversation_is_what_it_was():
    assert chat([SYSTEM, QUESTION, answer("Rome")]) == [SYSTEM, QUESTION, answer("Rome")]


def test_a_call_reads_as_the_model_wrote_it_and_a_result_comes_from_the_user():
    arguments = '{"city": "Rome", "days": [1]}'
    assistant, user = chat([QUESTION, call(arguments), result("warm")], TOOLS)[2:]
    assert assistant == {"role": "assistant", "content": f'{{"tool": "weather", "arguments": {arguments}}}'}
    assert user == {"role": "user", "content": "weather returned: warm"}


def test_several_results_are_one_message():
    calls = call("{}")
    calls["tool_calls"] += call("{}", "c2")["tool_calls"]
    written = chat([QUESTION, calls, result("warm"), result("cold", "c2")], TOOLS)
    assert [one["role"] for one in written] == ["system", "user", "assistant", "user"]
    assert written[-1]["content"] == "weather returned: warm\nweather returned: cold"


@pytest.mark.parametrize(("text", "shown"), [("Rome é", '"Rome é"'), ('{"value": 1}', '{"value": 1}'), ("{x", '"{x"')])
def test_answers_stand_in_the_envelope_where_there_are_tools(text, shown):
    assert chat([QUESTION, answer(text)], TOOLS)[-1]["content"] == f'{{"answer": {shown}}}'


def test_every_turn_begins_with_the_turn_before():
    conversation = [
        SYSTEM,
        QUESTION,
        call('{"city": "Rome"}'),
        result("warm"),
        call('{"city": "Oslo"}', "c2"),
        result("cold", "c2"),
        answer('{"value": "Oslo"}'),
        sent_back("Oslo"),
        answer('{"value": "Rome"}'),
        QUESTION,
    ]
    for end in range(2, len(conversation)):
        earlier, later = chat(conversation[:end], TOOLS), chat(conversation[: end + 1], TOOLS)
        assert json.dumps(later).startswith(json.dumps(earlier)[:-3])


def test_the_texts_of_a_message_are_joined():
    parts: Any = [{"type": "text", "text": "Where is "}, {"type": "text", "text": "Rome?"}]
    assert chat([{"role": "user", "content": parts}]) == [{"role": "user", "content": "Where is Rome?"}]


@pytest.mark.parametrize(("kind", "named"), [("image_url", "image"), ("input_audio", "audio"), ("file", "file")])
def test_anything_but_text_is_refused(kind, named):
    parts: Any = [{"type": kind, kind: {}}]
    with pytest.raises(ConfigurationError, match=f"reads text only.*{named}"):
        chat([{"role": "user", "content": parts}])


def test_only_calls_since_the_last_question_count_and_only_answered_ones():
    old, new, open_ = call('{"city": "Rome"}'), call('{"city": "Oslo"}', "c2"), call("{}", "c3")
    said = said_before([QUESTION, old, result("warm"), answer("Rome"), QUESTION, new, result("cold", "c2"), open_])
    assert said == Said([SaidCall("weather", {"city": "Oslo"})], [])


def test_an_answer_that_was_sent_back_does_not_end_the_call():
    said = said_before(
        [QUESTION, call('{"city": "Oslo"}'), result("cold"), answer('{"value": "Oslo"}'), sent_back("Oslo")]
    )
    assert said == Said([SaidCall("weather", {"city": "Oslo"})], [{"value": "Oslo"}])


def test_arguments_that_are_no_json_are_kept_as_text():
    assert said_before([QUESTION, call("{"), result("no")]) == Said([SaidCall("weather", "{")], [])


def test_deep_and_recursive_parameters_are_cut_short():
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}, "kind": {"const": "n"}, "any": True}}
    parameters = {"type": "object", "$defs": {"Node": node}, "properties": {"node": {"$ref": "#/$defs/Node"}}}
    definition: Any = {"type": "function", "function": {"name": "f", "parameters": parameters}}
    assert 'kind: "n", any: …}' in chat([QUESTION], [definition])[0]["content"]


def test_what_is_said_to_a_running_call_does_not_begin_another():
    call = {"id": "c", "type": "function", "function": {"name": "delete", "arguments": '{"path": "a"}'}}
    conversation = [
        {"role": "user", "content": "Tidy up."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "deleted"},
        {"role": "user", "content": "Go on."},
        {"role": "user", "content": "Quickly."},
    ]
    assert [said.name for said in said_before(conversation).calls] == ["delete"]
    answered = [*conversation, {"role": "assistant", "content": "Done."}, {"role": "user", "content": "Again."}]
    assert said_before(answered).calls == []
