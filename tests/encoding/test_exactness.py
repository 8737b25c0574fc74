"""Nothing is lost: digits, moments, and the keys under which fields are read."""

import contextlib
import dataclasses
import datetime
import ipaddress
import json
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, Literal, TypedDict

import jsonschema
import pydantic
import pytest

from effectful_agents.encoding import decode, dumps, encode, json_schema
from effectful_agents.errors import EncodingError

LONG = "1.00000000000000000001"


@pytest.mark.parametrize(
    ("tp", "text", "value"),
    [
        (Decimal, LONG, Decimal(LONG)),
        (Decimal, "12345678901234567890123", Decimal("12345678901234567890123")),
        (Decimal, "1e400", Decimal("1e400")),
        (Fraction, LONG, Fraction(LONG)),
        (Fraction, "1e-7", Fraction(1, 10**7)),
        (int, "1.00", 1),
        (int, "1e3", 1000),
    ],
)
def test_the_digits_of_a_number_are_all_read(tp, text, value):
    assert decode(f'{{"number": {text}}}', dict[str, tp]) == {"number": value}


@pytest.mark.parametrize("tp", [int, int | None])
def test_a_number_that_is_whole_only_once_digits_are_lost_is_none(tp):
    with pytest.raises(ValueError, match=r"^\[0\]: Input should be a valid integer"):
        decode(f"[{LONG}]", list[tp])


def test_digits_beside_what_is_read_loosely_stay():
    assert decode(f'["1", {LONG}, 0.1]', tuple[int, Decimal, float]) == (1, Decimal(LONG), 0.1)


@pytest.mark.parametrize(
    "text",
    [
        f'[{{"key": "a", "value": {LONG}}}]',
        f'{{"a": {LONG}}}',
        json.dumps(f'{{"a": {LONG}}}'),
        json.dumps([{"key": "a", "value": json.loads(LONG, parse_float=str)}]),
    ],
)
def test_digits_stay_in_whatever_else_is_forgiven_around_them(text):
    assert decode(text, dict[str, Decimal]) == {"a": Decimal(LONG)}


@pytest.mark.parametrize("tp", [Decimal, int, float, Fraction, Decimal | None])
def test_an_exponent_beyond_all_use_does_no_harm(tp):
    for text in ("1e99999999999999999999", "1e-99999999999999999999", "-1E+99999999999999999999"):
        for kind, around in ((tp, text), (list[tp], f"[{text}]")):
            with contextlib.suppress(ValueError):
                decode(around, kind)


def test_what_is_told_is_what_was_written():
    for tp, text, found in (
        (Literal["a", "b"], "5", "5"),
        (int, "5.0000000000000001", "5.0000000000000001"),
        (int, "9007199254740993.5", "9007199254740993.5"),
        (int, '"null"', '"null"'),
        (int | None, '"nil"', '"nil"'),
    ):
        with pytest.raises(ValueError, match=f"; it is {found}$"):
            decode(f"[{text}]", list[tp])


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity"])
def test_a_decimal_that_is_no_number_comes_back(text):
    value = Decimal(text)

    encoded = encode([value], list[Decimal])
    jsonschema.validate(encoded, json_schema(list[Decimal]))
    assert encoded == [text]
    assert str(decode(json.dumps(encoded), list[Decimal])[0]) == text


@pytest.mark.parametrize("limit", [{"gt": 0}, {"allow_inf_nan": False}, {"max_digits": 3}])
def test_where_a_decimal_is_limited_it_is_a_number(limit):
    tp = Annotated[Decimal, pydantic.Field(**limit)]

    for text in ("NaN", "Infinity", "sNaN"):
        with pytest.raises(ValueError, match=r"^\[0\]: "):
            decode(f'["{text}"]', list[tp])
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(text, json_schema(tp))


def test_a_moment_whose_offset_has_seconds_is_written_as_the_same_moment():
    odd = datetime.timezone(datetime.timedelta(minutes=43, seconds=30))
    moment = datetime.datetime(1850, 1, 1, 12, tzinfo=odd)

    assert decode(json.dumps(encode(moment)), datetime.datetime) == moment
    assert encode([moment], list[datetime.datetime]) == ["1850-01-01T11:16:30Z"]
    with pytest.raises(EncodingError, match="its offset has seconds"):
        encode(datetime.time(12, tzinfo=odd))


class Aliased(pydantic.BaseModel):
    read: int = pydantic.Field(validation_alias="from", serialization_alias="to")
    several: int = pydantic.Field(validation_alias=pydantic.AliasChoices(pydantic.AliasPath("far", 0), "near", "nigh"))
    written: int = pydantic.Field(serialization_alias="out")

    @pydantic.field_serializer("read")
    def doubled(self, value: int) -> int:
        return value


