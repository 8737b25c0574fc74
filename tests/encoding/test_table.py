"""The table of types, row by row: an annotation, a value, and what is on the wire."""

import collections
import datetime
import decimal
import fractions
import json
import math
import pathlib
import re
import socket
import types
import uuid
import zoneinfo
from collections.abc import Collection, Iterable, Mapping, MutableMapping, Sequence
from collections.abc import Set as AbstractSet
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    Optional,
)

import annotated_types
import pydantic
import pytest

from effectful_agents import NotHandled, Skill, Tool
from effectful_agents.encoding import (
    Encodable,
    answer_codec,
    decode,
    encode,
    format_as_content_blocks,
    tool_codec,
)
from effectful_agents.errors import EncodingError
from effectful_agents.messages import Audio, Document, Image
from tests import ids
from tests.encoding.random_types import Node, Pair, Rose
from tests.encoding.sameness import same
from tests.encoding.shapes import Box, Circle, Colour, Json, Level, Person, Point, Shape, Square, Tree
from tests.encoding.table_types import (
    Aliased,
    Base,
    Bounded,
    Checked,
    Closed,
    Counted,
    Defaulted,
    Derived,
    Dot,
    Exact,
    Extra,
    Frozen,
    Groups,
    Ints,
    Linked,
    Loose,
    Maybe,
    Mode,
    Movie,
    Numbers,
    Operator,
    Ordered,
    Page,
    Permission,
    Ping,
    Planet,
    Pong,
    Robot,
    Segment,
    Size,
    Slots,
    Untyped,
    UserId,
)
from tests.encoding.test_laws import as_answer, listed, misfit, parameters_of, tool_with


class Row(NamedTuple):
    tp: Any
    value: Any
    wire: Any = ...  # what the value is as JSON; a function that says whether; or whatever can be read again


def text(encoded: Any) -> bool:
    return isinstance(encoded, str)


def row(tp: Any, value: Any, wire: Any = ..., name: str | None = None) -> Any:
    shown = name or re.sub(r"[\w.]*\.(\w+)", r"\1", str(tp) if not isinstance(tp, type) else tp.__name__)
    shown = shown if name else f"{shown}={ids.shown(value)}"[:70]
    return pytest.param(Row(tp, value, wire), id=shown)


