import dataclasses
import datetime
import decimal
import enum
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable
from typing import Annotated, Any, Literal

import annotated_types
import attrs
import jsonschema
import pydantic
import pytest

from effectful_agents.encoding import Encodable, decode, encode, json_schema, type_adapter
from effectful_agents.encoding.strict import is_strict, strict_form
from effectful_agents.errors import EncodingError
from tests.encoding.shapes import Address, Box, Circle, Colour, Everything, Json, Level, Person, Point, Shape, Tree


def test_simple_types_have_simple_schemas():
    assert json_schema(str) == {"type": "string"}
    assert json_schema(bool) == {"type": "boolean"}
    assert json_schema(None) == {"type": "null"}
    assert json_schema(Any) == {}
    assert json_schema(int | None) == {"anyOf": [{"type": "integer"}, {"type": "null"}]}
    assert json_schema(dict[str, float]) == {"type": "object", "additionalProperties": {"type": "number"}}
    assert json_schema(tuple[int, ...]) == {"type": "array", "items": {"type": "integer"}}
    assert json_schema(set[int]) == {"type": "array", "items": {"type": "integer"}}
    assert json_schema(Literal["a", 1]) == {"enum": ["a", 1]}
    assert json_schema(Colour) == {"type": "string", "enum": ["red", "blue"]}
    assert json_schema(Annotated[int, pydantic.Field(ge=1, description="how many")]) == {
        "type": "integer",
        "description": "how many",
        "minimum": 1,
    }


def test_a_tuple_names_the_place_of_each_part_and_a_named_tuple_its_fields():
    assert json_schema(tuple[int, str])["prefixItems"] == [{"type": "integer"}, {"type": "string"}]
    assert json_schema(Point) == {
        "type": "array",
        "prefixItems": [
            {"type": "integer", "description": "x"},
            {"type": "integer", "description": "y", "default": 0},
        ],
        "minItems": 1,
        "maxItems": 2,
    }


def test_objects_are_closed_and_titles_left_out():
    assert json_schema(Address) == {
        "type": "object",
        "properties": {"street": {"type": "string"}, "number": {"type": "integer"}},
        "required": ["street"],
        "additionalProperties": False,
    }


def test_a_property_named_title_stays():
    @dataclasses.dataclass
    class Book:
        title: str
        default: int = 1

    assert list(json_schema(Book)["properties"]) == ["title", "default"]


