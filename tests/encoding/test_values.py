import dataclasses
import datetime
import decimal
import io
import json
import math
import pathlib
import re
import uuid
from collections import Counter, OrderedDict, deque
from typing import Annotated, Any

import pydantic
import pytest
from pydantic_core import core_schema

from effectful_agents.encoding import decode, encode
from effectful_agents.errors import EncodingError
from tests.encoding.shapes import Box, Colour, Level, Person, Point, Tree


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (datetime.datetime(2026, 5, 1, 12, 0), "2026-05-01T12:00:00"),
        (datetime.timedelta(days=1), "P1D"),
        (decimal.Decimal("1.10"), "1.10"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (pathlib.PurePosixPath("a/b"), "a/b"),
        (re.compile("a+"), "a+"),
        (b"text", "text"),
        (Colour.RED, "red"),
        (Level.HIGH, 2),
        (Point(1), [1, 0]),
        (Box(Point(1, 2)), {"content": [1, 2]}),
        (Tree(1, [Tree(2)]), {"value": 1, "children": [{"value": 2, "children": [], "parent": None}], "parent": None}),
        (Person(name="Ann"), {"name": "Ann", "age": 30, "friends": [], "colour": None}),
        ({3, 1, 2}, [1, 2, 3]),
        (deque([1, {"b", "a"}]), [1, ["a", "b"]]),
        (OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
        (Counter("aab"), {"a": 2, "b": 1}),
        ({datetime.date(2026, 5, 1): 1, Level.LOW: 2, None: 3}, {"2026-05-01": 1, "1": 2, "None": 3}),
        (10**30, 10**30),
        (None, None),
    ],
    ids=lambda part: type(part).__name__,
)
def test_a_value_is_written_by_its_own_type_where_none_is_declared(value, written):
    encoded = encode(value)

    assert encoded == written
    assert type(encoded) is type(written)
    assert encode([value]) == [written]


def test_a_value_is_written_by_the_declared_type():
    cents = Annotated[int, pydantic.PlainSerializer(lambda amount: f"{amount / 100:.2f}")]

    assert encode(250, cents) == "2.50"
    assert encode({"price": 250}, dict[str, cents]) == {"price": "2.50"}


def test_a_dataclass_is_written_as_its_annotations_say_even_as_any():
    @dataclasses.dataclass
    class Order:
        price: Annotated[int, pydantic.PlainSerializer(str)]

    assert encode(Order(3)) == {"price": "3"}
    assert encode(Order(3), object) == {"price": "3"}


def test_aliases_are_written_as_they_are_read():
    class Item(pydantic.BaseModel):
        tags: set[str] = pydantic.Field(alias="theTags")

    item = Item(theTags={"b", "a"})

    assert encode(item) == {"theTags": ["a", "b"]}
    assert decode(json.dumps(encode(item)), Item) == item


class _Opaque:
    def __repr__(self) -> str:
        return "secret"


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (int, "type"),
        (_Opaque, "type"),
        (_Opaque(), "_Opaque"),
        (object(), "object"),
        (lambda: 1, "function"),
        (io.StringIO("a\nb"), "StringIO"),
        ((part for part in "ab"), "generator"),
        (iter([1]), "list_iterator"),
        (Ellipsis, "ellipsis"),
        (range(3), "range"),
    ],
    ids=lambda part: type(part).__name__,
)
@pytest.mark.parametrize("around", [lambda value: value, lambda value: {"a": [value]}, Box])
def test_a_value_without_a_form_is_refused_by_its_type_and_never_shown(value, name, around):
    with pytest.raises(EncodingError) as caught:
        encode(around(value))

    text = str(caught.value)
    assert name in text
    assert "secret" not in text
    assert "0x" not in text


def test_a_value_that_is_something_else_than_declared_is_refused_and_not_shown():
    with pytest.raises(EncodingError, match="`str` cannot be encoded; the type says a list, and") as caught:
        encode("secret", list[int])
    assert "secret" not in str(caught.value)