UTC = datetime.UTC
ROWS = [
    # scalars
    row(str, "a", "a"),
    row(str, "ü\u2028\x00😀", "ü\u2028\x00😀"),
    row(bool, True, True),
    row(int, -7, -7),
    row(int, 10**40, 10**40),
    row(float, 0.1, 0.1),
    row(float, 1e300, 1e300),
    row(float, -0.0, -0.0),
    row(float, math.nan, "NaN"),
    row(float, -math.inf, "-Infinity"),
    row(list[float], [math.inf, 1.5], ["Infinity", 1.5]),
    row(complex, 1 + 2.5j),
    row(complex, complex(0, -1)),
    row(None, None, None),
    row(types.NoneType, None, None),
    row(bytes, b"text", text),
    row(bytes, b"\x00\xff\xfe", text),
    row(bytes, b"", text),
    row(bytearray, bytearray(b"\xff\x00"), text),
    row(decimal.Decimal, decimal.Decimal("1.10"), "1.10"),
    row(decimal.Decimal, decimal.Decimal("1E+30"), "1E+30"),
    row(fractions.Fraction, fractions.Fraction(-1, 3), "-1/3"),
    row(uuid.UUID, uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    row(pathlib.Path, pathlib.Path("/a/b c"), "/a/b c"),
    row(pathlib.PurePosixPath, pathlib.PurePosixPath("a"), "a"),
    row(datetime.datetime, datetime.datetime(2024, 2, 29, 1, 2, 3, 4), "2024-02-29T01:02:03.000004"),
    row(datetime.datetime, datetime.datetime(2024, 2, 29, tzinfo=UTC), "2024-02-29T00:00:00Z"),
    row(
        datetime.datetime, datetime.datetime(2024, 2, 29, tzinfo=datetime.timezone(datetime.timedelta(hours=-5))), text
    ),
    row(datetime.date, datetime.date(2024, 2, 29), "2024-02-29"),
    row(datetime.time, datetime.time(1, 2, 3), "01:02:03"),
    row(datetime.timedelta, datetime.timedelta(days=1, seconds=2), "P1DT2S"),
    row(datetime.timedelta, datetime.timedelta(days=-3, microseconds=1)),
    row(zoneinfo.ZoneInfo, zoneinfo.ZoneInfo("Europe/Madrid"), "Europe/Madrid"),
    row(re.Pattern[str], re.compile("a+"), "a+"),
    row(re.Pattern, re.compile(r"\d")),
    row(re.Pattern[str], re.compile("a", re.IGNORECASE | re.VERBOSE)),
    row(re.Pattern[bytes], re.compile(b"a+")),
    # enumerations and literals
    row(Colour, Colour.RED, "red"),
    row(Level, Level.HIGH, 2),
    row(Size, Size.L, 3),
    row(Planet, Planet.MARS),
    row(Maybe, Maybe.NO),
    row(Operator, Operator.ADD, "ADD"),
    row(Permission, Permission.R),
    row(Permission, Permission.R | Permission.X),
    row(Permission, Permission(0)),
    row(Mode, Mode.A | Mode.B),
    row(Permission | None, Permission.W),
    row(Permission | str, Permission.W | Permission.X),
    row(Literal["a", "b"], "b", "b"),
    row(Literal[1, "1"], "1", "1"),
    row(Literal[1, "1"], 1, 1),
    row(Literal[1, True], True, True),
    row(Literal[1, True], 1, 1),
    row(Literal[0, False, "x"], False, False),
    row(Literal[None, "a"], None, None),
    row(Literal[None], None, None),
    row(Literal[Level.LOW, "x"], Level.LOW, 1),
    row(Literal[Planet.EARTH], Planet.EARTH),
    row(Literal[Colour.RED, 1], Colour.RED, "red"),
    row(Literal[b"x"], b"x"),
    # unions
    row(int | None, None, None),
    row(Optional[int], 3, 3),  # noqa: UP045
    row(int | str, "5", "5"),
    row(int | str, 5, 5),
    row(str | int, "true", "true"),
    row(bool | int, 1, 1),
    row(bool | int, True, True),
    row(int | bool, True, True),
    row(float | bool, 1.5, 1.5),
    row(float | str, "NaN", "NaN"),
    row(int | float, 0.5, 0.5),
    row(list[int] | dict[str, int], {"a": 1}),
    row(list[int | None] | int | None, [None, 1], [None, 1]),
    row(dict[str, int | list[str]] | None, {"a": ["x"], "b": 2}),
    row(Shape, Circle(3)),
    row(Shape | None, Square(3)),
    row(list[Square | Circle], [Circle(1), Square(2)]),
    row(Point | str, Point(1, 2)),
    row(Literal["all"] | list[Literal["a", "b"]], ["a"], ["a"]),
    row(Colour | int, Colour.BLUE, "blue"),
    row(Tree | int, Tree(1)),
    # containers
    row(list[int], [1, 2], [1, 2]),
    row(list[int], [], []),
    row(list, [1, "a", None], [1, "a", None]),
    row(list[list[list[int]]], [[[1], []]], [[[1], []]]),
    row(tuple[int, str], (1, "a")),
    row(tuple[int, ...], (1, 2), [1, 2]),
    row(tuple[()], ()),
    row(tuple, (1, "a")),
    row(tuple[int], (1,)),
    row(tuple[tuple[int, int], tuple[str, tuple[bool]]], ((1, 2), ("a", (True,)))),
    row(list[tuple[int, str]], [(1, "a")]),
    row(set[int], {3, 1, 2}, [1, 2, 3]),
    row(set, {2, 1}, [1, 2]),
    row(frozenset[str], frozenset("ba"), ["a", "b"]),
    row(set[tuple[int, str]], {(2, "b"), (1, "a")}),
    row(set[frozenset[int]], {frozenset({1, 2}), frozenset()}),
    row(dict[str, int], {"a": 1, "b": 2}),
    row(dict[str, int], {}),
    row(dict, {"a": [1]}, {"a": [1]}),
    row(dict[str, Any], {"a": [1, None]}),
    row(dict[str, dict[str, list[int]]], {"a": {"b": [1]}}),
    row(dict[int, str], {1: "a", -2: "b"}),
    row(dict[bool, int], {True: 1, False: 0}),
    row(dict[float, int], {0.5: 1}),
    row(dict[Colour, int], {Colour.RED: 1}),
    row(dict[Level, int], {Level.LOW: 1, Level.HIGH: 2}),
    row(dict[Size, int], {Size.L: 1}),
    row(dict[Planet, int], {Planet.MARS: 1}),
    row(dict[Permission, int], {Permission.R | Permission.W: 1}),
    row(dict[tuple[int, str], float], {(1, "a,b"): 0.5, (2, ""): 1.5}),
    row(dict[datetime.date, int], {datetime.date(2024, 1, 1): 1}),
    row(dict[uuid.UUID, int], {uuid.UUID(int=1): 1}),
    row(dict[Literal["a", "b"], int], {"b": 1}),
    row(dict[int | str, int], {1: 1, "1": 2}),
    row(dict[Point, int], {Point(1, 2): 1}),
    row(dict[frozenset[int], int], {frozenset({1}): 1}),
    row(collections.deque[int], collections.deque([1, 2]), [1, 2]),
    row(collections.Counter[str], collections.Counter("aab")),
    row(collections.Counter[int], collections.Counter([1, 1])),
    row(collections.defaultdict[str, list[int]], collections.defaultdict(list, a=[1])),
    row(collections.OrderedDict[str, int], collections.OrderedDict(b=1, a=2)),
    row(Mapping[str, int], {"a": 1}),
    row(MutableMapping[str, int], {"a": 1}),
    row(Sequence[int], [1], [1]),
    row(Collection[int], [1], [1]),
    row(Iterable[int], [1, 2], [1, 2]),
    row(Iterable[Point], [Point(1, 2)]),
    row(AbstractSet[int], frozenset({2, 1}), [1, 2]),
    # classes
    row(Point, Point(1, 2)),
    row(Segment, Segment(Point(1, 2), tags=("a",))),
    row(Untyped, Untyped(1, "a")),
    row(Movie, {"title": "M"}),
    row(Movie, {"title": "M", "year": 1931}),
    row(Loose, {"title": "M"}),
    row(Closed, {"a": 1}, {"a": 1}),
    row(Base, Base(1), {"id": 1}),
    row(Derived, Derived(1, tags=["a"], when=datetime.date(2024, 1, 1))),
    row(Frozen, Frozen(a=1), {"a": 1, "b": "b"}),
    row(Counted, Counted(2)),
    row(Tree, Tree(1, [Tree(2)], Tree(3))),
    row(Ping, Ping(Pong(Ping(), 2))),
    row(list[Pong], [Pong(Ping(None))]),
    row(Box[int], Box(1), {"content": 1}),
    row(Box[Box[list[str]]], Box(Box(["a"])), {"content": {"content": ["a"]}}),
    row(Node[str], Node("a", [Node("b")])),
    row(Person, Person(name="A", friends=[Person(name="B")], colour=Colour.RED)),
    row(Aliased, Aliased(**{"the-first": 1, "two": "2024-02-02"}), {"the-first": 1, "two": "2024-02-02"}),
    row(Checked, Checked(word="a")),
    row(Exact, Exact(day=datetime.date(2024, 1, 1), names=("a",), colours={Colour.RED}, id=uuid.UUID(int=1))),
    row(list[Exact], [Exact(day=datetime.date(2024, 1, 1))]),
    row(Extra, Extra(a=1, b="x"), {"a": 1, "b": "x"}),  # ty: ignore[unknown-argument]
    row(Page[int], Page[int](items=[1], next=Page[int](items=[]))),
    row(Numbers, Numbers([1, 2]), [1, 2]),
    row(dict[str, Numbers], {"a": Numbers([1])}),
    row(
        Ordered,
        Ordered(
            modes=collections.OrderedDict(a=Permission.R | Permission.W, b=Permission(0)),
            cells=collections.OrderedDict({(1, "a,b"): 2}),
            pattern=re.compile("a", re.IGNORECASE),
        ),
    ),
    row(Slots, Slots(lists=collections.defaultdict(lambda: Colour.RED, a=Colour.BLUE)), name="Slots"),
    row(Robot, Robot("R", parts=["p"]), {"name": "R", "arms": 2, "parts": ["p"]}),
    row(list[Dot], [Dot(1)], [{"x": 1}]),
    # metadata and names
    row(Annotated[int, annotated_types.Ge(0), annotated_types.Lt(10)], 3, 3),
    row(Annotated[str, annotated_types.Len(1, 3), "a note"], "abc", "abc"),
    row(Annotated[list[Annotated[int, annotated_types.Gt(0)]], annotated_types.MinLen(1)], [1], [1]),
    row(Annotated[str, pydantic.StringConstraints(pattern="^a+$")], "aa", "aa"),
    row(Annotated[datetime.date, pydantic.Strict()], datetime.date(2024, 1, 1), "2024-01-01"),
    row(Annotated[decimal.Decimal, pydantic.Field(decimal_places=2, max_digits=4)], decimal.Decimal("1.25"), "1.25"),
    row(Annotated[int, pydantic.Field(description="How many.")], 3, 3),
    row(UserId, UserId(3), 3),
    row(list[UserId], [UserId(3)], [3]),
    row(Ints, [1], [1]),
    row(Groups, collections.defaultdict(list, {1: ["a"]})),
    row(Pair[int], (1, 2)),
    row(Rose[int], [1, [2, []]], [1, [2, []]]),
    row(Linked[int], (1, (2, None))),
    row(Json, {"a": [1, None, {"b": True}]}),
    row(Bounded, 3, 3),
    row(list[Bounded], [3], [3]),
    row(Defaulted, "a", "a"),
    row(Encodable[int], 3, 3),
    row(Any, {"a": [1, None]}),
    row(list[Any], [1, "a", [None]]),
    row(object, "a", "a"),
    # content parts
    row(Image, {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}),
    row(Audio, {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}}),
    row(list[Document], [{"type": "file", "file": {"file_id": "f"}}]),
]

