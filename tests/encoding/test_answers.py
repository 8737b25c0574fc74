import dataclasses
import json
import re
from typing import Annotated, Any, Literal, NewType

import jsonschema
import pydantic
import pytest

from effectful_agents.encoding import Encodable, answer_codec, strict_response_format
from effectful_agents.errors import EncodingError
from tests.encoding import providers
from tests.encoding.shapes import Address, Box, Circle, Colour, Json, Level, Person, Point, Shape, Square, Tree

Name = NewType("Name", str)


def decode(content: str | None, tp: Any) -> Any:
    return answer_codec(tp).decode(content)


def schema_of(tp: Any) -> Any:
    response_format = answer_codec(tp).response_format
    assert response_format is not None
    return response_format.get("json_schema")


@pytest.mark.parametrize("tp", [str, Encodable[str], Name, Annotated[str, pydantic.Field(min_length=2)]])
def test_text_is_the_content_as_it_is(tp):
    assert answer_codec(tp).response_format is None
    for content in ('  "quoted"\n', '{"value": "x"}', "```json\n1\n```"):
        assert decode(content, tp) == content


def test_text_with_metadata_is_validated():
    with pytest.raises(ValueError, match="at most 3 characters"):
        decode("four", Annotated[str, pydantic.Field(max_length=3)])


@pytest.mark.parametrize("content", [None, "", " \n\t "])
@pytest.mark.parametrize("tp", [str, int, Person, list[int], Colour, Any, Name])
def test_nothing_is_no_answer(content, tp):
    with pytest.raises(ValueError, match="empty answer"):
        decode(content, tp)


@pytest.mark.parametrize("content", [None, "", " \n\t "])
@pytest.mark.parametrize(
    "tp",
    [
        str | None,
        int | None,
        Tree | None,
        Literal["a", None],
        Encodable[int | None],
        None,
        Json,
        list[int] | None | str,
    ],
)
def test_nothing_is_none_where_the_type_admits_it(content, tp):
    assert decode(content, tp) is None


def test_for_none_anything_is_none():
    assert answer_codec(None).response_format is None
    assert answer_codec(type(None)).response_format is None
    assert decode("Done!", None) is None


def test_an_object_is_asked_for_as_it_is_and_anything_else_in_a_wrapper():
    assert schema_of(Tree)["schema"]["properties"].keys() == {"value", "children", "parent"}
    assert schema_of(dict[str, int])["schema"] == {"type": "object", "additionalProperties": {"type": "integer"}}
    for tp in (int, list[Tree], Colour, Shape, Tree | None, Json, Any, Point):
        schema = schema_of(tp)["schema"]
        assert (schema["type"], list(schema["properties"]), schema["required"]) == ("object", ["value"], ["value"])
        assert schema["additionalProperties"] is False
        jsonschema.Draft202012Validator.check_schema(schema)


def test_the_name_is_one_that_providers_take():
    for tp in (
        int,
        list[Tree | None],
        Literal["a b", "é"],
        Box[int],
        Annotated[int, 3],
        dict[str, dict[str, dict[str, Any]]],
    ):
        assert re.fullmatch("[a-zA-Z0-9_-]{1,64}", schema_of(tp)["name"])
    assert schema_of(Tree)["name"] == "Tree"


def test_strict_is_said_where_the_schema_allows_it():
    assert schema_of(int)["strict"]
    assert schema_of(list[Colour])["strict"]
    assert not schema_of(Person)["strict"]
    assert not schema_of(Any)["strict"]
    assert answer_codec(Colour).loose_because is None
    assert answer_codec(Any).loose_because == "any value at all has no strict form"
    assert answer_codec(dict[str, int]).loose_because == ("a mapping has no strict form: no schema can name its keys")
    assert answer_codec(Person).loose_because == "it has to be rewritten for that"


def strict_schema_of(tp: Any) -> Any:
    """What a provider with a strict mode is sent."""
    response_format = answer_codec(tp).response_format
    assert response_format is not None
    sent = strict_response_format(response_format).get("json_schema", {})
    assert sent.get("strict")
    assert strict_response_format(response_format) is strict_response_format(response_format)
    return sent["schema"]


def test_what_has_no_strict_form_is_sent_as_it_is():
    for tp in (Any, list, dict[str, int], list[dict[str, Any]]):
        form = answer_codec(tp).response_format
        assert form is not None
        assert strict_response_format(form) is form


def test_in_strict_form_null_stands_for_a_default_unless_the_type_has_a_null_itself():
    properties = strict_schema_of(Person)["properties"]

    assert strict_schema_of(Person)["required"] == list(properties)
    assert properties["age"] == {
        "description": "null for the default, 30",
        "anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}],
    }
    assert decode('{"name": "Ann", "age": null, "friends": null, "colour": null}', Person) == Person(name="Ann")


def test_what_strict_mode_does_not_know_is_said_in_the_description_and_enforced():
    tp = tuple[int, Annotated[str, pydantic.Field(max_length=3)]]

    assert strict_schema_of(tp)["properties"]["value"] == {
        "type": "array",
        "description": "in this order: integer, string",
        "items": {"anyOf": [{"type": "integer"}, {"type": "string", "description": "at most 3 characters"}]},
        "minItems": 2,
        "maxItems": 2,
    }
    for content in ('{"value": ["abc", 1]}', '{"value": [1, "abcd"]}', '{"value": [1, "abc", 2]}'):
        with pytest.raises(ValueError, match=r"value"):
            decode(content, tp)