def test_a_type_that_allows_extras_is_not_closed():
    class Open(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(extra="allow")
        a: int

    assert json_schema(Open)["additionalProperties"] is True


def test_docstrings_that_somebody_wrote_are_descriptions():
    class Plain(enum.Enum):
        A = 1

    assert json_schema(Person)["description"] == "Somebody."
    assert json_schema(Everything)["description"] == "All that is not simple."
    for tp in (Tree, Circle, Address, Colour, Plain, Level, Point):
        assert "description" not in json_schema(tp)


def test_descriptions_and_defaults_of_fields_are_shown():
    properties = json_schema(Person)["properties"]

    assert properties["name"] == {"type": "string", "description": "first and last"}
    assert properties["age"] == {"type": "integer", "minimum": 0, "default": 30}


def test_a_recursive_type_refers_to_itself_and_its_root_is_an_object():
    schema = json_schema(Tree)

    assert schema["type"] == "object"
    assert schema["properties"]["children"] == {
        "type": "array",
        "items": {"$ref": "#/$defs/Tree"},
        "default": [],
    }
    assert set(schema["$defs"]) == {"Tree"}


def test_what_is_used_once_stands_where_it_is_used():
    schema = json_schema(list[Encodable[Circle]])

    assert "$defs" not in schema
    assert schema["items"]["properties"]["radius"] == {"type": "integer"}


def test_definitions_with_the_same_name_are_told_apart():
    def make(field: str) -> Any:
        return dataclasses.make_dataclass("Thing", [(field, int)])

    one, other = make("a"), make("b")
    schema = json_schema(tuple[one, one, other, other])

    assert list(schema["$defs"]) == ["Thing", "Thing_2"]


def test_a_recursive_alias_is_described():
    assert json_schema(Json)["$defs"].keys() == {"Json"}
    jsonschema.validate({"a": [1, None, {"b": "c"}]}, json_schema(Json))


def test_a_recursive_type_through_a_named_alias_is_described():
    schema = json_schema(list[Encodable[Tree]])

    assert schema["items"] == {"$ref": "#/$defs/Tree"}


def test_every_kind_of_value_fits_the_schema_of_its_type():
    value = Everything(
        tree=Tree(1, [Tree(2)]),
        box=Box(3),
        shape=Circle(4),
        point=Point(1, 2),
        colours=frozenset(Colour),
        level=Level.HIGH,
    )

    jsonschema.validate(encode(value, Everything), json_schema(Everything))


def test_tagged_unions_are_any_of():
    assert [part["properties"]["kind"]["const"] for part in json_schema(Shape)["anyOf"]] == ["square", "circle"]


def test_alternatives_keep_the_order_in_which_they_are_written():
    assert json_schema(int | str) != json_schema(str | int)
    assert json_schema(Literal["a", "b"]) != json_schema(Literal["b", "a"])
    assert json_schema(list[int | str]) != json_schema(list[str | int])
    assert json_schema(Literal[1]) != json_schema(Literal[True])


def test_schemas_and_adapters_are_made_once():
    assert json_schema(Tree) is json_schema(Tree)
    assert json_schema(dict[str, list[int]]) is json_schema(dict[str, list[int]])
    assert type_adapter(list[int] | None) is type_adapter(list[int] | None)


def test_metadata_need_not_be_hashable():
    tp = Annotated[int, {"unhashable": []}, pydantic.Field(gt=3)]

    assert json_schema(tp) is json_schema(tp)
    assert json_schema(tp) == {"type": "integer", "exclusiveMinimum": 3}
    assert json_schema(Annotated[int, pydantic.Field(gt=4)]) == {"type": "integer", "exclusiveMinimum": 4}


def test_thousands_of_local_classes_do_not_fill_the_memory():
    import gc
    import weakref

    def make() -> weakref.ref:
        made = dataclasses.make_dataclass("Local", [("a", int)])
        type_adapter(made)
        return weakref.ref(made)

    first = make()
    for _ in range(1100):
        make()
    gc.collect()

    assert first() is None


@pytest.mark.parametrize(
    "tp", [socket.socket, list[socket.socket], dict[str, socket.socket | None], Encodable[socket.socket]]
)
def test_a_type_without_a_form_is_refused_by_name(tp):
    with pytest.raises(EncodingError, match=r"socket.*: socket\.socket has no encoding; register one with"):
        json_schema(tp)


def test_a_union_is_refused_when_one_alternative_has_no_schema():
    with pytest.raises(EncodingError, match=r"int \| Callable.*: a function is not written as JSON"):
        json_schema(int | Callable[[int], str])


@pytest.mark.parametrize("tp", [type, type[int], list[type[Tree]]])
def test_classes_as_values_are_refused(tp):
    with pytest.raises(EncodingError, match=r"type.*: a class is no value"):
        json_schema(tp)


def test_a_forward_reference_to_nothing_is_refused_by_name():
    Lost = dataclasses.make_dataclass("Lost", [("where", "Nowhere")])

    with pytest.raises(EncodingError, match=r"`Lost` has no form.*Nowhere"):
        type_adapter(Lost)
    with pytest.raises(EncodingError, match="Nowhere"):
        json_schema("Nowhere")


def test_a_default_that_is_no_json_is_not_shown():
    class Model(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)
        a: Any = object()

    assert json_schema(Model)["properties"] == {"a": {}}


def test_strict_needs_closed_objects_with_all_properties_required():
    @dataclasses.dataclass
    class Strict:
        a: int
        b: list[str]
        c: Colour | None

    @dataclasses.dataclass
    class Told:
        first: Strict
        second: Annotated[Strict, pydantic.Field(description="beside a reference")]

    assert is_strict(json_schema(Strict))
    assert is_strict(json_schema(Told))
    for tp in (
        Person,
        dict[str, int],
        Any,
        tuple[int, str],
        tuple[()],
        list,
        Annotated[str, annotated_types.Len(1, 3)],
    ):
        assert not is_strict(json_schema(tp)), tp


_PROGRAM = """
import json
from effectful_agents.encoding import answer_codec, encode, json_schema
from tests.encoding.shapes import *
for tp in (Everything, Person, Tree, Json, Shape, list[Encodable[Everything]], tuple[Everything, Person, Colour]):
    print(json.dumps(json_schema(tp)))
    print(json.dumps(answer_codec(tp).response_format))
print(json.dumps(encode({"a": {"x", "y", "zz", "wwww"}, "b": frozenset(Colour)})))
"""


def test_every_process_writes_the_same_bytes(pytestconfig):
    def run(seed: str) -> str:
        return subprocess.run(
            [sys.executable, "-c", _PROGRAM],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(pytestconfig.rootpath)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    outputs = {run(seed) for seed in ("0", "1", "42")}

    assert len(outputs) == 1
    assert outputs.pop().count("\n") == 15


def test_importing_builds_no_adapter():
    program = """
import pydantic
def refuse(*args, **kwargs): raise AssertionError
pydantic.TypeAdapter.__init__ = refuse
import effectful_agents.encoding
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@attrs.define
class Cup:
    size: int


class Mode(enum.Flag):
    READ = 1


@pytest.mark.parametrize(
    "tp",
    [
        *(bytes, decimal.Decimal, datetime.date, Level, Mode, Literal[1, None], dict[tuple[int, int], int], Cup, Tree),
        *(re.Pattern[str], Iterable[int], bytearray),
    ],
)
def test_what_is_said_about_a_type_is_told_whatever_takes_its_place(tp):
    """The forms that this package puts in the place of pydantic's keep the metadata around them."""
    said = Annotated[tp, pydantic.Field(description="a word")]

    for schema in (json_schema(said), json_schema(list[said])["items"]):
        assert "a word" in schema["description"]
    if tp is not Cup:
        replaced = Annotated[tp, pydantic.WithJsonSchema({"type": "string", "format": "other"})]
        assert json_schema(list[replaced])["items"] == {"type": "string", "format": "other"}


def test_limits_that_schemas_have_no_words_for_are_said():
    since = Annotated[datetime.date, annotated_types.Ge(datetime.date(2026, 1, 1))]

    assert json_schema(since)["description"] == "at least 2026-01-01"
    assert (
        json_schema(Annotated[decimal.Decimal, annotated_types.Gt(0)])["description"]
        == "a decimal number, greater than 0"
    )
    assert json_schema(Annotated[bytes, annotated_types.MaxLen(3)])["description"].endswith("; at most 3 bytes")


def test_what_a_class_computes_is_shown_and_need_not_come_back():
    @dataclasses.dataclass
    class Bill:
        net: int
        gross: int = dataclasses.field(init=False)
        rate: dataclasses.InitVar[int] = 10

        def __post_init__(self, rate: int) -> None:
            self.gross = self.net + rate

    assert json_schema(Bill)["properties"]["gross"] == {"type": "integer", "readOnly": True}
    assert json_schema(Bill)["required"] == ["net"]
    assert encode(Bill(1)) == {"net": 1, "gross": 11}
    assert decode('{"net": 1, "gross": 11}', Bill) == Bill(1)
    assert decode('{"net": 1, "rate": 20}', Bill).gross == 21


def test_a_method_that_writes_one_field_leaves_the_others_to_their_types():
    class Parcel(pydantic.BaseModel):
        weight: int
        key: bytes
        places: dict[tuple[int, int], set[str]] = {}
        secret: str = pydantic.Field(default="x", exclude=True)

        @pydantic.field_serializer("weight")
        def in_kilograms(self, weight: int) -> str:
            return f"{weight} kg"

        @pydantic.computed_field
        def label(self) -> bytes:
            return b"\xfe"

    assert encode(Parcel(weight=2, key=b"\xff", places={(1, 2): {"b", "a"}})) == {
        "weight": "2 kg",
        "key": "data:;base64,/w==",
        "places": [{"key": [1, 2], "value": ["a", "b"]}],
        "label": "data:;base64,/g==",
    }


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"minLength": 1, "maxLength": 80}, "1 to 80 characters"),
        ({"minLength": 0, "maxLength": 1}, "at most 1 character"),
        ({"maxLength": 3}, "at most 3 characters"),
        ({"minLength": 1}, "at least 1 character"),
        ({"minLength": 2, "maxLength": 2}, "exactly 2 characters"),
        ({"minLength": 0}, None),
    ],
)
def test_strict_mode_says_in_few_words_how_long_a_text_is(limits, words):
    schema = {"type": "object", "properties": {"a": {"type": "string", **limits}}, "required": ["a"]}
    assert strict_form(schema).schema["properties"]["a"].get("description") == words