every_row = pytest.mark.parametrize("row", ROWS)


def described(row: Row) -> Any:
    encoded = encode(row.value, row.tp)
    json.dumps(encoded, allow_nan=False)
    return encoded


@every_row
def test_a_value_has_its_form_and_is_read_again(row):
    encoded = described(row)

    if callable(row.wire):
        assert row.wire(encoded)
    elif row.wire is not ...:
        assert same(encoded, row.wire)
    back = decode(json.dumps(encoded), row.tp)
    assert same(row.value, listed(row.value, back)), back


@every_row
def test_a_value_is_an_answer(row):
    encoded = described(row)
    codec = answer_codec(row.tp)
    if codec.response_format is None:
        back = codec.decode(encoded)
    else:
        content = as_answer(row.tp, encoded)
        assert not misfit(codec.response_format["json_schema"]["schema"], content)
        back = codec.decode(json.dumps(content))

    assert same(row.value, listed(row.value, back)), back


@every_row
def test_a_value_is_an_argument_and_a_result(row):
    encoded = described(row)
    tool = tool_with(row.tp)
    assert not misfit(parameters_of(tool), {"x": encoded})

    back = tool_codec(tool).decode(json.dumps({"x": encoded})).arguments["x"]
    shown = tool_codec(tool).encode_result(row.value)

    assert same(row.value, listed(row.value, back)), back
    if isinstance(shown, str):
        assert shown == encoded or json.loads(shown) == encoded
    else:  # parts of a message
        assert shown == (encoded if isinstance(encoded, list) else [encoded])


# --- one way only -----------------------------------------------------------------------------------------------------


def double(x: int) -> int:
    """Twice as much."""
    return x * 2


@Tool.define
def weather(city: str) -> str:
    """The weather in a city."""
    raise NotImplementedError


@Skill.define
def plan(month: str) -> str:
    """Plan for {month}."""
    raise NotHandled


@pytest.mark.parametrize("value", [double, weather, plan], ids=["function", "tool", "skill"])
def test_what_is_written_one_way_names_itself_in_a_prompt(value):
    (block,) = format_as_content_blocks("Use {x}.", {"x": value})

    assert value.__name__ in block["text"]
    assert "0x" not in block["text"]


@pytest.mark.parametrize(
    "value",
    [(number for number in range(3)), iter([1]), open, object(), socket, int],
    ids=["generator", "iterator", "builtin", "object", "module", "class"],
)
def test_what_has_no_form_is_refused_by_name(value):
    with pytest.raises(EncodingError) as raised:
        encode(value)

    assert "0x" not in str(raised.value)
