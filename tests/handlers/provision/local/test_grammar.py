"""What a reply may be: calls, an answer or both, without what was said before."""

from typing import Any

import pytest

from effectful_agents.errors import ConfigurationError
from effectful_agents.handlers.provision.local.grammar import Said, SaidCall, answer_schema, envelope_schema
from effectful_agents.messages import AUTO, ResponseFormat, ToolChoice, ToolDefinition

CITIES = ["Rome", "Oslo"]


def tool(name: str, required: bool = True, **properties: Any) -> ToolDefinition:
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    if required:
        schema["required"] = list(properties)
    return {"type": "function", "function": {"name": name, "description": "It.", "parameters": schema}}


WEATHER = tool("weather", city={"enum": CITIES})
LIST = tool("cities")
SEARCH = tool("search", query={"type": "string"})
FLAG = tool("flag", city={"$ref": "#/$defs/City"}, on={"type": "boolean"})
FLAG["function"]["parameters"]["$defs"] = {"City": {"enum": CITIES}}


def form(schema: dict[str, Any]) -> ResponseFormat:
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}


def kinds(schema: dict[str, Any]) -> list[str]:
    """The names of the tools that a reply may call, and `answer`."""
    names = []
    for choice in schema.get("anyOf", [schema]):
        properties = choice["properties"]
        names.append(properties["tool"]["const"] if "tool" in properties else "answer")
    return names


def arguments(schema: dict[str, Any], name: str) -> dict[str, Any]:
    choices = [choice["properties"] for choice in schema.get("anyOf", [schema])]
    return next(one["arguments"] for one in choices if one.get("tool") == {"const": name})


@pytest.mark.parametrize(
    ("choice", "allowed"),
    [
        (AUTO, ["weather", "cities", "answer"]),
        (ToolChoice("none"), ["answer"]),
        (ToolChoice("required"), ["weather", "cities"]),
        (ToolChoice("named", "cities"), ["cities"]),
    ],
)
def test_the_tool_choice_says_what_a_reply_may_be(choice, allowed):
    assert kinds(envelope_schema([WEATHER, LIST], choice, None)) == allowed


def test_a_tool_that_is_not_offered_cannot_be_chosen():
    with pytest.raises(ConfigurationError, match="`fly`; the tools on offer are weather, cities"):
        envelope_schema([WEATHER, LIST], ToolChoice("named", "fly"), None)


def test_an_answer_without_a_form_is_free_text():
    assert answer_schema(None) is None
    assert answer_schema({"type": "text"}) is None
    schema = envelope_schema([LIST], ToolChoice("none"), None)
    assert schema["properties"]["answer"] == {"type": "string"}


def test_a_json_object_may_be_any_object():
    assert answer_schema({"type": "json_object"}) == {"type": "object", "additionalProperties": True}


def test_values_of_an_enumeration_are_struck_one_by_one():
    said = Said([SaidCall("weather", {"city": "Rome"})])
    assert arguments(envelope_schema([WEATHER], AUTO, None, said), "weather")["properties"] == {
        "city": {"enum": ["Oslo"]}
    }


def test_a_tool_goes_when_all_its_calls_were_answered():
    said = Said([SaidCall("weather", {"city": city}) for city in CITIES] + [SaidCall("cities", {})])
    assert kinds(envelope_schema([WEATHER, LIST, SEARCH], AUTO, None, said)) == ["search", "answer"]


def test_combinations_of_few_values_are_struck_too():
    said = Said([SaidCall("flag", {"on": True, "city": "Rome"})])
    left = arguments(envelope_schema([FLAG], AUTO, None, said), "flag")["anyOf"]
    found = [{name: value["const"] for name, value in one["properties"].items()} for one in left]
    assert found == [
        {"city": "Rome", "on": False},
        {"city": "Oslo", "on": False},
        {"city": "Oslo", "on": True},
    ]


def test_small_ranges_of_integers_are_values_like_others():
    dice = tool("dice", number={"type": "integer", "minimum": 2, "maximum": 6, "multipleOf": 2})
    left = arguments(envelope_schema([dice], AUTO, None, Said([SaidCall("dice", {"number": 4})])), "dice")
    assert left["properties"]["number"] == {"enum": [2, 6]}


@pytest.mark.parametrize("again", [SEARCH, tool("search", required=False, query={"enum": CITIES})])
def test_a_call_that_cannot_be_struck_goes_when_it_was_made_twice(again):
    once = SaidCall("search", {"query": "Rome"})
    assert kinds(envelope_schema([again], AUTO, None, Said([once]))) == ["search", "answer"]
    assert kinds(envelope_schema([again], AUTO, None, Said([once, SaidCall("search", {})]))) == ["search", "answer"]
    assert kinds(envelope_schema([again], AUTO, None, Said([once, once]))) == ["answer"]


@pytest.mark.parametrize("choice", [ToolChoice("required"), ToolChoice("named", "cities")])
def test_where_nothing_else_is_left_a_call_may_be_repeated(choice):
    assert kinds(envelope_schema([LIST], choice, None, Said([SaidCall("cities", {})]))) == ["cities"]


def test_an_answer_that_was_sent_back_is_struck():
    wanted = form(
        {
            "type": "object",
            "properties": {"value": {"type": "integer", "minimum": 1, "maximum": 3}},
            "required": ["value"],
        }
    )
    assert answer_schema(wanted, Said(answers=[{"value": 2}]))["properties"]["value"] == {"enum": [1, 3]}
    everything = Said(answers=[{"value": value} for value in (1, 2, 3)])
    assert answer_schema(wanted, everything) == answer_schema(wanted)
    enveloped = envelope_schema([LIST], ToolChoice("none"), wanted, Said(answers=[{"value": 2}]))
    assert enveloped["properties"]["answer"]["properties"]["value"] == {"enum": [1, 3]}


def test_definitions_of_the_same_name_stay_apart():
    other = tool("other", city={"$ref": "#/$defs/City"})
    other["function"]["parameters"]["$defs"] = {"City": {"type": "boolean"}}
    schema = envelope_schema([FLAG, other], AUTO, form({"$ref": "#/$defs/City", "$defs": {"City": {"type": "null"}}}))
    values = {
        name: schema["$defs"][arguments(schema, name)["properties"]["city"]["$ref"].removeprefix("#/$defs/")]
        for name in ("flag", "other")
    }
    assert values == {"flag": {"enum": CITIES}, "other": {"type": "boolean"}}
    assert schema["$defs"]["answer_City"] == {"type": "null"}


def test_a_tool_without_parameters_takes_none():
    bare: ToolDefinition = {"type": "function", "function": {"name": "bare"}}  # ty: ignore
    assert arguments(envelope_schema([bare], AUTO, None), "bare")["additionalProperties"] is False
