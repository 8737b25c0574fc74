"""Types without a form, values that do not fit, and types that Python calls equal and that are not the same."""

import dataclasses
import datetime
import json
import re
import socket
import types
import uuid
from collections.abc import Callable, Iterator
from typing import (
    Annotated,
    Literal,
    TypedDict,
)

import annotated_types
import attrs
import pydantic
import pytest

from effectful_agents import Tool
from effectful_agents.encoding import (
    answer_codec,
    decode,
    encode,
    json_schema,
    tool_codec,
)
from effectful_agents.errors import EncodingError
from tests.encoding.lawful import tool_with
from tests.encoding.sameness import same
from tests.encoding.shapes import Box, Colour, Level, Person, Point, Shape
from tests.encoding.table_types import (
    Base,
    Checked,
    Closed,
    Dot,
    Movie,
    Permission,
    Ping,
    Robot,
)

# --- refused types ----------------------------------------------------------------------------------------------------


class Plain:
    pass


@dataclasses.dataclass
class Step:
    name: str
    socket: socket.socket


@attrs.define
class Holder:
    plain: Plain


class Held(TypedDict):
    steps: dict[str, list[Step]]


@pytest.mark.parametrize(
    ("tp", "path", "culprit"),
    [
        (socket.socket, "", "socket.socket"),
        (list[Step], "[].socket", "socket.socket"),
        (Held, ".steps{}[].socket", "socket.socket"),
        (tuple[int, Plain], "[1]", "Plain"),
        (dict[str, Plain], "{}", "Plain"),
        (Plain | None, "", "Plain"),
        (Holder, ".plain", "Plain"),
        (list[Holder], "[].plain", "Plain"),
        (set[Plain], "[]", "Plain"),
        (Box[Plain], ".content", "Plain"),
        (types.ModuleType, "", "module"),
        (type[int], "", "a class"),
    ],
    ids=str,
)
def test_a_type_without_a_form_is_refused_with_the_path_to_the_part_at_fault(tp, path, culprit):
    with pytest.raises(EncodingError) as as_answer_:
        answer_codec(tp)
    with pytest.raises(EncodingError) as as_parameter:
        tool_codec(tool_with(tp)).definition()

    for error in (as_answer_, as_parameter):
        assert culprit in str(error.value)
        assert path in str(error.value)
        assert "0x" not in str(error.value)
    assert re.match(rf"use\(x: .*\)\.x{re.escape(path)}: .*{culprit}", str(as_parameter.value))


def test_the_message_of_a_refused_parameter():
    def plan(steps: list[Step]) -> None:
        """Plan."""

    with pytest.raises(EncodingError, match=r"plan\(steps: list\[Step\]\)\.steps\[\]\.socket: socket\.socket has no"):
        tool_codec(Tool.define(plan)).definition()