def test_a_value_that_contains_itself_is_refused():
    loop: list[Any] = []
    loop.append(loop)

    with pytest.raises(EncodingError, match="contains itself"):
        encode(loop)


@pytest.mark.parametrize(
    "value", [{1: "a", "1": "b"}, {"deep": [{None: 1, "None": 2}]}, {chr(0xD800): 1, chr(0xFFFD): 2}]
)
def test_keys_that_are_the_same_text_are_refused(value):
    with pytest.raises(EncodingError, match="same text"):
        encode(value)


def test_a_type_that_writes_fewer_keys_on_purpose_may():
    visible = pydantic.PlainSerializer(lambda items: {key: part for key, part in items.items() if key != "hidden"})

    assert encode({"hidden": 1, "a": {2}}, Annotated[dict[str, Any], visible]) == {"a": [2]}


def test_keys_that_become_the_same_safe_text_are_refused():
    surrogates = {chr(0xD800): 1, chr(0xD801): 2}

    for tp in (Any, dict[str, int], dict[str, Any]):
        with pytest.raises(EncodingError, match="same text"):
            encode(surrogates, tp)


def test_a_lone_surrogate_in_text_of_another_class_is_replaced_as_well():
    class Name(str):
        pass

    assert encode([Name("\ud800")]) == ["\ufffd"]


def test_a_lone_surrogate_deep_inside_is_replaced_as_well():
    @dataclasses.dataclass
    class Table:
        rows: Any

    assert encode(Table({"\ud800": 1})) == {"rows": {"\ufffd": 1}}


def test_a_serializer_that_fails_is_refused_by_the_type():
    def fail(_: Any) -> str:
        raise RuntimeError("secret")

    with pytest.raises(EncodingError, match=r"`int` cannot be encoded; \w+Error while"):
        encode(1, Annotated[int, pydantic.PlainSerializer(fail)])


def test_a_type_may_write_itself():
    class Fraction:
        @classmethod
        def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
            return core_schema.is_instance_schema(
                cls,
                serialization=core_schema.plain_serializer_function_ser_schema(lambda _: {"top": 1, "names": {"a"}}),
            )

    assert encode(Fraction()) == encode({"x": Fraction()})["x"] == {"top": 1, "names": ["a"]}


def test_a_type_may_write_less_than_it_holds():
    assert encode([{2, 1}, 3], Annotated[list[Any], pydantic.PlainSerializer(lambda parts: parts[1:])]) == [3]


def test_a_declared_type_that_is_no_json_is_refused():
    with pytest.raises(EncodingError, match="`ellipsis`"):
        encode(..., type(...))


def test_a_set_of_several_kinds_is_sorted_by_text():
    assert encode({"b", 2, None, "a", (1, 2)}) == ["a", "b", 2, [1, 2], None]


def test_lone_surrogates_become_replacement_characters():
    assert encode("a\ud800é") == "a\ufffdé"
    assert encode({"k\ud800": ["\udfff"]}) == {"k\ufffd": ["\ufffd"]}
    assert encode("\ud800", str) == "\ufffd"


@pytest.mark.parametrize(("number", "text"), [(math.nan, "NaN"), (math.inf, "Infinity"), (-math.inf, "-Infinity")])
def test_numbers_that_json_lacks_are_texts_that_decode(number, text):
    assert encode(number) == encode(number, float) == text
    assert encode({"a": [number]}) == encode({"a": [number]}, dict[str, Any]) == {"a": [text]}
    assert encode(Box(number)) == {"content": text}
    assert repr(decode(json.dumps(encode([number])), list[float])) == repr([number])


def test_subclasses_of_the_plain_types_become_plain():
    class Name(str):
        pass

    class Rows(list):
        pass

    encoded = encode({Name("a"): Rows([Name("b"), True])})

    assert encoded == {"a": ["b", True]}
    assert {type(part) for part in encoded["a"]} == {str, bool}