@dataclasses.dataclass
class Stock:
    shelves: list[Level]
    pairs: set[tuple[int, int]]
    nested: tuple[tuple[int, str], ...] = ()
    label: Annotated[str, pydantic.Field(max_length=3)] = "abc"


def test_the_strict_form_of_sets_and_nested_tuples_is_within_what_strict_modes_take():
    schema = strict_schema_of(Stock)

    assert providers.openai_strict(schema) == []
    assert schema["properties"]["label"]["description"] == ("at most 3 characters (null for the default, abc)")
    content = {"shelves": [1], "pairs": [[1, 2]], "nested": [[1, "a"]], "label": None}
    jsonschema.validate(content, schema)
    assert decode(json.dumps(content), Stock) == Stock([Level.LOW], {(1, 2)}, ((1, "a"),))


def test_a_key_that_may_be_absent_has_no_strict_form():
    assert answer_codec(Address).loose_because == (
        "`number` may be absent, and has no default that null could stand for"
    )


@pytest.mark.parametrize(
    ("tp", "content", "value"),
    [
        (int, '{"value": 7}', 7),
        (int, "7", 7),
        (int, " 7\n", 7),
        (int, '"7"', 7),
        (int, '"{\\"value\\": 7}"', 7),
        (int, '```json\n{"value": 7}\n```', 7),
        (int, "```\n7\n```", 7),
        (bool, "True", True),
        (float, "1.5", 1.5),
        (Literal["Paris", "Rome"], '{"value": "Paris"}', "Paris"),
        (Literal["Paris", "Rome"], '"Paris"', "Paris"),
        (Literal["Paris", "Rome"], "Paris", "Paris"),
        (Literal["Paris", "Rome"], "Paris\n", "Paris"),
        (Colour, "blue", Colour.BLUE),
        (Level, "2", Level.HIGH),
        (list[int], "[1, 2]", [1, 2]),
        (Point, '{"value": [1, 2]}', Point(1, 2)),
        (Shape, '{"value": {"radius": 1, "kind": "circle"}}', Circle(1)),
        (Shape, '{"side": 2, "kind": "square"}', Square(2)),
        (Tree, '```json\n{"value": 1}\n```', Tree(1)),
        (Tree, '"{\\"value\\": 1}"', Tree(1)),
        (Tree | None, '{"value": null}', None),
        (Tree | None, '{"value": {"value": 2}}', Tree(2)),
        (str | None, "some text", "some text"),
        (str | None, '{"value": "some text"}', "some text"),
        (dict[str, int], '{"value": 1}', {"value": 1}),
        (Any, '{"value": {"a": 1}}', {"a": 1}),
        (Any, '{"value": 1, "other": 2}', {"value": 1, "other": 2}),
    ],
)
def test_a_value_is_read_with_and_without_its_packaging(tp, content, value):
    decoded = decode(content, tp)

    assert decoded == value
    assert type(decoded) is type(value)


@pytest.mark.parametrize("tp", [str | None, Any, Json, Colour | str])
@pytest.mark.parametrize("content", ['{"value": "Par', '"Par', "[1, 2", '```json\n{"value'])
def test_json_that_was_cut_is_no_bare_text(tp, content):
    with pytest.raises(ValueError, match="Invalid JSON"):
        decode(content, tp)


@pytest.mark.parametrize(
    ("tp", "content", "message"),
    [
        (
            int,
            '{"value": "x"}',
            'value: Input should be a valid integer; it is "x"',
        ),
        (int, '{"values": 7}', "value is missing\nvalues is not known"),
        (int, "seven", 'Input should be a valid integer; it is "seven"'),
        (int, "7.5", "Input should be a valid integer; it is 7.5"),
        (Colour, "green", "Input should be 'red' or 'blue'; it is \"green\""),
        (Tree, '{"value": 1, "children": [{}]}', "children[0].value is missing"),
        (
            Shape,
            '{"radius": "x", "kind": "circle"}',
            'radius: Input should be a valid integer; it is "x"',
        ),
    ],
)
def test_an_error_speaks_of_the_form_that_the_model_chose(tp, content, message):
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        decode(content, tp)
    assert str(caught.value) == message


def test_a_lone_surrogate_does_no_harm():
    assert decode('{"value": ["a\ud800"]}', list[str]) == ["a\ufffd"]
    assert decode("\ud800", Annotated[str, pydantic.Field(max_length=1)]) == "\ufffd"


def test_validators_see_the_context():
    def known(number: int, info: pydantic.ValidationInfo) -> int:
        return info.context[number]

    codec = answer_codec(Annotated[int, pydantic.AfterValidator(known)])

    assert codec.decode('{"value": 1}', context=["a", "b"]) == "b"
    assert codec.decode("0", context=["a", "b"]) == "a"


def test_codecs_are_made_once():
    assert answer_codec(list[int]) is answer_codec(list[int])
    assert answer_codec(Tree) is answer_codec(Tree)


def test_a_type_without_a_form_is_refused():
    with pytest.raises(EncodingError, match="_Socket has no encoding; register one"):
        answer_codec(type("_Socket", (), {}))
