"""A value of a union is written by an alternative that it is of, and never by one that takes anything."""

import dataclasses
import datetime
import decimal
import enum
import json
import re
from typing import Annotated, Any, Literal

import pydantic
import pytest
from pydantic import AfterValidator, BeforeValidator, PlainSerializer, PlainValidator, WrapSerializer

from effectful_agents.encoding import decode, encode
from effectful_agents.errors import EncodingError
from tests.encoding.lawful import drawn, law
from tests.encoding.sameness import same
from tests.encoding.test_table import Row, every_row

Marker = Literal["\x00marker"]


@every_row
def test_a_literal_beside_a_type_changes_nothing(row: Row):
    alone = encode(row.value, row.tp)

    assert same(encode(row.value, Marker | row.tp), alone)
    assert same(encode([row.value, "\x00marker"], list[Marker | row.tp]), [alone, "\x00marker"])


@law(examples=40, many=400)
def test_a_literal_beside_any_type_changes_nothing(recipe, data):
    case, value = drawn(recipe, data)

    assert same(encode(value, Marker | case.tp), encode(value, case.tp))


def as_text(value: Any) -> str:
    return "written by a serializer"


ANY_VALUE = PlainSerializer(as_text)


@every_row
def test_a_serializer_that_takes_anything_is_asked_about_its_own_type_only(row: Row):
    @dataclasses.dataclass
    class Mine:
        a: int

    own: Any = Annotated[Mine, ANY_VALUE]

    assert same(encode(row.value, own | row.tp), encode(row.value, row.tp))
    assert encode(Mine(1), own | row.tp) == "written by a serializer"


@pytest.mark.parametrize(
    ("tp", "value", "other"),
    [
        (int, 1, True),
        (float, 1.5, "a"),
        (bool, True, 1),
        (str, "a", 1),
        (bytes, b"a", "a"),
        (datetime.date, datetime.date(2026, 5, 1), datetime.datetime(2026, 5, 1)),
        (list[int], [1], ["a"]),
        (set[int], {1}, [1]),
        (tuple[int, str], (1, "a"), (1, 2)),
        (tuple[int, *tuple[str, ...]], (1, "a", "b"), ("a", "b")),
        (dict[str, int], {"a": 1}, {"a": "b"}),
        (int | None, None, "a"),
        (Literal["a", 1], 1, True),
        (Literal["a"], "a", "b"),
        (list[int] | dict[str, int], {"a": 1}, {"a": "b"}),
        (pydantic.Json[dict[str, int]], {"a": 1}, {"a": "b"}),
        (re.Pattern, re.compile("a"), "a"),
    ],
    ids=str,
)
def test_what_is_not_of_the_type_is_not_handed_to_its_serializer(tp, value, other):
    own: Any = Annotated[tp, ANY_VALUE]
    assert encode(value, own) == "written by a serializer"
    assert encode([value], list[own | float | str | bytes]) == ["written by a serializer"]
    with pytest.raises(EncodingError):
        encode(other, own)


def test_functions_that_keep_the_kind_are_taken_to_and_others_come_last():
    kept = Annotated[int, AfterValidator(lambda value: value), PlainSerializer(lambda value: f"#{value}")]
    changed = Annotated[int, AfterValidator(str), PlainSerializer(lambda value: f"#{value}")]
    opaque = Annotated[int, BeforeValidator(str), PlainValidator(str), PlainSerializer(lambda value: f"#{value}")]

    assert encode([1, "a"], list[kept | str | int]) == ["#1", "a"]
    assert encode(["1", 2], list[changed | float]) == ["#1", "#2"]
    assert encode(["1", 2], list[opaque | str]) == ["1", "#2"]
    assert encode("1", changed) == "#1"


def test_a_serializer_around_another_form_is_asked_alike():
    around = Annotated[int, WrapSerializer(lambda value, write: {"n": value})]

    assert encode([1, "a"], list[around | str]) == [{"n": 1}, "a"]
    assert encode(["a"], list[Annotated[int, ANY_VALUE]] | list[str]) == ["a"]


def test_a_literal_of_texts_is_held_to_its_texts():
    assert encode(["a", "b"], list[Literal["a", "b"]]) == ["a", "b"]
    for value, tp in (([5], list[Literal["a"]]), ("b", Literal["a"]), (5, Literal["a"] | None), ({"b": 1}, dict)):
        if tp is dict:
            tp = dict[Literal["a"], int]
        with pytest.raises(EncodingError, match="one of a few texts"):
            encode(value, tp)


def test_what_only_a_function_reads_is_written_by_its_own_type():
    read = Annotated[Any, PlainValidator(lambda value: value)]

    assert encode([{(1, 2): 3}, b"\xff"], list[read | bytes]) == [
        [{"key": [1, 2], "value": 3}],
        "data:;base64,/w==",
    ]


class Colour(enum.Enum):
    RED = "red"


class Written(pydantic.BaseModel):
    a: bytes
    b: Colour
    c: datetime.date
    d: Literal[1, "x"]
    e: Annotated[decimal.Decimal, ANY_VALUE] = decimal.Decimal(1)

    @pydantic.field_serializer("a", "b", "c", "d")
    def of_a_field(self, value: Any) -> str:
        return f"written for {type(self).__name__}"


def test_a_serializer_counts_whatever_form_this_package_has_for_the_type():
    value = Written(a=b"a", b=Colour.RED, c=DAY, d=1)

    assert encode(value) == {**dict.fromkeys("abcd", "written for Written"), "e": "written by a serializer"}
    assert decode('{"a": "a", "b": "red", "c": "2026-05-01", "d": 1}', Written) == value


# --- dates, and dates with a time -------------------------------------------------------------------------------------

type Day = datetime.date
DAY, MIDNIGHT = datetime.date(2026, 5, 1), datetime.datetime(2026, 5, 1)


@pytest.mark.parametrize("value", [DAY, MIDNIGHT, datetime.datetime(2026, 5, 1, 7, tzinfo=datetime.UTC)], ids=str)
@pytest.mark.parametrize(
    "tp",
    [
        datetime.date | datetime.datetime,
        datetime.datetime | datetime.date,
        datetime.datetime | Day | None,
        Annotated[datetime.date, pydantic.Field(ge=DAY)]
        | Annotated[datetime.datetime, pydantic.Field(ge=MIDNIGHT)]
        | Annotated[datetime.datetime, pydantic.Field(ge=MIDNIGHT.replace(tzinfo=datetime.UTC))],
    ],
    ids=str,
)
def test_a_date_and_a_date_with_a_time_are_told_apart(tp, value):
    for inside, kind in ((value, tp), ([value], list[tp]), ({value: value}, dict[tp, tp])):
        assert same(decode(json.dumps(encode(inside, kind)), kind), inside)


def test_lists_of_the_two_are_told_apart_as_well():
    for tp in (list[datetime.date] | list[datetime.datetime], list[datetime.datetime] | list[datetime.date]):
        for value in ([DAY], [MIDNIGHT, MIDNIGHT]):
            assert same(decode(json.dumps(encode(value, tp)), tp), value)


def test_alone_each_reads_the_form_of_the_other_where_nothing_is_lost():
    assert decode('"2026-05-01"', datetime.datetime) == MIDNIGHT
    assert same(decode('"2026-05-01T00:00:00"', datetime.date), DAY)
    with pytest.raises(ValueError, match="zero time"):
        decode('"2026-05-01T07:00:00"', datetime.date)