class TypedAliases(TypedDict):
    read: Annotated[int, pydantic.Field(validation_alias="from", serialization_alias="to")]


def test_a_field_is_written_under_the_key_that_it_is_read_from():
    value = Aliased.model_validate({"from": 1, "near": 2, "written": 3})

    encoded = encode(value)
    assert encoded == {"from": 1, "near": 2, "written": 3}
    jsonschema.validate(encoded, json_schema(Aliased))
    assert decode(json.dumps(encoded), Aliased) == value
    assert encode({"read": 1}, TypedAliases) == {"from": 1}
    assert decode('{"from": 1}', TypedAliases) == {"read": 1}


def test_a_field_that_no_key_is_read_for_is_refused():
    class Far(pydantic.BaseModel):
        deep: int = pydantic.Field(validation_alias=pydantic.AliasPath("far", 0))

    with pytest.raises(EncodingError, match=r"^list\[Far\]\[\]\.deep: an `AliasPath` alone"):
        json_schema(list[Far])


def test_json_inside_a_text_is_written_as_a_text():
    tp: Any = pydantic.Json[list[int]]

    assert encode([1, 2], tp) == "[1,2]"
    assert decode('"[1,2]"', tp) == [1, 2]
    with pytest.raises(ValueError, match="twice"):
        decode('{"a": "{\\"k\\": 1, \\"k\\": 2}"}', dict[str, pydantic.Json[dict[str, int]]])
    with pytest.raises(ValueError, match=r"^a\[1\]: Input should be a valid integer"):
        decode('{"a": "[1, [2]]"}', dict[str, tp])


def test_the_keys_true_and_false_are_written_so_and_read_so_only():
    assert decode('{"true": 1}', dict[bool, int]) == {True: 1}
    assert encode({True: 1, False: 2}, dict[bool, int]) == {"true": 1, "false": 2}
    for key in ("yes", "1", "True"):
        with pytest.raises(ValueError, match="'true' or 'false'"):
            decode(json.dumps({key: 1}), dict[bool, int])


@pytest.mark.parametrize("key", [None, [1], {"a": 1}])
def test_pairs_whose_keys_are_no_texts_are_no_mapping_of_texts(key):
    with pytest.raises(ValueError, match="should be an object"):
        decode(json.dumps([{"key": key, "value": 1}]), dict[str, int])


# --- numbers that have no text, or none that could be read again ------------------------------------------------------


@pytest.mark.parametrize(
    "number", [Fraction(10**5000, 3), Fraction(3, 10**5000), Fraction(10**5000)], ids=["1", "2", "3"]
)
def test_a_fraction_with_too_many_digits_is_refused(number):
    @dataclasses.dataclass
    class Part:
        n: Fraction

    values: list[tuple[Any, Any]] = [
        (number, Fraction),
        ([number], list[Fraction]),
        ({number: 1}, dict[Fraction, int]),
        (number, str | Fraction),
        (Part(number), Part),
    ]
    for value, tp in values:
        for write in (
            lambda value, tp: encode(value, tp),
            lambda value, _: encode(value),
            lambda value, _: dumps(value),
        ):
            with pytest.raises(EncodingError, match=r"more digits|one of several types"):
                write(value, tp)


def test_a_text_that_pydantic_could_not_make_is_no_text():
    class Mute(ipaddress.IPv4Address):
        def __str__(self) -> str:
            raise RuntimeError("no")

    with pytest.raises(EncodingError, match="`Mute`"):
        encode(Mute("127.0.0.1"), ipaddress.IPv4Address)


def test_a_whole_number_that_no_float_can_hold_is_no_float():
    for value, tp in ((10**400, float), ([-(10**400)], list[float]), ({10**400: 1}, dict[float, int])):
        with pytest.raises(EncodingError, match="too large for a `float`"):
            encode(value, tp)
    assert encode([10**400, 1.5], list[float | int]) == [10**400, 1.5]
    assert encode(10**300, float) == 10**300


@pytest.mark.parametrize(
    ("tp", "values"),
    [
        (Literal["true", True], ["true", True]),
        (Literal["None", None, "null"], ["None", None, "null"]),
        (Literal["1", 1, False], ["1", 1, False]),
        (Literal[1, 2, True], [1, 2]),
        (Literal[True, "x"], [True, "x"]),
    ],
    ids=str,
)
def test_keys_that_are_the_same_text_stay_apart(tp, values):
    mapping = {value: place for place, value in enumerate(values)}
    back = decode(json.dumps(encode(mapping, dict[tp, int])), dict[tp, int])

    assert [(type(key), key, place) for key, place in back.items()] == [
        (type(key), key, place) for key, place in mapping.items()
    ]
