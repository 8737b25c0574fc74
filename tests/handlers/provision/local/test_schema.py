"""Schemas as llama.cpp's grammar is given them: only what it knows, and never wider in what it does hold."""

import datetime
import re
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, TypeAdapter

from effectful_agents.handlers.provision.local.schema import known_pattern, narrowed


def body(schema: Any) -> dict[str, Any]:
    return narrowed(schema)[0]


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ({"minimum": 60, "maximum": 69}, {"minimum": 60, "maximum": 69}),
        ({"exclusiveMinimum": 2, "exclusiveMaximum": 5}, {"minimum": 3, "maximum": 4}),
        ({"exclusiveMinimum": 2.5}, {"minimum": 3, "maximum": 10**15}),
        ({"maximum": 4.5, "exclusiveMaximum": 9}, {"minimum": -(10**15), "maximum": 4}),
        ({"multipleOf": 7, "minimum": 0, "maximum": 70}, {"minimum": 0, "maximum": 70, "multipleOf": 7}),
    ],
)
def test_bounds_of_integers_are_written_without_exclusive_ones(given, written):
    assert body({"type": "integer", **given}) == {"type": "integer", **written}


def test_a_bound_that_llama_cpp_cannot_count_to_is_left_to_pydantic():
    assert body({"type": "integer", "exclusiveMinimum": 2**70}) == {"type": "integer"}
    assert body({"type": "number", "minimum": 1e20}) == {"type": "number"}


def test_numbers_keep_strict_bounds_and_have_an_end():
    assert body({"type": "number", "exclusiveMinimum": 0, "maximum": 1}) == {
        "type": "number",
        "exclusiveMinimum": 0,
        "maximum": 1,
        "multipleOf": 1e-06,
    }


def test_what_a_grammar_has_no_use_for_is_left_out():
    schema = {"type": "string", "title": "A", "description": "b", "default": "c", "examples": ["d"], "format": "email"}
    assert body({**schema, "maxLength": 9}) == {"type": "string", "maxLength": 9}


def test_members_that_nobody_named_are_not_invented():
    schema = {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]}
    assert body(schema)["additionalProperties"] is False


def test_what_is_computed_is_not_asked_for():
    total = {"type": "integer", "readOnly": True}

    assert list(body({"type": "object", "properties": {"a": {"type": "string"}, "total": total}})["properties"]) == [
        "a"
    ]


def test_a_dictionary_keeps_its_kind_of_values():
    values = {"type": "integer", "minimum": 0, "maximum": 9}
    assert body({"type": "object", "additionalProperties": values}) == {
        "type": "object",
        "additionalProperties": values,
    }


def test_keys_that_are_listed_become_members():
    schema = TypeAdapter(dict[Literal["red", "blue"], bool]).json_schema()
    assert list(body(schema)["properties"]) == ["red", "blue"]
    assert body(schema)["additionalProperties"] is False


def test_references_get_names_of_their_own_and_unknown_ones_admit_anything():
    schema = {
        "$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}},
        "type": "array",
        "items": {"anyOf": [{"$ref": "#/$defs/Node"}, {"$ref": "other.json"}]},
    }
    written, definitions = narrowed(schema, "mine_{}".format)
    assert written["items"] == {"anyOf": [{"$ref": "#/$defs/mine_Node"}, {}]}
    assert definitions["mine_Node"]["properties"]["next"] == {"$ref": "#/$defs/mine_Node"}


def test_a_list_of_kinds_is_a_union():
    assert body({"type": ["boolean", "null"]}) == {"anyOf": [{"type": "boolean"}, {"type": "null"}]}


class Pair(NamedTuple):
    a: bool
    b: bool


class Movie(TypedDict):
    name: str


class Model(BaseModel):
    code: Annotated[str, Field(pattern=r"^\d{3}$")]
    when: datetime.datetime
    pair: Pair
    movie: Movie | None = None


def test_the_schema_of_a_model_keeps_its_outline():
    written, definitions = narrowed(Model.model_json_schema())
    assert written["required"] == ["code", "when", "pair"]
    assert written["properties"]["code"] == {"type": "string", "pattern": "^[0-9]{3}$"}
    assert "T" in written["properties"]["when"]["pattern"]
    assert set(definitions) <= {"Pair", "Movie"}


@pytest.mark.parametrize(
    "pattern",
    [
        "abc",
        "^abc",
        "abc$",
        r"abc\$",
        "^(?=a)b$",
        "^(?i:a)$",
        "^a*?$",
        "^a|b$",
        r"^\bword$",
        r"^(a)\1$",
        r"^\p{L}$",
        "^a$b$",
        "^[a$",
        "^(a$",
    ],
)
def test_patterns_that_it_does_not_know_are_none(pattern):
    assert known_pattern(pattern) is None


@pytest.mark.parametrize("pattern", [r"^\d{3}$", r"^[\w.]+@\w+$", r"^(a|b\s)?c{2,3}$", r"^\+?[0-9-]+\.$", "^(?:x)$"])
def test_known_patterns_match_no_more_than_before(pattern):
    written = known_pattern(pattern)
    assert written is not None
    for text in ("123", "a.b@c", "ac", "cc", "b ccc", "+1-2.", "x", "", "é@é", "\u0663\u0663\u0663"):
        assert re.search(pattern, text) or not re.search(written, text)


_pieces = st.sampled_from(
    ["a", "[a-c]", r"\d", r"[\w-]", r"\s", r"\.", "(b|c)", "(?:ab)", "x{1,2}", "y?", "[^z]", "z+"]
)


@given(st.lists(_pieces, min_size=1, max_size=5).map("".join), st.text("abc1 .xyz-", max_size=6))
def test_rewriting_a_pattern_never_widens_it(middle, text):
    written = known_pattern(f"^{middle}$")
    assert written is not None
    assert re.search(f"^{middle}$", text) or not re.search(written, text)
    assert bool(re.search(f"^{middle}$", text, re.ASCII)) == bool(re.search(written, text)) or "\\s" in middle