# --- values that do not fit -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tp", "sent"),
    [
        (int, "true"),
        (int, "1.5"),
        (int, '"x"'),
        (int, "null"),
        (int, "[1]"),
        (float, "true"),
        (bool, "1"),
        (bool, '"maybe"'),
        (str, "5"),
        (str, "null"),
        (list[int], "[1, true]"),
        (list[int], '{"a": 1}'),
        (set[int], "[false]"),
        (tuple[int, str], '[1, "a", 3]'),
        (tuple[int, str], "[1]"),
        (tuple[()], "[1]"),
        (dict[str, int], '{"a": "x"}'),
        (dict[str, int], '{"a": 1, "a": 2}'),
        (Base, '{"id": 1, "id": 1}'),
        (Base, '{"id": 1, "zz": 1}'),
        (Base, "{}"),
        (Base, '{"id": true}'),
        (Movie, '{"title": "M", "zz": 1}'),
        (Closed, '{"a": 1, "b": 2}'),
        (Person, '{"name": "A", "zz": 1}'),
        (Person, '{"name": "A", "age": -1}'),
        (Checked, '{"word": "A"}'),
        (Colour, '"green"'),
        (Level, "3"),
        (Level, "true"),
        (Literal[1], "true"),
        (Literal[1], '"x"'),
        (Literal[True], "1"),
        (Literal[Level.LOW], "2"),
        (datetime.date, "5"),
        (datetime.date, '"2024-02-30"'),
        (datetime.datetime, "1700000000"),
        (datetime.timedelta, "3"),
        (uuid.UUID, '"x"'),
        (re.Pattern[str], '"("'),
        (Annotated[int, annotated_types.Ge(0)], "-1"),
        (Annotated[str, annotated_types.MaxLen(2)], '"abc"'),
        (Annotated[list[int], annotated_types.MinLen(1)], "[]"),
        (Annotated[float, pydantic.AllowInfNan(False)], '"NaN"'),
        (Robot, '{"name": "R", "zz": 1}'),
        (Dot, '{"x": -1}'),
        (Permission, "64"),
        (Shape, '{"kind": "triangle", "side": 1}'),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused(tp, sent):
    with pytest.raises(ValueError, match=r"\S") as raised:
        tool_codec(tool_with(tp)).decode(f'{{"x": {sent}}}')

    assert len(str(raised.value)) < 1000
    with pytest.raises(ValueError, match=r"\S"):
        decode(sent, tp)


@pytest.mark.parametrize(
    ("tp", "sent", "read"),
    [
        (int | str, '"5"', "5"),
        (str | int, '"5"', "5"),
        (str | int, "5", 5),
        (bool | str, '"true"', "true"),
        (int | float, "1", 1),
        (int | bool, "true", True),
        (float, "1", 1.0),
        (int, "3.0", 3),
        (list[int], "[3.0]", [3]),
    ],
    ids=str,
)
def test_what_has_one_reading_is_read(tp, sent, read):
    assert same(tool_codec(tool_with(tp)).decode(f'{{"x": {sent}}}').arguments["x"], read)
    assert same(decode(sent, tp), read)


@pytest.mark.parametrize("sent", ['{"x": [1]}', '"{\\"x\\": [1]}"', '```json\n{"x": [1]}\n```', {"x": [1]}])
def test_the_packaging_of_arguments_is_forgiven(sent):
    assert tool_codec(tool_with(list[int])).decode(sent).arguments == {"x": [1]}


@pytest.mark.parametrize("sent", ['{"value": [1]}', "[1]", '```\n{"value": [1]}\n```', "```json\n[1]\n```", '"[1]"'])
def test_the_packaging_of_an_answer_is_forgiven(sent):
    assert answer_codec(list[int]).decode(sent) == [1]


# --- equal types that are not the same --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (int | str, str | int),
        (Literal["a", "b"], Literal["b", "a"]),
        (list[Literal["a", "b"]], list[Literal["b", "a"]]),
        (Literal[1], Literal[True]),
        (dict[str, Literal[0]], dict[str, Literal[False]]),
        (Annotated[int, annotated_types.Ge(1)], Annotated[int, annotated_types.Ge(True)]),
    ],
    ids=str,
)
def test_types_that_python_calls_equal_keep_their_own_order(one, other):
    first, second = json.dumps(json_schema(one)), json.dumps(json_schema(other))

    assert json.dumps(json_schema(one)) == first
    assert json.dumps(json_schema(other)) == second
    if "Ge" not in str(one):
        assert first != second


def test_a_forward_reference_is_resolved_where_the_function_is_written():
    def use(x: "dict[str, Point]", y: "Ping | None" = None) -> "list[Later]":
        """Use it."""

    codec = tool_codec(Tool.define(use))

    point = encode(Point(1, 2), Point)
    assert codec.decode(json.dumps({"x": encode({"a": Point(1, 2)}, dict[str, Point])})).arguments["x"] == {
        "a": Point(1, 2)
    }
    assert json.loads(codec.encode_result([Later(Point(1, 2))])) == [{"point": point}]


@dataclasses.dataclass
class Later:
    point: Point


def test_a_callable_is_offered_as_source_or_refused():
    """Without a handler of code there is nobody to read one; the definition says which it is."""
    try:
        definition = tool_codec(tool_with(Callable[[int], int])).definition()
    except EncodingError as error:
        assert "Callable" in str(error)  # noqa: PT017
    else:
        assert definition["function"]["parameters"]["properties"]["x"]


def test_an_iterator_as_a_parameter_can_be_read():
    back = tool_codec(tool_with(Iterator[int])).decode('{"x": [1, 2]}').arguments["x"]

    assert list(back) == [1, 2]
