"""The value of an answer while it is being written."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import itertools
import json
from collections.abc import Callable
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effectful_agents import handler
from effectful_agents.encoding import PartialDecoder, answer_codec, encode
from effectful_agents.handlers.execution import BuiltinExecutor


@dataclasses.dataclass
class Place:
    name: str
    north: float
    tags: list[str] = dataclasses.field(default_factory=list)


class Report(pydantic.BaseModel):
    title: str
    places: list[Place]


class Pair(NamedTuple):
    one: int
    other: str


class Row(TypedDict):
    key: str
    values: list[int]


class Colour(enum.Enum):
    RED = "red"
    GREEN = "green"


def values(tp: Any, text: str, size: int = 1) -> list[Any]:
    """What a decoder gives that is fed a text in pieces."""
    decoder = PartialDecoder(tp)
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    return [*(value for piece in pieces for value in decoder.add(piece)), *decoder.end()]


@pytest.mark.parametrize("tp", [Callable[[int], int], list[Callable[[int], int]]], ids=str)
def test_code_does_not_run_while_it_is_written(tp: Any):
    marks: list[int] = []
    written = {"code": "marks.append(1)\nmarks.append(2)\ndef same(n: int) -> int:\n    return n\n"}
    answer = json.dumps(written if tp == Callable[[int], int] else {"value": [written]})
    with handler(BuiltinExecutor()):
        decoder = PartialDecoder(tp, {"marks": marks})
        assert [value for character in answer for value in decoder.add(character)] == []
        assert list(decoder.end()) == []
        assert marks == []
        answer_codec(tp).decode(answer, context={"marks": marks})
    assert marks == [1, 2]


def test_a_text_is_the_text_so_far():
    assert values(str, "Hello", 2) == ["He", "Hell", "Hello"]


def test_elements_come_one_after_the_other():
    assert values(list[int], '{"value": [1, 2, 3]}') == [[], [1], [1, 2], [1, 2, 3]]


def test_a_value_without_its_wrapper_is_read_as_well():
    assert values(list[int], "[1, 2]") == [[], [1], [1, 2]]
    assert values(dict[str, int] | int, '{"a": 1, "b": 2}') == [{"a": 1}, {"a": 1, "b": 2}]


def test_a_number_is_not_told_before_it_has_ended():
    assert values(float, '{"value": -12.5e1}') == [-125.0]
    assert values(int, "123") == [123]


def test_digits_of_a_string_are_told():
    assert values(dict[str, str], '{"a": "x1"}')[-2:] == [{"a": "x"}, {"a": "x1"}]
    assert values(dict[str, str], r'{"a": "\"1"}')[-2:] == [{"a": '"'}, {"a": '"1'}]


def test_an_object_is_there_when_all_that_it_requires_is():
    assert values(Place, '{"name": "Oslo", "north": 59.9, "tags": ["old"]}', 4) == [
        Place("Oslo", 59.9),
        Place("Oslo", 59.9, ["ol"]),
        Place("Oslo", 59.9, ["old"]),
    ]


def test_a_list_of_objects_has_those_that_are_there():
    text = json.dumps({"value": [{"name": "Oslo", "north": 59.9}, {"name": "Rome", "north": 41.9}]})
    assert values(list[Place], text) == [
        [],
        [Place("Oslo", 59.9)],
        [Place("Oslo", 59.9), Place("Rome", 41.9)],
    ]


def test_objects_in_an_object():
    text = json.dumps({"title": "Cities", "places": [{"name": "Oslo", "north": 59.9}]})
    assert values(Report, text) == [
        Report(title="Cities", places=[]),
        Report(title="Cities", places=[Place("Oslo", 59.9)]),
    ]


@pytest.mark.parametrize("tp", [Literal["red", "green"], Colour])
def test_a_name_is_not_told_before_it_has_ended(tp: Any):
    assert [encode(value) for value in values(tp, '{"value": "green"}')] == ["green"]
    assert [[encode(one) for one in value] for value in values(list[tp], '["red", "green"]')] == [
        [],
        ["red"],
        ["red", "green"],
    ]


def test_a_bare_word_is_told_at_the_end():
    assert values(Literal["red", "green"], "green") == ["green"]


@pytest.mark.parametrize("end", ["\n```", "\n``` \n", ""])
def test_a_code_fence_is_not_part_of_the_answer(end: str):
    assert values(list[int], f"```json\n[1, 2]{end}")[:3] == [[], [1], [1, 2]]


def test_backticks_in_a_string_are_part_of_it():
    assert values(list[str], '```json\n["a``"]\n```')[-1] == ["a``"]


def test_a_value_that_admits_null():
    assert values(int | None, '{"value": null}') == [None]
    assert values(int | None, " ") == [None]
    assert values(None, "Done.") == [None]


def test_what_cannot_be_decoded_gives_nothing():
    assert values(list[int], "I do not know.") == []
    assert values(list[int], '{"value": ["x", "y"]}') == [[]]
    assert values(str, " \n") == []


def test_a_validator_that_raises_means_that_there_is_no_value_yet():
    def check(value: list[int]) -> list[int]:
        if len(value) < 2:
            raise LookupError("too few")
        return value

    assert values(Annotated[list[int], pydantic.AfterValidator(check)], "[1, 2, 3]") == [[1, 2], [1, 2, 3]]


def test_a_validator_sees_the_context():
    def check(value: list[int], info: pydantic.ValidationInfo) -> list[int]:
        return [*value, info.context]

    decoder = PartialDecoder(Annotated[list[int], pydantic.AfterValidator(check)], context=7)
    assert list(decoder.add("[1,")) == [[1, 7]]


def test_a_bound_on_the_length_of_a_text():
    assert values(Annotated[str, pydantic.Field(min_length=3)], "Hello") == ["Hel", "Hell", "Hello"]


class Odd:
    """A value that cannot be compared."""

    def __eq__(self, other: object) -> bool:
        raise ValueError("neither equal nor not")

    __hash__ = None  # ty: ignore

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        return pydantic.TypeAdapter(Annotated[list[int], pydantic.AfterValidator(lambda _: cls())]).core_schema


def test_values_that_cannot_be_compared_are_told_each_time():
    decoder = PartialDecoder(Odd)
    assert len([value for piece in ("[1,", " ", "2]") for value in decoder.add(piece)]) == 3


def test_a_long_answer_is_not_decoded_with_each_of_its_characters():
    counted = 0

    def count(value: Any) -> Any:
        nonlocal counted
        counted += 1
        return value

    text = json.dumps({"value": ["word"] * 12_500})
    assert len(text) > 100_000
    given = values(Annotated[list[str], pydantic.AfterValidator(count)], text)
    assert len(given[-1]) == 12_500
    assert counted < 1_000


# --- properties -------------------------------------------------------------------------------------------------------

TYPES: dict[str, tuple[Any, st.SearchStrategy[Any]]] = {
    "str": (str, st.text(min_size=1).filter(lambda text: not text.isspace())),
    "int": (int, st.integers()),
    "float": (float, st.floats(allow_nan=False, allow_infinity=False)),
    "bool": (bool, st.booleans()),
    "optional": (int | None, st.none() | st.integers()),
    "union": (list[int] | str, st.lists(st.integers()) | st.text()),
    "list": (list[int], st.lists(st.integers())),
    "list of texts": (list[str], st.lists(st.text())),
    "set": (set[int], st.sets(st.integers())),
    "dictionary": (
        dict[str, list[float]],
        st.dictionaries(st.text(), st.lists(st.floats(allow_nan=False, allow_infinity=False))),
    ),
    "list of lists": (list[list[str]], st.lists(st.lists(st.text()))),
    "date": (datetime.date, st.dates()),
    "pair": (Pair, st.builds(Pair, st.integers(), st.text())),
    "row": (Row, st.fixed_dictionaries({"key": st.text(), "values": st.lists(st.integers())})),
    "place": (
        Place,
        st.builds(Place, st.text(), st.floats(allow_nan=False, allow_infinity=False), st.lists(st.text())),
    ),
    "places": (list[Place], st.lists(st.builds(Place, st.text(), st.floats(0, 9), st.lists(st.text())))),
    "report": (
        Report,
        st.builds(Report, title=st.text(), places=st.lists(st.builds(Place, st.text(), st.floats(0, 9)))),
    ),
}


def text_of(value: Any, tp: Any, indent: int | None) -> str:
    """An answer as a model writes it."""
    if tp is str:
        return value
    encoded = encode(value)
    return json.dumps(encoded if isinstance(encoded, dict) else {"value": encoded}, indent=indent)


def is_beginning(part: Any, whole: Any) -> bool:
    """Whether a value in JSON may have been on the way to another."""
    if isinstance(whole, str):
        return isinstance(part, str) and whole.startswith(part)
    if isinstance(whole, list):
        if not isinstance(part, list) or len(part) > len(whole):
            return False
        last = len(part) - 1
        return not part or (part[:last] == whole[:last] and is_beginning(part[last], whole[last]))
    if isinstance(whole, dict):
        return isinstance(part, dict) and all(
            name in whole and is_beginning(value, whole[name]) for name, value in part.items()
        )
    return part == whole


@pytest.mark.parametrize("name", TYPES)
@given(data=st.data())
def test_values_grow_until_they_are_the_answer(name: str, data: st.DataObject):
    tp, strategy = TYPES[name]
    value = data.draw(strategy)
    text = text_of(value, tp, data.draw(st.sampled_from([None, 1])))
    answer = answer_codec(tp).decode(text)
    given = values(tp, text, data.draw(st.integers(1, 20)))
    assert given[-1] == answer
    assert all(one != other for one, other in itertools.pairwise(given))
    if name in ("set", "date"):  # a set has no order in JSON; a day of one digit more is another day
        return
    written = [encode(one) for one in given]
    assert all(is_beginning(one, other) for one, other in itertools.pairwise(written))


@pytest.mark.parametrize("name", TYPES)
@given(text=st.text(alphabet='{}[]":,\\`\n 019-.eEtrufalsn"vé\ud800', max_size=30))
def test_no_text_at_all_is_an_error(name: str, text: str):
    values(TYPES[name][0], text)
    values(TYPES[name][0], '{"value": ' + text)
